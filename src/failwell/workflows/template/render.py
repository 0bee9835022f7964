"""Renders the templates of a workflow.

Only the names that a template uses are looked up. Every error becomes one of three faults. They hold the
place of the template, the line in it, the type of mistake and the names of what caused it, and never data.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from failwell.errors.fault import Fault
from failwell.workflows.plan import Template, Value
from failwell.workflows.template.environment import Engine
from failwell.workflows.template.fast_path import render_fast
from failwell.workflows.template.lookup import Names
from failwell.workflows.template.mistakes import explain
from failwell.workflows.template.template_errors import (
    LIMITS,
    TIMEOUTS,
    MistakeType,
    TemplateMistake,
)

_LARGEST_PART = 1_000_000


class _Failed(Fault):
    """A template could not be evaluated."""

    sort: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    inner_line: int | None = None

    def summary(self) -> str:
        """The type of mistake and the place of the template."""
        column = f":{self.column}" if self.column is not None else ""
        place = f" at {self.file}:{self.line}{column}" if self.file is not None else ""
        inner = f", on line {self.inner_line} of its text" if (self.inner_line or 1) > 1 else ""
        return f"template{place} failed{inner}: {self.sort}"


class TemplateFailed(_Failed, kind="internal.template_error"):
    """A template or a condition cannot be evaluated, as written or with these data."""

    @property
    def is_undefined(self) -> bool:
        """Whether it uses a value that does not exist."""
        return self.sort.startswith(MistakeType.UNDEFINED)


class SandboxLimit(_Failed, kind="internal.sandbox_error"):
    """A template or a condition exceeded its memory or depth, or its result is not JSON."""


class SandboxTimeout(_Failed, kind="internal.sandbox_timeout"):
    """A template or a condition exceeded its steps."""


def fault(mistake: TemplateMistake, template: Template) -> TemplateFailed | SandboxLimit | SandboxTimeout:
    """The fault for `mistake`, without data."""
    cls = TemplateFailed
    if mistake.type in TIMEOUTS:
        cls = SandboxTimeout
    elif mistake.type in LIMITS:
        cls = SandboxLimit
    fields: dict[str, Any] = {}
    place, line = template.place_of(mistake.line), mistake.line
    if place is not None:
        fields = {"file": place.file, "line": place.line, "column": place.column}
        if template.first_line is not None and line is not None:
            fields["column"], line = None, None
    return cls(sort=mistake.words, inner_line=line, **fields)


class Parts(Protocol):
    """Where `include`, `import` and `extends` look up other templates."""

    def read(self, name: str, folder: str, /) -> tuple[str, str] | None:
        """The text of a part and its folder, relative to `folder`; `None` if it does not exist."""
        ...


class FolderParts:
    """Parts that are files, in the folder of the including template or below, and inside `root`.

    `resolve` expands `${VAR}` in each text.
    """

    __slots__ = ("_resolve", "_root", "_texts")

    def __init__(self, root: str, resolve: Callable[[str], str] | None = None) -> None:
        self._root = Path(root).resolve()
        self._resolve = resolve
        self._texts: dict[Path, str] = {}

    def find(self, name: str, folder: str) -> Path | None:
        """The file `name` with links resolved, if it may be read."""
        if name.startswith("/") or "\\" in name or "\0" in name or ":" in name or ".." in name.split("/"):
            return None
        file = (self._root / folder / name).resolve()
        return file if file.is_relative_to(self._root) and file.is_file() else None

    def read(self, name: str, folder: str, /) -> tuple[str, str] | None:
        """The text of the file, read once."""
        file = self.find(name, folder)
        if file is None:
            return None
        if file not in self._texts:
            if file.stat().st_size > _LARGEST_PART:
                raise TemplateMistake(MistakeType.LENGTH)
            text = file.read_text(encoding="utf-8")
            self._texts[file] = text if self._resolve is None else self._resolve(text)
        return self._texts[file], str(file.parent)


def render(template: Template, names: Names, parts: Parts | None = None) -> str:
    """The text that `template` renders to.

    Raises:
        TemplateFailed: it cannot be evaluated, as written or with these data.
        SandboxLimit: it exceeds the memory or the depth.
        SandboxTimeout: it exceeds the number of steps.
    """
    if template.is_plain:
        return template.text
    text = render_fast(template.text, names)
    if text is not None:
        return text
    problem: TemplateMistake
    engine = engine_for(template, parts)
    try:
        return engine.render(template.text, template.folder, names)
    except TemplateMistake as mistake:
        problem = mistake
    if template.written is not None:
        # The same mistake, with the line that the file has it on.
        render(template.unfolded(), names, parts)
    problem = engine.named(problem, template.text, template.folder)
    # Raised here, the fault has no context with the original error, which may quote data.
    raise fault(explain(problem, template.text, names, is_expression=False), template)


def render_value(value: Value, names: Names, parts: Parts | None = None) -> Any:
    """`value` with every template in it rendered to text."""
    if isinstance(value, Template):
        return render(value, names, parts)
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, Any]", value)
        return {key: render_value(part, names, parts) for key, part in mapping.items()}
    if isinstance(value, list | tuple):
        return [render_value(part, names, parts) for part in cast("list[Any]", value)]
    return value


class SyntaxMistake(NamedTuple):
    """A mistake in the syntax of a template."""

    line: int
    """The line in the template, counted from 1."""
    type: str
    detail: str | None = None
    """What exactly is wrong, with names and without values."""

    @property
    def without_line(self) -> str:
        """The type and what is wrong."""
        return self.type if self.detail is None else f"{self.type}: {self.detail}"

    def __str__(self) -> str:
        detail = "" if self.detail is None else f": {self.detail}"
        return f"{self.type} on line {self.line}{detail}"


def syntax_mistake(
    template: Template, *, condition: bool = False, parts: Parts | None = None
) -> SyntaxMistake | None:
    """The syntax mistake of `template`, found without rendering it; `None` if there is none.

    With `condition`, a text without `{{ }}` is an expression.
    """
    if condition and not is_rendered(template):
        from failwell.workflows.template.condition import check

        mistake = _mistake(lambda: check(template.text))
    elif template.is_plain:
        return None
    else:
        mistake = _mistake(lambda: engine_for(template, parts).check(template.text, template.folder))
    if mistake is not None and template.written is not None:
        return syntax_mistake(template.unfolded(), condition=condition, parts=parts) or mistake
    return mistake


def _mistake(compile_it: Callable[[], object]) -> SyntaxMistake | None:
    try:
        compile_it()
    except TemplateMistake as mistake:
        return SyntaxMistake(mistake.line or 1, mistake.type.value, mistake.detail)
    return None


def is_rendered(condition: Template) -> bool:
    """Whether a condition is a template, and not an expression."""
    return "{{" in condition.text and "}}" in condition.text


_ENGINES: OrderedDict[int, tuple[Parts, Engine]] = OrderedDict()
_PLAIN = Engine()
_MOST_ENGINES = 16


def engine_for(template: Template, parts: Parts | None) -> Engine:
    """The engine for `template`: one shared by all without parts, and one for each source of parts."""
    if "{%" not in template.text or not _NAMES_PARTS.search(template.text):
        return _PLAIN
    if parts is None:
        if template.folder is None:
            return _PLAIN
        parts = _folder_parts(template.folder)
    if id(parts) not in _ENGINES:
        # The parts are stored with their engine, so that their id is not reused.
        _ENGINES[id(parts)] = (parts, Engine(parts.read))
        if len(_ENGINES) > _MOST_ENGINES:
            _ENGINES.popitem(last=False)
    return _ENGINES[id(parts)][1]


@lru_cache(maxsize=_MOST_ENGINES)
def _folder_parts(folder: str) -> FolderParts:
    return FolderParts(folder)


_NAMES_PARTS = re.compile(r"\{%[-+]?\s*(?:include|import|from|extends)\b")
