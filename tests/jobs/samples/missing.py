# pyright: basic, reportMissingImports=false
import a_module_that_nobody_has  # noqa: F401


class Never: ...
