"""Explanations: the machine has not enough of something."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "resource.gpu_memory": explain(
        """
        The GPU has less free memory than the work needs: the framework's own out-of-memory error, a
        driver error that says so, or an admission check that saw it coming. Other models that sit
        idle in memory are the usual reason. Work that needs more than the whole device has is
        `resource.never_fits`. A worker that the kernel killed for want of main memory is
        `worker.oom`.
        """,
        """
        1. Let the queue free memory: it releases the largest idle holder on that device, restarts
           the worker with a clean allocator, and tries again.
        2. Use a smaller model, a smaller batch or a lower precision.
        3. Close programs outside the queue that hold memory on the device; `nvidia-smi` lists them.
        """,
        """
        import failwell
        from failwell.capability import CapabilityResourceError, ResourceShortfall

        try:
            raise CapabilityResourceError(
                "the model does not fit beside what is loaded",
                resource_shortfall=ResourceShortfall(resource="gpu_vram_mb", needed=8000, available=4000),
            )
        except CapabilityResourceError as exc:
            report = failwell.describe(exc)
            print(report.kind)  # resource.gpu_memory
            print(report.resource_shortfall.needed - report.resource_shortfall.available)  # 4000
        """,
    ),
    "resource.system_memory": explain(
        """
        The process asked for memory and the machine or its container had none to give:
        `MemoryError`, or an operating system error `ENOMEM`. The program is still alive to say so;
        a worker that was killed instead is `worker.oom`. Such operating system errors count as a
        resource, whatever their Python class says.
        """,
        """
        1. Let the queue free memory: idle workers that hold much of it are released first.
        2. Read or compute in pieces instead of all at once.
        3. Raise the container's limit, or run fewer jobs at the same time.
        """,
        """
        import errno

        import failwell

        try:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        except OSError as exc:
            print(failwell.describe(exc).kind)  # resource.system_memory
        """,
    ),
    "resource.disk": explain(
        """
        There is no space left to write to, or the user's disk quota is full: `ENOSPC`, `EDQUOT`.
        Python raises a plain `OSError` for it; the error number decides, because repeating the
        write without freeing anything fails in the same way. A file may have been written in part.
        A disk that reports a fault of its own is `internal.io_error`.
        """,
        """
        1. Free space: caches, old logs, finished checkpoints, downloaded models.
        2. Or point the output to another volume.
        3. Remove the half-written file before the work is repeated.
        """,
        """
        import errno

        import failwell

        try:
            raise OSError(errno.ENOSPC, "No space left on device", "/data/model.bin")
        except OSError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.category)  # resource.disk resource
        """,
    ),
    "resource.file_handles": explain(
        """
        The process (`EMFILE`) or the whole machine (`ENFILE`) has as many files and sockets open as
        it may. Often something opens files or clients and never closes them, and the failure then
        shows up in code that is innocent. It is a resource, not an I/O fault: the same call works
        once others are closed.
        """,
        """
        1. Look at what is open: `lsof -p PID` on Linux and macOS.
        2. Close files, clients and subprocess pipes with `with`; share one HTTP client instead of
           one per call.
        3. Raise the limit (`ulimit -n`) if so many are really needed.
        """,
        """
        import errno

        import failwell

        try:
            raise OSError(errno.EMFILE, "Too many open files")
        except OSError as exc:
            print(failwell.describe(exc).kind)  # resource.file_handles
        """,
    ),
    "resource.exhausted": explain(
        """
        A capability or the operating system reports that something is used up, and it is none of
        those with a kind of their own (`resource.gpu_memory`, `resource.system_memory`,
        `resource.disk`, `resource.file_handles`) or it does not say which. Process slots, licences
        and device handles belong here. Since nothing says what to free, only idle holders can be
        released on suspicion.
        """,
        """
        1. Read the details and the cause for what is used up.
        2. Free it, or run fewer of these jobs at the same time.
        3. Give a `ResourceShortfall` when raising, so that the queue can free the right thing.
        """,
        """
        import failwell
        from failwell.capability import CapabilityResourceError

        try:
            raise CapabilityResourceError("all four licences are in use")
        except CapabilityResourceError as exc:
            print(failwell.describe(exc).kind)  # resource.exhausted
        """,
    ),
    "resource.never_fits": explain(
        """
        The work needs more than the whole machine has, even with everything else gone. It is found
        before the work starts, from measured peaks and the size of the device, and the report
        carries both numbers. Waiting, evicting and resubmitting cannot help, so it fails at once
        instead of blocking the queue for ever. A shortage that freeing can cure is
        `resource.gpu_memory` or `resource.system_memory`.
        """,
        """
        1. Compare needed and available in the report.
        2. Make the work smaller: another model, a smaller batch, a lower precision.
        3. Run it on a larger machine.
        """,
        """
        import failwell

        fault = failwell.Fault(
            kind="resource.never_fits",
            message="needs 40000 MB of GPU memory; this machine can give 21600 MB",
            details={"resource": "gpu_vram_mb", "needed": 40000, "available": 21600},
        )
        print(failwell.describe(fault).retryable)  # False
        """,
    ),
}
