"""Explanations: something was given that cannot be accepted, found before any work began."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "validation.shape_invalid": explain(
        """
        A document or a record does not have the form it must have: a workflow file with an unknown
        key, a route to nowhere, a circle, text that is not YAML or JSON at all. All mistakes of a
        file are collected and shown together, with line and column. Values from a settings file are
        `validation.config_invalid`; single arguments are `validation.input_invalid`.
        """,
        """
        1. Go to the line and column that the report names.
        2. Correct all the mistakes it lists; they come from one pass.
        3. Validate the file again before it runs.
        """,
        """
        import failwell
        from failwell.fault.classes import Validation

        try:
            raise Validation(
                kind="validation.shape_invalid",
                message="`route` is not a key of a step; did you mean `routes`?",
                details={"line": 14, "column": 5, "fields": ["agents.summarise.route"]},
            )
        except Validation as exc:
            print(failwell.describe(exc).category)  # user_input
        """,
    ),
    "validation.config_invalid": explain(
        """
        The settings of the program, a provider or a capability are wrong: an unknown key, a value
        out of range, a variable that is not set, two options that exclude each other. Nothing was
        started. The operator corrects it, not the caller; wrong data in a single request is
        `validation.input_invalid`.
        """,
        """
        1. Correct every key that the report names.
        2. Look for the file that sets it; the nearest one wins.
        3. Set the missing variable in the environment of this process, not only in your shell.
        """,
        """
        import failwell
        from failwell.capability import CapabilityConfigError

        try:
            raise CapabilityConfigError("unknown keys", fields_invalid=["beam", "langauge"])
        except CapabilityConfigError as exc:
            report = failwell.describe(exc)
            print(report.kind, *report.fields_invalid)  # validation.config_invalid beam langauge
        """,
    ),
    "validation.contract_version_mismatch": explain(
        """
        Two parts were made for different versions of the contract between them: an extension and
        the runtime, a worker and its host, a stored report and its reader. It is found when they
        meet, before work is exchanged. Installed parts that changed since a session was recorded
        are `session.manifest_drift`.
        """,
        """
        1. Compare the two versions in the details.
        2. Update the older part, or install the version of the newer one that still speaks the old
           contract.
        """,
        """
        import failwell
        from failwell.fault.classes import Validation

        try:
            raise Validation(
                kind="validation.contract_version_mismatch",
                message="`jira-tools` was made for contract 1; this runtime speaks 2",
                details={"extension": "jira-tools", "made_for": 1, "runtime": 2},
            )
        except Validation as exc:
            print(failwell.describe(exc).blame)  # host
        """,
    ),
    "validation.input_invalid": explain(
        """
        A value was given that the program cannot accept: a missing argument, a wrong type, text
        that cannot be decoded. A plain `ValueError`, `TypeError` or `KeyError` from a capability
        counts as this, since it mostly means bad arguments. A file that is not there is
        `validation.path_not_found`; arguments of a tool are `tool.input_invalid`.
        """,
        """
        1. Correct the fields that the report names.
        2. Submit the work again; nothing has run.
        """,
        """
        import failwell
        from failwell.capability import CapabilityInputError

        try:
            raise CapabilityInputError("`language` must be a code such as `en`", fields_invalid=["language"])
        except CapabilityInputError as exc:
            report = failwell.describe(exc)
            print(report.kind, *report.fields_invalid)  # validation.input_invalid language
        """,
    ),
    "validation.path_not_found": explain(
        """
        A file or folder was named that does not exist: `FileNotFoundError`, `ENOENT`. Relative
        paths start at the folder of the process, not of the file that names them, unless the
        program says otherwise. A command that cannot be found is `internal.spawn_failed`; a folder
        that stands where a file is expected is `validation.path_wrong_type`.
        """,
        """
        1. Check the spelling and the folder that the path is relative to.
        2. Check that an earlier step really wrote the file.
        3. In a container, check that the volume is mounted.
        """,
        """
        import failwell

        try:
            open("missing/report.csv")
        except FileNotFoundError as exc:
            print(failwell.describe(exc).kind)  # validation.path_not_found
        """,
    ),
    "validation.path_wrong_type": explain(
        """
        The path exists, but is a folder where a file is needed, or the other way round:
        `IsADirectoryError`, `NotADirectoryError`. Often a file name was left off, or a part in the
        middle of the path is a file. A path that does not exist is `validation.path_not_found`.
        """,
        """
        1. Name the file inside the folder, or the folder that holds the file.
        2. Check each part of the path.
        """,
        """
        import errno

        import failwell

        try:
            raise IsADirectoryError(errno.EISDIR, "Is a directory", "reports")
        except IsADirectoryError as exc:
            print(failwell.describe(exc).kind)  # validation.path_wrong_type
        """,
    ),
    "validation.path_denied": explain(
        """
        The operating system does not let this user read, write or execute the file:
        `PermissionError`, `EACCES`, `EPERM`. It also happens on read-only volumes and in sandboxes.
        A tool that one of our own policies refuses is `tool.denied`; a provider that refuses an
        account is `provider.permission`.
        """,
        """
        1. Look at the owner and the mode of the file and of the folders above it.
        2. Change them, or run as a user who has access.
        3. In a container, check the volume's mount options and the user id.
        """,
        """
        import errno

        import failwell

        try:
            raise PermissionError(errno.EACCES, "Permission denied", "/etc/shadow")
        except PermissionError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.category)  # validation.path_denied denied
        """,
    ),
}
