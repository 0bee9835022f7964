"""Every filter, test and function that the engine gets from here."""

from collections.abc import Callable
from functools import partial
from operator import is_
from typing import Any

from failwell.workflows.template.data_views import MISSING_VALUE, behind, unwrapped, view
from failwell.workflows.template.functions.filters import FILTERS as PLAIN_FILTERS
from failwell.workflows.template.functions.filters import checked_value, default_filter, strict
from failwell.workflows.template.functions.markup import forceescape, urlize, xmlattr
from failwell.workflows.template.functions.methods import call_method, call_safe_method
from failwell.workflows.template.functions.operators import (
    TESTS as OPERATOR_TESTS,
)
from failwell.workflows.template.functions.operators import (
    absolute,
    arithmetic,
    big,
    compare,
    negate,
    path,
    total,
)
from failwell.workflows.template.functions.ordering import ORDERING

FILTERS: dict[str, Callable[..., Any]] = {
    **PLAIN_FILTERS,
    **{function.__name__: strict(function.__name__, function) for function in (forceescape, urlize, xmlattr)},
    **{name: strict(name, function) for name, function in ORDERING.items()},
}
"""Filters by name. Undefined values are marked before each of them: see `rewriting`."""

INNER: dict[str, Callable[..., Any]] = {
    "_kept": checked_value, "_default": default_filter, "_d": default_filter, "_compare": compare,
    "_arithmetic": arithmetic, "_negate": negate, "_path": path, "_method": call_method,
    "_safe_method": call_safe_method, "_sum": strict("sum", total), "_abs": strict("abs", absolute),
}  # fmt: skip
"""Filters that are only used by rewritten templates."""

TESTS: dict[str, Callable[..., bool]] = {
    **OPERATOR_TESTS,
    **{name: partial(is_, constant) for name, constant in (("None", None), ("True", True), ("False", False))},
}


# Functions instead of Python's types, whose methods a template could call.


def _int(value: Any = 0) -> Any:
    return view(int(behind(value)))


def _float(value: Any = 0.0) -> float:
    return float(behind(value))


def _bool(value: Any = False) -> bool:
    return bool(value)


def _len(value: Any) -> int:
    return len(value)


def _str(value: Any = "") -> str:
    return value if type(value) is str else str(unwrapped(value))


FUNCTIONS: dict[str, Any] = {
    "int": _int, "float": _float, "str": _str, "bool": _bool, "len": _len, "abs": absolute, "_big": big,
    "_missing": MISSING_VALUE,
}  # fmt: skip
ENGINE_FUNCTIONS = frozenset({"range", "dict", "namespace", "cycler", "joiner"})
"""Functions that the engine has itself."""
