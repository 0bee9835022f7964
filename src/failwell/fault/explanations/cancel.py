"""Explanations: something was stopped on purpose. Each scope stops what lies within it."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "cancel.session": explain(
        """
        The whole session was stopped, and with it its turns, stages and tools, innermost first.
        Work that was still queued is refused with the same kind. It is a state, not a failure: it
        is recorded as the end of a session and never counted as an error. Stopping one turn alone
        is `cancel.turn`.
        """,
        """
        1. Nothing needs repair. Resume the session if it is still wanted.
        2. Check tools that were under way: a side effect may have happened before they stopped.
        """,
        """
        import failwell
        from failwell.fault.classes import Cancellation

        try:
            raise Cancellation(kind="cancel.session", message="the window was closed")
        except Cancellation as exc:
            print(failwell.describe(exc).category)  # cancelled
        """,
    ),
    "cancel.turn": explain(
        """
        One turn was stopped, with its model call and its tools; the session lives on and takes the
        next input. A call that is cut off by this often looks like a broken connection, but the
        cancellation wins over whatever it raced with, so no retry and no other provider follows.
        Every tool call of the turn gets a result that says it was interrupted.
        """,
        """
        1. Ask again, or say what should be different.
        2. Check tools that had already started; their effects are not undone.
        """,
        """
        import failwell
        from failwell.fault.classes import Cancellation

        try:
            try:
                raise ConnectionResetError("connection closed")
            except ConnectionResetError as cause:
                raise Cancellation(kind="cancel.turn", message="stopped by the user") from cause
        except Cancellation as exc:
            report = failwell.describe(exc)
            print(report.kind, report.retryable)  # cancel.turn False
        """,
    ),
    "cancel.stage": explain(
        """
        One stage of a state machine was stopped before it could decide what follows. Its tools are
        stopped with it; the turn and the session are not. In a fan-out it also ends the siblings of
        a stage that failed. Reaching the stage's own cap on turns is a normal end of the stage and
        not a cancellation.
        """,
        """
        1. Look at who stopped it: a person, its parent, or a failed sibling.
        2. If a sibling failed, its error is the one to act on.
        3. Run the stage again if it is still wanted.
        """,
        """
        import failwell
        from failwell.fault.classes import Cancellation

        try:
            raise Cancellation(
                kind="cancel.stage",
                message="a sibling failed first",
                details={"stage": "review", "by": "parent"},
            )
        except Cancellation as exc:
            print(failwell.describe(exc).message)
        """,
    ),
    "cancel.tool": explain(
        """
        One tool call was stopped while it ran, or before it ran because its approval came too late.
        Its process tree is ended. A result that arrives after the stop is thrown away. Running out
        of time is `tool.timeout`; if both happen at once, the cancellation wins.
        """,
        """
        1. Check what the tool had already changed.
        2. Let the model go on without it; it is told that the call was interrupted.
        """,
        """
        import failwell
        from failwell.fault.classes import Cancellation

        try:
            raise Cancellation(
                kind="cancel.tool", message="stopped by the user", details={"tool": "run_command"}
            )
        except Cancellation as exc:
            print(failwell.describe(exc).kind)  # cancel.tool
        """,
    ),
    "cancel.job": explain(
        """
        A job was stopped by an operator: while waiting, which means it never ran, or while running,
        first by asking and then, after a grace period, by ending its worker. A result that came in
        after the request is dropped. The job ends as cancelled, never as failed, and other jobs of
        the same worker go on.
        """,
        """
        1. Submit the job again if it is still wanted.
        2. If stopping took the forced way, let the capability check for cancellation in its long
           loops.
        """,
        """
        import failwell
        from failwell.capability import CapabilityCancelledError

        try:
            raise CapabilityCancelledError("whisper")
        except CapabilityCancelledError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.retryable)  # cancel.job False
        """,
    ),
    "cancel.run": explain(
        """
        A workflow run was stopped, with every step, script and job in it, and no process of it is
        left. It beats a failure or a time limit that it races with, and it is the run's one final
        event. What had finished stays recorded. An author's own stop is `halt.intentional`.
        """,
        """
        1. Resume the run if it should go on: finished steps are not repeated.
        2. Check the step that was under way; its effects may be half done.
        """,
        """
        import failwell
        from failwell.fault.classes import Cancellation

        try:
            raise Cancellation(kind="cancel.run", message="interrupted from the keyboard")
        except Cancellation as exc:
            report = failwell.describe(exc)
            print(report.category, report.user_action.kind)  # cancelled resubmit
        """,
    ),
}
