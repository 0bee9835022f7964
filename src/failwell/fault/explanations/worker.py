"""Explanations: a worker process or the capability inside it failed."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "worker.oom": explain(
        """
        The worker process disappeared in the middle of a job, killed from outside, and the signs
        point to memory: signal 9, or a rise of the container's out-of-memory counter. The worker
        could not say anything itself, so there is no shortfall in numbers. Any other signal or exit
        code is `worker.crashed`. A process that noticed the shortage and is still alive raises
        `resource.system_memory`.
        """,
        """
        1. Let the queue release idle workers and repeat the job on a fresh one.
        2. Make the job smaller, or raise the memory limit of the container.
        3. Check the kernel log if memory was plentiful: somebody may have sent the signal by hand.
        """,
        """
        import failwell
        from failwell.capability import WorkerOOMError

        try:
            raise WorkerOOMError("whisper", process_returncode=-9)
        except WorkerOOMError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.category)  # worker.oom resource
        """,
    ),
    "worker.crashed": explain(
        """
        The worker process ended in the middle of a job without a result: a segmentation fault in a
        native library, an abort, a call to `exit`. The exit code or signal is in the details, the
        last lines of output beside it. Signal 9 with signs of memory pressure is `worker.oom`. An
        exception is not a crash; it comes back with a kind of its own. How far the job got is
        unknown.
        """,
        """
        1. Let the queue repeat the job on a fresh worker. A job that kills several in a row is put
           aside.
        2. Read the worker's last output; native libraries print their reason there.
        3. Pin or update the native library, and set `PYTHONFAULTHANDLER=1` in the worker's
           environment.
        """,
        """
        import failwell

        fault = failwell.Fault(
            kind="worker.crashed",
            message="the worker of `whisper` died with signal 11",
            details={"capability": "whisper", "returncode": -11},
        )
        report = failwell.describe(fault)
        print(report.retryable, report.certainty)  # True unknown
        """,
    ),
    "worker.stalled": explain(
        """
        The worker is alive but neither its progress nor its message changed for longer than the
        allowed silence, so it was ended and its process tree with it. Silence is measured, not
        total time: a slow load that reports progress may take as long as it needs. A job that
        overruns its own time limit while still moving is `worker.timeout`.
        """,
        """
        1. Let the queue repeat the job on a fresh worker.
        2. Report progress in long loops, and use a heartbeat around a blocking call that cannot.
        3. Allow a longer silence for capabilities that download or compile at first use.
        """,
        """
        import failwell

        fault = failwell.Fault(
            kind="worker.stalled",
            message="`align` showed no progress for 60 s",
            details={"capability": "align", "silent_seconds": 60},
        )
        print(failwell.describe(fault).category)  # transient
        """,
    ),
    "worker.transient": explain(
        """
        The capability itself reported a failure that may pass: a download that broke, a service
        behind it that was not ready. It is the author's word for "try again", used when no sharper
        kind fits. A wait that the author gives is honoured. A job that ran out of time is
        `worker.timeout`, a process that died is `worker.crashed`.
        """,
        """
        1. Let the queue repeat the job; it waits as long as the capability asked for.
        2. If it keeps coming, read the capability's message and look at the service it names.
        3. As an author, raise a sharper kind where the reason is known.
        """,
        """
        import failwell
        from failwell.capability import CapabilityTransientError

        try:
            raise CapabilityTransientError("the model hub closed the connection", retry_after_seconds=2)
        except CapabilityTransientError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.retryable)  # worker.transient True
        """,
    ),
    "worker.fatal": explain(
        """
        The capability itself reported a failure that no repeat will cure: a broken installation,
        damaged weights, a state that should be impossible. It is the author's final word, so the
        job fails at once. Bad input is `validation.input_invalid`, a capability that nobody loaded
        is `worker.not_loaded`.
        """,
        """
        1. Read the capability's message and its traceback in the operator's view.
        2. Reinstall the capability's environment or its model files.
        3. Report it to the capability's author if the installation is sound.
        """,
        """
        import failwell
        from failwell.capability import CapabilityFatalError

        try:
            raise CapabilityFatalError("the weights fail their checksum")
        except CapabilityFatalError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.retryable)  # worker.fatal False
        """,
    ),
    "worker.start_failed": explain(
        """
        The worker process could not be made ready for work: its interpreter is missing, the
        capability's module does not import, its initialisation raised, or it did not become ready
        in time. No job has run. The import error or the last lines of output are in the report, and
        no process is left behind. A process that was ready and then died is `worker.crashed`.
        """,
        """
        1. Read the import error or the last output in the report.
        2. Start the capability's interpreter by hand and import the module.
        3. Rebuild its environment if packages are missing, and allow more time if the import is
           only slow.
        """,
        """
        import failwell

        fault = failwell.Fault(
            kind="worker.start_failed",
            message="`separate` did not start: No module named 'torch'",
            details={"capability": "separate"},
        )
        print(failwell.describe(fault).user_action.kind)  # fix_configuration
        """,
    ),
    "worker.not_loaded": explain(
        """
        A job names a capability instance that was never loaded, or was unloaded since. It is
        refused when it is submitted, not after waiting in line. This is a defect of the program
        that submits, so it is fatal and not repeated. A capability that is loaded but switched off
        is `worker.disabled`.
        """,
        """
        1. Load the capability before submitting to it.
        2. Check the instance id; each instance has its own.
        3. If it was loaded earlier, look for the event that unloaded it.
        """,
        """
        import failwell
        from failwell.capability import CapabilityNotLoadedError

        try:
            raise CapabilityNotLoadedError("whisper-large")
        except CapabilityNotLoadedError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.category)  # worker.not_loaded fatal
        """,
    ),
    "worker.disabled": explain(
        """
        The capability is installed and loaded, but somebody switched it off. New work is refused at
        once, also when it is sent to a named instance; a job that was already running finishes. The
        switch survives a restart. A capability that is not loaded at all is `worker.not_loaded`.
        """,
        """
        1. Enable the capability, then submit the job again.
        2. Find out why it was disabled; the journal has the event.
        3. Or submit to another capability that does the same task.
        """,
        """
        import failwell
        from failwell.capability import CapabilityDisabledError

        try:
            raise CapabilityDisabledError("whisper")
        except CapabilityDisabledError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.category)  # worker.disabled user_input
        """,
    ),
    "worker.timeout": explain(
        """
        The job did not finish within its time limit. A capability that cooperates is stopped and
        its worker reused; one that does not is ended and replaced. Part of the work may be done.
        Silence is `worker.stalled`, whatever the time limit says; a limit on a whole workflow is
        `limit.run_timeout`.
        """,
        """
        1. Repeat the job, or give it more time.
        2. Compare the limit with the durations in the history of this capability.
        3. Split long inputs into several jobs.
        """,
        """
        import failwell
        from failwell.capability import CapabilityTimeoutError

        try:
            raise CapabilityTimeoutError("whisper", 30.0, retry_after_seconds=60)
        except CapabilityTimeoutError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.category)  # worker.timeout transient
        """,
    ),
}
