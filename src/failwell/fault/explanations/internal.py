"""Explanations: a step of a workflow, the machine below it, or this program failed."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "internal.script_error": explain(
        """
        A script ended with a non-zero exit code and wrote no typed error. It is raised only for a
        step that declares `raises` or has an `on_error` route; without either, a non-zero exit is
        an ordinary result that `exit_code` routes on. The last line of its error output is the
        message; the details hold the exit code and the last 2,000 characters. No kind is ever
        guessed from the exit code.
        """,
        """
        1. Read `stderr_tail` in the details.
        2. Let the script write a typed error with one of the shipped helpers, so that routes can
           tell its failures apart.
        3. Route on this kind; it need not be declared in `raises`.
        """,
        """
        agents:
          - name: fetch
            type: script
            command: ./fetch.sh
            raises: [external.git.fetch_failed]
            routes:
              - on_error: external.git.fetch_failed
                retry: {max: 2, initial_seconds: 5}
              - on_error: internal.script_error
                halt: {message: "exit code {{ error.details.exit_code }}"}
              - to: $end
        """,
        "yaml",
    ),
    "internal.script_timeout": explain(
        """
        A script ran longer than its time limit and was ended, with everything it had started. What
        it did until then is not known, so it is ambiguous and not repeated on its own. The limit of
        the whole run is `limit.run_timeout`; a tool called by a model is `tool.timeout`.
        """,
        """
        1. Check what the script has already changed.
        2. Give it more time with `timeout`, or split its work.
        3. Retry it by route only if a second run does no harm.
        """,
        """
        agents:
          - name: build
            type: script
            command: make
            args: [all]
            timeout: 600
            routes:
              - on_error: internal.script_timeout
                retry: {max: 1, initial_seconds: 0}
              - to: $end
        """,
        "yaml",
    ),
    "internal.spawn_failed": explain(
        """
        A command could not be started at all: it is not on the path, may not be executed, has a
        broken interpreter line, or its working folder does not exist. Nothing ran. A command that
        started and then failed is `internal.script_error`.
        """,
        """
        1. Check the spelling, and the `PATH` that the step sees rather than your own.
        2. Make the file executable and check its first line.
        3. Check that the working folder exists.
        """,
        """
        agents:
          - name: convert
            type: script
            command: ffmpgeg
            routes:
              - on_error: internal.spawn_failed
                halt: {message: "Install ffmpeg first."}
              - to: $end
        """,
        "yaml",
    ),
    "internal.schema_violation": explain(
        """
        A step finished, but what it delivered is not what its schema promises: not JSON, a missing
        field, a wrong type. A typed error that is itself malformed, or that claims a kind owned by
        the runtime, also becomes this. Fenced JSON is accepted. The work is done and its result is
        lost. A model's answer that fails inside the call is `provider.output_invalid`.
        """,
        """
        1. Look at `failed_field` and the reason in the details.
        2. Correct the step or its schema.
        3. For an agent, route to a repair step that gets the reason.
        """,
        """
        agents:
          - name: extract
            prompt: "Give the total as JSON."
            output:
              total: {type: number}
            routes:
              - on_error: internal.schema_violation
                to: repair
              - to: $end
          - name: repair
            prompt: "This field was wrong: {{ extract.error.details.failed_field }}. Give the JSON again."
        """,
        "yaml",
    ),
    "internal.undeclared_kind": explain(
        """
        A step declares `raises` and then raised a kind that is not in the list. The original kind,
        message and details are kept in the details, beside the declared list. The wrapping makes
        the gap visible instead of letting an error take a catch-all route unnoticed. A step without
        `raises` may raise any kind of its author's own.
        """,
        """
        1. Add `original_kind` to the step's `raises`, and route it.
        2. Or correct the step if it should not raise that.
        """,
        """
        agents:
          - name: fetch
            type: script
            command: ./fetch.sh
            raises: [external.git.fetch_failed]
            routes:
              - on_error: internal.undeclared_kind
                halt: {message: "undeclared: {{ error.details.original_kind }}"}
              - to: $end
        """,
        "yaml",
    ),
    "internal.template_error": explain(
        """
        A template or an expression could not be evaluated: wrong syntax, a name that is not there,
        a filter that does not exist, a result of a type that cannot be used. The step that needed
        it did not run. The report names the place and never quotes a value. An expression that hits
        a limit of the sandbox is `internal.sandbox_error`.
        """,
        """
        1. Go to the template that the report names.
        2. Check the spelling of the step and the field, and that the step has run on this path.
        3. Use `default` for values that may be absent.
        """,
        """
        agents:
          - name: greet
            type: set
            value: "{{ lookup.output.nmae }}"
            routes:
              - on_error: internal.template_error
                halt: {message: "{{ error.message }}"}
              - to: $end
        """,
        "yaml",
    ),
    "internal.no_route": explain(
        """
        A step ended well, and then no success route held: every one has a `when`, and none of them
        was true. Where to go on is for the author to say, so the run stops instead of guessing.
        The step's output is kept; when the run is continued, the step runs again.
        """,
        """
        1. Look at the step's output in `failwell runs show`.
        2. Correct the conditions, or add a last route without `when`.
        3. Continue with `failwell resume RUN --accept-changes`.
        """,
        """
        agents:
          - name: build
            type: script
            command: ./build.sh
            routes:
              - to: deploy
                when: "output.exit_code == 0"
              - on_error: internal.no_route
                to: report
        """,
        "yaml",
    ),
    "internal.sandbox_error": explain(
        """
        An expression was stopped because it went beyond what the sandbox allows: too many
        operations, too much memory, too deep a nesting, an attempt to reach what is out of bounds.
        The same expression on the same data will be stopped again. Running out of wall-clock time,
        which can be the machine's fault, is `internal.sandbox_timeout`. An expression that is
        simply wrong is `internal.template_error`.
        """,
        """
        1. Simplify the expression: no loops over large lists.
        2. Move the computation into a script step.
        """,
        """
        agents:
          - name: count
            type: set
            value: "{% for i in range(1000000000) %}{{ i }}{% endfor %}"
            routes:
              - on_error: internal.sandbox_error
                to: count_in_a_script
              - to: $end
        """,
        "yaml",
    ),
    "internal.sandbox_timeout": explain(
        """
        An expression ran out of wall-clock time. Expressions have no side effects and the clock
        also counts the time that a busy machine takes away, so it may be repeated. An expression
        that exceeds a counted limit fails the same way every time and is `internal.sandbox_error`.
        """,
        """
        1. Let the runtime repeat it.
        2. If it keeps coming, simplify the expression or move it into a script step.
        3. Look at the load of the machine.
        """,
        """
        import failwell

        fault = failwell.Fault(kind="internal.sandbox_timeout", message="the condition took longer than 1 s")
        print(failwell.describe(fault).retryable)  # True
        """,
    ),
    "internal.io_error": explain(
        """
        The operating system could not carry out an operation, and its error number says nothing
        more useful: `EIO`, a stale handle of a network volume. Paths have their own kinds
        (`validation.path_not_found` and its siblings), as do full disks, memory and file handles
        (`resource.disk` and its siblings). Something that is held by someone else is `tool.busy`, a
        lost connection `provider.outcome_unknown`. What is left may pass, so it is repeated.
        """,
        """
        1. Let the runtime repeat it.
        2. If it keeps failing, look at the kernel log and the health of the disk.
        3. On a network volume, check the server.
        """,
        """
        import errno

        import failwell

        try:
            raise OSError(errno.EIO, "Input/output error")
        except OSError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.retryable)  # internal.io_error True
        """,
    ),
    "internal.bug": explain(
        """
        The program met a state that its authors ruled out: a broken invariant, an exception that
        only wrong code can cause, a branch that cannot be reached. It is not your input and not the
        provider. Details stay in the operator's view; a user is told only that the program failed.
        A failure that merely has no kind yet is `internal.unknown`.
        """,
        """
        1. Report it to whoever maintains the program, with the report's id and fingerprint.
        2. Resubmitting the same work will meet the same defect.
        """,
        """
        import failwell

        fault = failwell.Fault(
            kind="internal.bug", message="two final events in one run", details={"run": "4f2a"}
        )
        report = failwell.describe(fault)
        print(report.category, report.blame)  # fatal ourselves
        """,
    ),
    "internal.unknown": explain(
        """
        An exception was described that no rule recognises and that says nothing about itself. It is
        not retried, because whether a repeat helps or harms is not known. Failures of a provider's
        SDK that nobody recognises are `provider.unknown`; an unclassified script is
        `internal.script_error`.
        """,
        """
        1. Read the evidence in the report: it says what was looked at.
        2. Give the failure a kind of its own, and raise a fault from the original exception where
           it happens.
        """,
        """
        import failwell

        class Peculiar(Exception):
            pass

        try:
            raise Peculiar("no rule knows me")
        except Peculiar as exc:
            report = failwell.describe(exc)
            print(report.kind, report.retryable)  # internal.unknown False
        """,
    ),
}
