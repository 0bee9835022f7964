"""The filters, tests, functions and methods that a template calls, and suggestions for those that do not exist."""

import re
from collections.abc import Iterator
from itertools import pairwise

from failwell.files.suggestions import nearest
from failwell.workflows.template.functions.library import ENGINE_FUNCTIONS, FILTERS, FUNCTIONS, TESTS
from failwell.workflows.template.functions.methods import METHOD_NAMES, replacement
from failwell.workflows.template.names import assigned_names, tags
from failwell.workflows.template.syntax.source_guard import OBJECTS, tag_expressions
from failwell.workflows.template.syntax.tokenizer import template_tokens
from failwell.workflows.template.syntax.tree import Expression, Step
from failwell.workflows.template.template_errors import MistakeType

CalledName = tuple[MistakeType, str, int, str | None]
"""The mistake if it does not exist, the name, the line, and words if it surely does not exist."""

_ENGINE_FILTERS = (
    "abs", "attr", "capitalize", "count", "default", "e", "escape", "filesizeformat", "first", "items", "last",
    "length", "list", "lower", "map", "pprint", "reject", "rejectattr", "reverse", "safe", "select", "selectattr",
    "string", "striptags", "sum", "title", "trim", "unique", "upper", "urlencode",
)  # fmt: skip
_ENGINE_TESTS = (
    "boolean", "defined", "divisibleby", "endingwith", "eq", "equalto", "escaped", "even", "false", "filter", "float",
    "integer", "iterable", "lower", "mapping", "ne", "none", "odd", "sameas", "sequence", "startingwith", "string",
    "test", "true", "undefined", "upper",
)  # fmt: skip
_INSTEAD = {
    "random": "a run must give the same result again; draw the number in a script",
}
"""Filters of Jinja2 that do not exist here, and why."""


def suggestion(mistake_type: MistakeType, name: str) -> str:
    """Words about an unknown name, with the similar one."""
    if mistake_type is MistakeType.UNKNOWN_FILTER and name in _INSTEAD:
        return f"`{name}`; {_INSTEAD[name]}"
    valid = {
        MistakeType.UNKNOWN_FILTER: (*FILTERS, *_ENGINE_FILTERS),
        MistakeType.UNKNOWN_TEST: (*TESTS, *_ENGINE_TESTS),
    }.get(mistake_type, (*FUNCTIONS, *ENGINE_FUNCTIONS))
    near = nearest(name, [word for word in valid if not word.startswith("_")])
    return f"`{name}`; did you mean `{near}`?" if near else f"`{name}`"


def called_names(text: str) -> Iterator[CalledName]:
    """Every filter, test, function and method of a template. Raises `TemplateMistake`."""
    found = list(tags(template_tokens(text)))
    local_names = OBJECTS.union(*(assigned_names(tag) for tag in found))
    macros = frozenset(str(tag[2][1]) for tag in found if len(tag) > 2 and tag[1][1] == "macro")
    for tag in found:
        for expression in tag_expressions(tag[0][0], tag[1:-1], tag[0][2]):
            for part in expression.walk():
                yield from _called_in(part, local_names | macros)


_UNCALLED = re.compile(rf"(?<![.\w])(?:{'|'.join(sorted((*FUNCTIONS, *ENGINE_FUNCTIONS)))})\b(?!\s*[(.\[])")


def uncalled_functions(text: str) -> Iterator[tuple[str, int]]:
    """The functions that a template writes instead of what they return, each with its line. Raises `TemplateMistake`.

    The engine would write a name of its own for them, which is no JSON value.
    """
    if _UNCALLED.search(text) is None:
        return
    found = list(tags(template_tokens(text)))
    local_names = OBJECTS.union(*(assigned_names(tag) for tag in found))
    for tag in found:
        if tag[0][0] == "out":
            for expression in tag_expressions("out", tag[1:-1], tag[0][2]):
                yield from (
                    (name, line) for name, line in _uncalled_in(expression) if name not in local_names
                )


def _uncalled_in(expression: Expression) -> Iterator[tuple[str, int]]:
    if expression.kind == "name":
        if expression.value in FUNCTIONS or expression.value in ENGINE_FUNCTIONS:
            yield str(expression.value), expression.line
        return
    parts = list(expression.inner())
    if expression.kind == "test" or (expression.kind == "chain" and parts[0].kind == "name"):
        # Whether `range` is defined is a value, and so is what a function returns.
        parts = parts[1:]
    for part in parts:
        yield from _uncalled_in(part)


def _called_in(expression: Expression, local_names: frozenset[str]) -> Iterator[CalledName]:
    if expression.kind == "filters":
        for step in expression.parts[1:]:
            yield MistakeType.UNKNOWN_FILTER, step.name, expression.line, None
            yield from _named_by_text(step, expression.line)
    elif expression.kind == "test":
        yield MistakeType.UNKNOWN_TEST, str(expression.value), expression.line, None
    elif expression.kind == "chain":
        yield from _calls(expression, local_names)


def _named_by_text(step: Step, line: int) -> Iterator[CalledName]:
    """The filter in `map('upper')` and the test in `select('odd')`."""
    index = {"map": 0, "select": 0, "reject": 0, "selectattr": 1, "rejectattr": 1}.get(step.name)
    if index is None or len(step.arguments) <= index or step.names_argument(index):
        return
    argument = step.arguments[index]
    if argument.kind == "const" and isinstance(argument.value, str):
        mistake_type = MistakeType.UNKNOWN_FILTER if step.name == "map" else MistakeType.UNKNOWN_TEST
        yield mistake_type, argument.value, line, None


def _calls(expression: Expression, local_names: frozenset[str]) -> Iterator[CalledName]:
    base, *steps = expression.parts
    is_local = base.kind == "name" and base.value in local_names
    if steps[0].kind == "call" and base.kind == "name" and not is_local:
        name = str(base.value)
        if name not in FUNCTIONS and name not in ENGINE_FUNCTIONS:
            words = suggestion(MistakeType.UNKNOWN_FUNCTION, name)
            yield MistakeType.UNKNOWN_FUNCTION, name, expression.line, words
    if is_local:
        return
    for step, following in pairwise(steps):
        if step.kind == "attribute" and following.kind == "call":
            words = _method(step.name)
            if words is not None:
                yield MistakeType.UNKNOWN_FUNCTION, step.name, expression.line, words


def _method(name: str) -> str | None:
    instead = replacement(name)
    if instead is not None:
        return f"`{name}` would change data, which are read-only in a template; write {instead}"
    if name in METHOD_NAMES:
        return None
    near = nearest(name, METHOD_NAMES)
    return f"`{name}`; did you mean `{near}`?" if near else f"`{name}`"
