"""Explanations: a tool was refused, could not be called, or failed."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "tool.denied": explain(
        """
        The call was refused before the tool ran: the tool is not granted, a policy does not allow
        the command or the host, an approval is missing, or a person said no. A broken or absent
        approval hook also denies; nothing is allowed because nobody could be asked. An operating
        system that refuses access to a file is `validation.path_denied`. A tool that the host
        cannot offer at all is `tool.unavailable`.
        """,
        """
        1. Read the reason in the details: it names the rule, never the argument's value.
        2. Grant the tool, or add exactly this command or host to the allow list.
        3. Or let the model do without; it is told that the call was denied and may choose another
           way.
        """,
        """
        import failwell
        from failwell.fault.classes import ToolTerminal

        try:
            raise ToolTerminal(
                kind="tool.denied",
                message="`rm` is not on the allow list",
                details={"tool": "run_command", "reason": "command_not_allowed"},
            )
        except ToolTerminal as exc:
            report = failwell.describe(exc)
            print(report.category, report.certainty)  # denied not_sent
        """,
    ),
    "tool.failed": explain(
        """
        The tool ran and stopped with an exception that it did not classify. How far it got is not
        known, so it is not repeated; the model sees that the tool failed and may react. A tool that
        raises a fault of its own keeps that kind instead. Wrong arguments are `tool.input_invalid`,
        a wrong result is `tool.output_malformed`.
        """,
        """
        1. Look at the cause in the report: the tool's own exception, with its frames.
        2. Let the tool raise a typed fault where it knows better, such as `tool.busy` for a lock.
        3. Give an idempotent tool a retry policy of its own.
        """,
        """
        import failwell
        from failwell.fault.classes import ToolTerminal

        try:
            try:
                raise RuntimeError("index 7 is damaged")
            except RuntimeError as cause:
                raise ToolTerminal(
                    kind="tool.failed", message="the search failed", details={"tool": "search"}
                ) from cause
        except ToolTerminal as exc:
            report = failwell.describe(exc)
            print([link.message for link in report.causes])
        """,
    ),
    "tool.timeout": explain(
        """
        The tool was still at work when its time was up, and was ended with everything it had
        started. Part of its work may be done, so it is ambiguous and is repeated only if the tool
        is declared idempotent. A tool that was stopped by a person is `cancel.tool`, even if the
        time ran out at the same moment. A script node that overruns is `internal.script_timeout`.
        """,
        """
        1. Check what the tool has already changed.
        2. Allow it more time, or give it less to do in one call.
        3. Declare it idempotent if a second run does no harm; then it may be repeated
           automatically.
        """,
        """
        import failwell
        from failwell.fault.classes import ToolTransient

        try:
            raise ToolTransient(
                kind="tool.timeout",
                message="`run_tests` took longer than 30 s",
                details={"tool": "run_tests", "seconds": 30},
            )
        except ToolTransient as exc:
            print(failwell.describe(exc).category)  # ambiguous
        """,
    ),
    "tool.busy": explain(
        """
        Something the work needs is held by someone else for a moment: a lock, a database file, a
        device, a port. The tool noticed it before it changed anything, so a repeat is safe and
        usually succeeds. A whole session or run that another process is writing to is
        `session.locked`, and is not waited for.
        """,
        """
        1. Let the runtime repeat the call after a short wait.
        2. If it never becomes free, find out who holds it; a process that died may have left a lock
           behind.
        3. Run fewer of these calls at the same time.
        """,
        """
        import failwell
        from failwell.fault.classes import ToolTransient

        try:
            raise ToolTransient(
                kind="tool.busy", message="the index is being rebuilt", details={"tool": "search"}
            )
        except ToolTransient as exc:
            report = failwell.describe(exc)
            print(report.retryable, report.certainty)  # True not_sent
        """,
    ),
    "tool.input_invalid": explain(
        """
        The arguments do not fit the tool: a field is missing, has the wrong type, or names
        something that is not there or not unique. The tool did not run. In an agent's turn the
        model is told first and may correct its call; the kind surfaces when those corrections are
        spent. A tool that does not exist is `tool.not_found`.
        """,
        """
        1. Correct the argument that the details name.
        2. If a model keeps getting it wrong, describe the parameter better, with an example value.
        3. Make the tool's schema as strict as the tool really is, so that mistakes show before it
           runs.
        """,
        """
        import failwell
        from failwell.fault.classes import ToolTerminal

        try:
            raise ToolTerminal(
                kind="tool.input_invalid",
                message="`path` is required",
                details={"tool": "read_file", "parameter": "path"},
            )
        except ToolTerminal as exc:
            print(failwell.describe(exc).user_action.kind)  # change_input
        """,
    ),
    "tool.output_malformed": explain(
        """
        The tool ran to its end, but what it returned is not what it declares: not serialisable, a
        field missing, bytes that are no text. Its effects have happened and its result is lost, so
        a repeat would do the work twice for the same answer. This is a defect of the tool, not of
        the arguments (`tool.input_invalid`) or of the model (`provider.output_invalid`).
        """,
        """
        1. Correct the tool, or the output schema it declares.
        2. Test the tool with the arguments that the operator's view of the report shows.
        3. Check by hand whether its effects need undoing before it runs again.
        """,
        """
        import failwell
        from failwell.fault.classes import ToolTerminal

        try:
            raise ToolTerminal(
                kind="tool.output_malformed",
                message="`count` is missing from the result",
                details={"tool": "count_rows"},
            )
        except ToolTerminal as exc:
            report = failwell.describe(exc)
            print(report.category, report.certainty)  # fatal done_but_lost
        """,
    ),
    "tool.not_found": explain(
        """
        A tool was called by a name that nobody registered. Names are compared exactly; nothing
        similar is run in its place. Models invent tools, and workflow files outlive them. The model
        is told first, with the names that exist, and may correct itself. A registered tool that is
        not granted is `tool.denied`; one whose host lacks a capability is `tool.unavailable`.
        """,
        """
        1. Use one of the names listed in the details.
        2. Register the tool, or install the extension that brings it.
        3. Check the node's `tools:` list in the workflow file.
        """,
        """
        import failwell
        from failwell.fault.classes import ToolTerminal

        try:
            raise ToolTerminal(
                kind="tool.not_found",
                message="no tool is called `read_fil`",
                details={"tool": "read_fil", "known": ["read_file", "list_directory"]},
            )
        except ToolTerminal as exc:
            print(failwell.describe(exc).message)
        """,
    ),
    "tool.unavailable": explain(
        """
        The tool is registered and allowed, but the host does not provide what it needs: no
        clipboard, no browser, no process access, the wrong platform. The report names the tool and
        the missing capability. It is fatal, because neither waiting nor other arguments make the
        host different. A missing Python package is `extension.dependency_missing`.
        """,
        """
        1. Provide the named capability when the host is set up.
        2. Or remove the tool from the agent, so that models are not offered what cannot work.
        3. Run the work on a machine that has the capability.
        """,
        """
        import failwell
        from failwell.fault.classes import ToolTerminal

        try:
            raise ToolTerminal(
                kind="tool.unavailable",
                message="`notify` needs a desktop, and this host has none",
                details={"tool": "notify", "capability": "os.notify"},
            )
        except ToolTerminal as exc:
            print(failwell.describe(exc).blame)  # host
        """,
    ),
}
