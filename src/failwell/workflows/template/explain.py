"""Puts what Jinja2 raises into words: the type of mistake, the line, the undefined name, the tag.

It runs only after a template has failed. Names that the author wrote and types are shown, texts and values are not.
"""

import re
from typing import Any, cast

from jinja2 import Template as JinjaTemplate
from jinja2 import TemplateError
from jinja2.exceptions import SecurityError, TemplateNotFound, TemplateSyntaxError, UndefinedError

from failwell.files.suggestions import nearest
from failwell.workflows.template.environment import Environment
from failwell.workflows.template.mistakes import (
    LIMITS,
    TIMEOUTS,
    TYPE_NAMES,
    MistakeType,
    TemplateMistake,
    type_name,
)
from failwell.workflows.template.names import MISSING, NEVER_RAN, Names
from failwell.workflows.template.references import lines_of

_LEXER = Environment()
_LONGEST = 80
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_SPACE = re.compile(r"\s+")
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]{0,40}")
_UNCLOSED = re.compile(r"needs to be closed is '(\w+)'")
_UNKNOWN_TAG = re.compile(r"Encountered unknown tag '(\w+)'")
_NOT_ITERABLE = re.compile(r"'(\w+)' object is not iterable|cannot unpack non-iterable (\w+) object")
_WITH_EXCERPT = frozenset({
    MistakeType.COMPARISON, MistakeType.OPERATION, MistakeType.ARGUMENTS, MistakeType.UNDEFINED,
})  # fmt: skip
_TYPES: tuple[tuple[type[BaseException], MistakeType], ...] = (
    (UndefinedError, MistakeType.UNDEFINED), (SecurityError, MistakeType.UNDEFINED), (TemplateNotFound, MistakeType.PART),
    (RecursionError, MistakeType.DEPTH), (MemoryError, MistakeType.MEMORY), (SyntaxError, MistakeType.DEPTH),
)  # fmt: skip
"""Python raises a `SyntaxError` for code that is nested too deeply."""


def mistake_of(error: Exception, template: JinjaTemplate | None = None) -> TemplateMistake:
    """The mistake for what was raised when `template` was compiled or rendered; its text may quote data."""
    line = None if template is None else _line_in(template, error)
    if isinstance(error, TemplateMistake):
        error.line = line or error.line
        return TemplateMistake(error.type, error.line, detail=error.detail)
    if isinstance(error, TemplateSyntaxError):
        part = (error.name or "").rpartition("\1")[2] if "\1" in (error.name or "") else None
        if part is not None:
            return TemplateMistake(
                MistakeType.PART, line, detail=f"{_syntax(error)}, on its line {error.lineno}"
            )
        return TemplateMistake(MistakeType.SYNTAX, error.lineno, detail=_syntax(error))
    mistake_type = next((kind for cls, kind in _TYPES if isinstance(error, cls)), MistakeType.OPERATION)
    if isinstance(error, ValueError) and template is None:
        mistake_type = MistakeType.SYNTAX  # a number with too many digits
    mistake = TemplateMistake(mistake_type, line)
    words = _NOT_ITERABLE.match(str(error)) if isinstance(error, TypeError) else None
    if words is not None:
        mistake.detail = f"a loop over {TYPE_NAMES.get(words[1] or words[2], 'object')}"
    elif isinstance(error, TemplateError) and "non-namespace" in str(error):
        mistake.detail = "only a `namespace` has attributes to `set`"
    return mistake


def _line_in(template: JinjaTemplate, error: BaseException) -> int | None:
    """The last line of the template that an error passed through."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is template:
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line


def _syntax(error: TemplateSyntaxError) -> str:
    """Jinja2's words for a mistake in the syntax, which quote names and never texts."""
    message = error.message or ""
    if unclosed := _UNCLOSED.search(message):
        return f"`{unclosed[1]}` is never closed by `end{unclosed[1]}`"
    if unknown := _UNKNOWN_TAG.search(message):
        word = unknown[1]
        return f"`{word}` closes nothing" if word.startswith("end") else f"there is no tag `{word}`"
    if "end of comment" in message:
        return "`{#` begins a comment that is never closed; write `{{ '{#' }}` for these characters, as in `${#list[@]}`"
    if message.startswith(("unexpected 'end of", "Expected an expression, got 'end of")):
        return "the end of the tag is not expected"
    message = re.sub(r" at \d+$", "", message.partition(". ")[0]).rstrip(".").replace("'", "`")
    return message[:1].lower() + message[1:]


def explained(mistake: TemplateMistake, text: str, names: Names, *, condition: bool) -> TemplateMistake:
    """The mistake with words that name the culprit."""
    if mistake.type in LIMITS or mistake.type in TIMEOUTS:
        return mistake
    tags = [(1, 1, text)] if condition else _tags_on(text, mistake.line)
    detail = mistake.detail
    if detail is None and mistake.type is MistakeType.UNDEFINED:
        lines = range(tags[0][0], tags[-1][1] + 1) if tags else range(0)
        detail = next(
            (
                words
                for path, guarded, line in lines_of(text, condition=condition)
                if line in lines and not guarded and (words := _missing(path, names)) is not None
            ),
            None,
        )
        if detail is not None:
            return TemplateMistake(mistake.type, mistake.line, detail=detail)
    if mistake.type in _WITH_EXCERPT and len(tags) == 1:
        source = f"in `{_excerpt(tags[0][2])}`"
        detail = source if detail is None else f"{detail}, {source}"
    return TemplateMistake(mistake.type, mistake.line, detail=detail)


def _tags_on(text: str, line: int | None) -> list[tuple[int, int, str]]:
    """Each tag on a line: its first and last line, and its source."""
    found: list[tuple[int, int, str]] = []
    start, source = 0, ""
    try:
        for number, kind, value in _LEXER.lex(text):
            if kind in {"variable_begin", "block_begin"}:
                start, source = number, ""
            elif kind in {"variable_end", "block_end"}:
                if line is None or start <= line <= number:
                    found.append((start, number, source))
            elif kind != "data":
                source += value
    except TemplateError:
        pass  # what cannot be parsed has a mistake of its own
    return found


def _excerpt(source: str) -> str:
    """A tag for a message: without its texts, which may be secrets, and not too long."""
    line = _SPACE.sub(" ", _QUOTED.sub("'…'", source)).strip()
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


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


def _suggestion(name: str, known: list[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean `{near}`?" if near else ""
