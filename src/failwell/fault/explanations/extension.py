"""Explanations: an extension, or something it depends on, is not in order."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "extension.lifecycle_failure": explain(
        """
        An extension raised an unclassified exception while it was started, used or stopped: in its
        set-up, a hook, a context provider, a command. The extension is put back to its previous
        state, or left disabled after a failed reload. An exception that already carries a kind
        keeps it. A tool's own failure is `tool.failed`.
        """,
        """
        1. Read the extension's exception in the causes.
        2. Disable the extension to go on without it.
        3. Report it to the extension's author with the operator's view of the report.
        """,
        """
        import failwell
        from failwell.fault.classes import ExtensionHost

        try:
            try:
                raise KeyError("endpoint")
            except KeyError as cause:
                raise ExtensionHost(
                    kind="extension.lifecycle_failure",
                    message="`jira-tools` failed while starting",
                    details={"extension": "jira-tools", "phase": "activate"},
                ) from cause
        except ExtensionHost as exc:
            print(failwell.describe(exc).category)  # fatal
        """,
    ),
    "extension.dependency_cycle": explain(
        """
        Extensions depend on each other in a circle, so there is no order in which to start them.
        The details list the circle from end to end. None of them was started. A dependency that is
        simply absent is `extension.dependency_missing`.
        """,
        """
        1. Remove one of the dependencies in the list; the weakest is usually the one needed only at
           run time.
        2. Or move what both need into a third extension.
        """,
        """
        import failwell
        from failwell.fault.classes import ExtensionHost

        try:
            raise ExtensionHost(
                kind="extension.dependency_cycle",
                message="`a` needs `b`, and `b` needs `a`",
                details={"cycle": ["a", "b", "a"]},
            )
        except ExtensionHost as exc:
            print(failwell.describe(exc).user_action.kind)  # fix_configuration
        """,
    ),
    "extension.dependency_missing": explain(
        """
        Something the work depends on is not installed or not registered: another extension, a
        Python package, an optional extra of this library, a tool server. It is found when the part
        is loaded or first used. An installed part of the wrong version is
        `validation.contract_version_mismatch`; a command that is missing is
        `internal.spawn_failed`.
        """,
        """
        1. Install what the report names, into the environment that runs the work.
        2. For an optional part of this library, install the extra, as the message shows.
        3. Check that a worker uses the interpreter you installed into.
        """,
        """
        import failwell
        from failwell.fault.classes import ExtensionHost

        try:
            raise ExtensionHost(
                kind="extension.dependency_missing",
                message="`temporalio` is not installed",
                details={"install": "pip install 'failwell[temporal]'"},
            )
        except ExtensionHost as exc:
            print(failwell.describe(exc).message)
        """,
    ),
}
