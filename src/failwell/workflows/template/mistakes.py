"""Finds the culprit of a mistake in a template: the undefined name, the expression, its place in the file.

It runs only after a template has failed. Names that the author wrote and types are shown, texts and values are not.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from failwell.files.suggestions import nearest
from failwell.workflows.template.data_views import type_name
from failwell.workflows.template.lookup import MISSING, NEVER_RAN, Names
from failwell.workflows.template.names import assigned_names, path_of, tags
from failwell.workflows.template.syntax.expressions import parse_expression
from failwell.workflows.template.syntax.source_guard import tag_expressions
from failwell.workflows.template.syntax.tokenizer import Token, expression_tokens, template_tokens
from failwell.workflows.template.syntax.tree import Expression
from failwell.workflows.template.template_errors import (
    LIMITS,
    TIMEOUTS,
    MistakeType,
    TemplateMistake,
)

_LONGEST = 80
_LONGEST_TEXT = 100_000
"""Characters of a template that is searched for the culprit."""
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_SPACE = re.compile(r"\s+")
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]{0,40}")
_WITH_EXCERPT = frozenset({
    MistakeType.COMPARISON, MistakeType.OPERATION, MistakeType.ARGUMENTS, MistakeType.UNDEFINED,
})  # fmt: skip


def explain(mistake: TemplateMistake, text: str, names: Names, *, is_expression: bool) -> TemplateMistake:
    """The mistake with its line, and with words that name the culprit."""
    if mistake.type in LIMITS or mistake.type in TIMEOUTS or len(text) > _LONGEST_TEXT:
        return mistake
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    line = mistake.line
    if line is None and mistake.place is not None:
        line = text.count("\n", 0, mistake.place[0]) + 1
    detail = mistake.detail or mistake.engine_types
    try:
        found = _tags_on(text, line, is_expression=is_expression)
        missing = None
        if detail is None and mistake.type is MistakeType.UNDEFINED:
            missing = _missing_path(found, text, names, is_expression=is_expression)
        if missing is not None:
            detail, line = missing
        elif mistake.type in _WITH_EXCERPT:
            place = mistake.place
            if place is None and len(found) == 1 and len(found[0]) == 1:
                place, line = (found[0][0].start, found[0][0].end), line or found[0][0].line
            if place is not None:
                source = f"in `{excerpt(text[slice(*place)])}`"
                types = "" if detail is not None else _types_of(found, names, place)
                detail = f"{source}{types}" if detail is None else f"{detail}, {source}"
    except TemplateMistake:
        pass  # the text cannot be parsed, and the mistake says so
    return TemplateMistake(mistake.type, line, detail=detail, place=mistake.place)


def excerpt(source: str) -> str:
    """An expression for a message: without its texts, which may be secrets, and not too long."""
    line = _SPACE.sub(" ", _QUOTED.sub("'…'", source)).strip()
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _tags_on(text: str, line: int | None, *, is_expression: bool) -> list[list[Expression]]:
    """The expressions of each tag on a line; of all tags if the line is not known."""
    if is_expression:
        return [[parse_expression(expression_tokens(text)[:-1])]]
    found: list[list[Expression]] = []
    for tag in tags(template_tokens(text)):
        if line is None or tag[0][2] <= line <= tag[-1][2]:
            expressions = tag_expressions(tag[0][0], tag[1:-1], tag[0][2])
            if expressions:
                found.append(expressions)
    return found


def _missing_path(
    found: list[list[Expression]], text: str, names: Names, *, is_expression: bool
) -> tuple[str, int] | None:
    """The first path that does not exist, in words, and its line."""
    local_names: set[str] = set() if is_expression else _local_names(template_tokens(text))
    for expressions in found:
        for expression in expressions:
            for part in _unguarded(expression):
                path = path_of(part)
                if path and path[0] not in local_names:
                    words = _missing(path, names)
                    if words is not None:
                        return words, part.line
    return None


def _local_names(tokens: list[Token]) -> set[str]:
    return {name for tag in tags(tokens) for name in assigned_names(tag)} | {"loop", "self", "caller"}


def _unguarded(expression: Expression) -> Iterator[Expression]:
    """The paths of an expression for which it has no `default` and no `is defined`."""
    if expression.kind == "filters" and expression.parts[1].name in {"default", "d"}:
        for step in expression.parts[1:]:
            for argument in step.arguments:
                yield from _unguarded(argument)
    elif expression.kind == "test" and expression.value in {"defined", "undefined"}:
        return
    else:
        if expression.kind in {"name", "chain"}:
            yield expression
        for part in expression.inner():
            if not (expression.kind == "chain" and part is expression.parts[0] and part.kind == "name"):
                yield from _unguarded(part)


def _missing(path: tuple[str, ...], names: Names) -> str | None:
    """Words about the first step of a path that does not exist; `None` if all do."""
    value: Any = names.get(path[0])
    if value is NEVER_RAN:
        return f"`{'.'.join(path)}`, because the step `{path[0]}` has not run"
    if value is MISSING:
        known = cast("Any", getattr(names, "known", list))()
        if path[0] in known:
            return f"`{path[0]}`, which the context mode hides here"
        return f"`{path[0]}`{_suggestion(path[0], known)}"
    for index, step in enumerate(path[1:], 1):
        shown = ".".join(path[: index + 1])
        if isinstance(value, dict):
            mapping = cast("dict[str, Any]", value)
            if step not in mapping:
                return f"`{shown}`{_suggestion(step, [key for key in mapping if _PLAIN_KEY.fullmatch(str(key))])}"
            value = mapping[step]
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            if not step.lstrip("-").isdecimal() or not -len(items) <= int(step) < len(items):
                return f"`{shown}`, as `{'.'.join(path[:index])}` is a list of {len(items)}"
            value = items[int(step)]
        else:
            return f"`{shown}`, as `{'.'.join(path[:index])}` is {type_name(value)}"
    return None


def _types_of(found: list[list[Expression]], names: Names, place: tuple[int, int]) -> str:
    """The types of the values that an expression reads, in words."""
    types: dict[str, str] = {}
    for expressions in found:
        for expression in expressions:
            for part in _unguarded(expression):
                path = path_of(part)
                if path and place[0] <= part.start and part.end <= place[1]:
                    value = _value_of(path, names)
                    if value is not MISSING:
                        types[".".join(path)] = type_name(value)
    words = [f"`{path}` is {name}" for path, name in [*types.items()][:3]]
    return f", where {' and '.join(words)}" if words else ""


def _value_of(path: tuple[str, ...], names: Names) -> Any:
    value: Any = names.get(path[0])
    for step in path[1:]:
        if isinstance(value, dict) and step in value:
            value = cast("dict[str, Any]", value)[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[int(step)]
        else:
            return MISSING
    return MISSING if value is NEVER_RAN else value


def _suggestion(name: str, known: list[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean `{near}`?" if near else ""
