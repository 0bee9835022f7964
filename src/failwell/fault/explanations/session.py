"""Explanations: what was recorded cannot be read, written, resumed or changed."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "session.manifest_drift": explain(
        """
        What was recorded and what is installed no longer agree: another version of an extension, a
        changed schema of a capability, a state whose migration failed, a checksum that does not
        match. Going on could drop restrictions or misread state, so it stops before anything is
        loaded. A record that belongs to another place altogether is `session.resume_mismatch`; one
        that cannot be read at all is `session.store_corrupt`.
        """,
        """
        1. Compare the recorded and the installed versions in the details.
        2. Restore the recorded version, or provide a migration.
        3. Or accept the change explicitly, knowing what it drops.
        """,
        """
        import failwell
        from failwell.fault.classes import Session

        try:
            raise Session(
                kind="session.manifest_drift",
                message="the state of `planner` was written by version 1",
                details={"recorded": "1.0.0", "installed": "2.0.0"},
            )
        except Session as exc:
            print(failwell.describe(exc).category)  # configuration
        """,
    ),
    "session.store_unavailable": explain(
        """
        The store could not be read or written at the moment: locked for too long, a network volume
        gone, permissions changed. The last good record is untouched. Writes are repeated after 2
        and 4 s, three in all; after that the session stops rather than go on unrecorded. A full
        disk is `resource.disk`, a damaged store `session.store_corrupt`.
        """,
        """
        1. Check the volume, the permissions and whether a backup or another program holds the file.
        2. Then repeat; nothing that was confirmed is lost.
        """,
        """
        import failwell
        from failwell.fault.classes import Session

        try:
            try:
                raise TimeoutError("database is locked")
            except TimeoutError as cause:
                raise Session(kind="session.store_unavailable", message="the journal is locked") from cause
        except Session as exc:
            print(failwell.describe(exc).retryable)  # True
        """,
    ),
    "session.store_corrupt": explain(
        """
        The store is there and can be opened, but what it holds cannot be read as a record: damaged
        pages, half a line, fields that never existed. Nothing is repaired silently and the damaged
        file is left as it is. A store that does not answer is `session.store_unavailable`; a
        missing record is `session.no_snapshot`.
        """,
        """
        1. Copy the file aside before anything else.
        2. Restore it from a backup.
        3. Check the disk, and whether two machines write to the file over a network volume.
        """,
        """
        import failwell
        from failwell.fault.classes import Session

        try:
            raise Session(
                kind="session.store_corrupt",
                message="record 118 of the journal cannot be read",
                details={"sequence": 118},
            )
        except Session as exc:
            print(failwell.describe(exc).retryable)  # False
        """,
    ),
    "session.resume_mismatch": explain(
        """
        The record is sound but belongs to something else: another store, another workflow file,
        another version of that file, another project. Resuming it here would run old decisions
        against new steps. Nothing is loaded and no step starts. An installed part that changed its
        version is `session.manifest_drift`.
        """,
        """
        1. Resume it with the file and the store it was recorded with.
        2. Or accept the change explicitly, after comparing both versions of the file.
        3. Or start afresh.
        """,
        """
        import failwell
        from failwell.fault.classes import Session

        try:
            raise Session(
                kind="session.resume_mismatch",
                message="run 4f2a was recorded with another version of report.yaml",
                details={"run": "4f2a", "file": "report.yaml"},
            )
        except Session as exc:
            print(failwell.describe(exc).user_action.kind)  # fix_configuration
        """,
    ),
    "session.no_snapshot": explain(
        """
        A session, run or gate was named, and nothing is recorded under that name in this store.
        Usually the name is mistyped, or the program looks into another folder than the one that
        wrote it. A record that exists but cannot be read is `session.store_corrupt`.
        """,
        """
        1. List what the store holds and compare the name.
        2. Check which store the program is using.
        3. Start afresh if there is nothing to resume.
        """,
        """
        import failwell
        from failwell.fault.classes import Session

        try:
            raise Session(
                kind="session.no_snapshot",
                message="nothing is recorded for run 4f2b",
                details={"run": "4f2b"},
            )
        except Session as exc:
            print(failwell.describe(exc).category)  # user_input
        """,
    ),
    "session.locked": explain(
        """
        Another process is writing to the same session or run, or a turn is still under way in it.
        There is one writer at a time, because two would overwrite each other's history. It is not
        waited for: the other process may be a person's open terminal. A resource that is free again
        in a moment is `tool.busy`.
        """,
        """
        1. Go on in the process that has it, or end that process.
        2. Then repeat the command.
        """,
        """
        import failwell
        from failwell.fault.classes import Session

        try:
            raise Session(
                kind="session.locked",
                message="process 4121 is writing to this session",
                details={"pid": 4121},
            )
        except Session as exc:
            print(failwell.describe(exc).retryable)  # False
        """,
    ),
    "session.interaction_required": explain(
        """
        The work needs an answer from a person (an approval, a choice, a sign-in, trust in a
        project) and nobody is there to give it. Without a person the answer is never assumed: it
        fails closed, before the thing that needed approval has happened. The open question is in
        the details. A person who answered "no" to a tool is `tool.denied`.
        """,
        """
        1. Answer the question that the details hold, then resume.
        2. Or run where someone can be asked: at a terminal or with the dashboard open.
        3. For unattended runs, grant what is needed beforehand.
        """,
        """
        import failwell
        from failwell.fault.classes import Session

        try:
            raise Session(
                kind="session.interaction_required",
                message="`git push` needs an approval",
                details={"question": "approve", "tool": "run_command"},
            )
        except Session as exc:
            print(failwell.describe(exc).user_action.kind)  # decide
        """,
    ),
    "session.illegal_transition": explain(
        """
        Something was asked of a session or run that its state does not allow: deciding a gate that
        is closed, resuming what has ended, starting twice, changing a stage's data after its
        set-up. The state was left as it is. It is a defect of the calling program, so no repeat can
        help.
        """,
        """
        1. Look at the state and the request in the details.
        2. Correct the calling program: read the state first, and treat "already done" as an answer.
        """,
        """
        import failwell
        from failwell.fault.classes import Session

        try:
            raise Session(
                kind="session.illegal_transition",
                message="a finished run cannot be paused",
                details={"state": "completed", "asked": "pause"},
            )
        except Session as exc:
            print(failwell.describe(exc).category)  # fatal
        """,
    ),
    "session.secret_leak": explain(
        """
        A known secret was found in something about to be stored, logged or sent to a model: a
        manifest, a prompt, a template that interpolates a secret input. It was held back. The
        report names the place and the secret's name, never its value. It is fatal, because the
        program must change before the work can go on safely.
        """,
        """
        1. Pass a reference to the secret instead of its value; it is resolved where it is used.
        2. Remove the secret from the prompt or the template at the named place.
        3. Replace the secret if it may have left the machine some other way.
        """,
        """
        import failwell
        from failwell.fault.classes import Session

        try:
            raise Session(
                kind="session.secret_leak",
                message="the prompt of `deploy` holds the value of `API_TOKEN`",
                details={"place": "agents.deploy.prompt", "secret": "API_TOKEN"},
            )
        except Session as exc:
            print(failwell.describe(exc).kind)  # session.secret_leak
        """,
    ),
}
