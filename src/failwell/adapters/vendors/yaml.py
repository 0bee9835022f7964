"""PyYAML's errors: the place and the rule, never the snippet."""

from typing import Any

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.errors.foreign_objects import int_attr, safe_getattr


def _read(error: BaseException) -> Classification:
    mark: Any = safe_getattr(error, "problem_mark", "context_mark")
    line, column = int_attr(mark, "line"), int_attr(mark, "column")
    where = {} if line is None or column is None else {"line": line + 1, "column": column + 1}
    at = f" at line {where['line']}, column {where['column']}" if where else ""
    return Classification.from_rule(
        kind="validation.shape_invalid",
        rule=f"yaml.{type(error).__name__}",
        saw=type(error).__name__,
        message=f"The text is not valid YAML{at}.",
        details=where,
    )


# The classes below `YAMLError` by their names, for logs: those of a live exception are found by its base.
_NAMES = "YAMLError MarkedYAMLError ReaderError ScannerError ParserError ComposerError ConstructorError RepresenterError"
TABLES: dict[str, Table] = {"yaml": dict.fromkeys(_NAMES.split(), _read)}
