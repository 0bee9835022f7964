"""PyYAML's errors: the place and the rule, never the snippet."""

from typing import Any

from failwell.adapters.ask import ask, ask_int
from failwell.adapters.reading import Reading
from failwell.adapters.registry import Table


def _read(error: BaseException) -> Reading:
    mark: Any = ask(error, "problem_mark", "context_mark")
    line, column = ask_int(mark, "line"), ask_int(mark, "column")
    where = {} if line is None or column is None else {"line": line + 1, "column": column + 1}
    at = f" at line {where['line']}, column {where['column']}" if where else ""
    return Reading(
        kind="validation.shape_invalid",
        rule=f"yaml.{type(error).__name__}",
        saw=type(error).__name__,
        message=f"The text is not valid YAML{at}.",
        details=where,
    )


TABLES: dict[str, Table] = {"yaml": {"YAMLError": _read}}
