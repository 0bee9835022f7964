"""Renders the templates of a workflow, and evaluates its conditions.

Only the names that a template uses are looked up. Every error becomes one of three faults. They hold the
place of the template, the line in it, the type of mistake and the names of what caused it, and never data.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from failwell.errors.fault import Fault
from failwell.workflows.plan import Template, Value
from failwell.workflows.template.limits import LARGEST, MAX_BITS
from failwell.workflows.template.mistakes import LIMITS, TIMEOUTS, MistakeType, TemplateMistake
from failwell.workflows.template.names import MISSING, NEVER_RAN, FlatNames, Names, is_expression

if TYPE_CHECKING:
    from failwell.workflows.template.environment import Environment

_LARGEST_PART = 1_000_000
_LONGEST = 1_000_000
"""Characters of a template."""
_LONGEST_TAGS = 50_000
"""Characters of its tags, and of a condition: what Jinja2 compiles."""


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


_DOTTED = re.compile(r"\{\{[ \t]*([^\W\d]\w*(?:\.[^\W\d]\w*)*)[ \t]*\}\}")
_WORDS = frozenset(
    {"true", "false", "none", "True", "False", "None", "not", "self", "loop", "caller", "super"}
)


def _plainly(text: str, names: Names) -> str | None:
    """A text with tags that are dotted names, without loading Jinja2; `None` if it is more, or a value is missing."""
    pieces = _DOTTED.split(text)
    if any("{{" in piece or "{%" in piece or "{#" in piece for piece in pieces[::2]):
        return None
    for index, path in enumerate(pieces[1::2]):
        name, *steps = path.split(".")
        value: Any = MISSING if name in _WORDS else names.get(name)
        for step in steps:
            value = cast("dict[str, Any]", value).get(step, MISSING) if isinstance(value, dict) else MISSING
        if value is MISSING or value is NEVER_RAN:
            return None
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            return None  # Python does not print it
        pieces[2 * index + 1] = str(value)
    pieces[::2] = [piece.replace("\r\n", "\n").replace("\r", "\n") for piece in pieces[::2]]  # as Jinja2 does
    output = "".join(pieces)
    return output if len(output) <= LARGEST else None


def render(template: Template, names: Names, parts: Parts | None = None) -> str:
    """The text that `template` renders to.

    Raises:
        TemplateFailed: it cannot be evaluated, as written or with these data.
        SandboxLimit: it exceeds the size or the depth.
        SandboxTimeout: it exceeds the number of steps.
    """
    if template.is_plain:
        return template.text
    text = _plainly(template.text, names)
    return _evaluated(template, names, parts, condition=False) if text is None else text


def holds(when: Template, names: Names, *, flat: Names | None = None, parts: Parts | None = None) -> bool:
    """Whether the condition `when` is true. With `{{ }}` it is rendered, and its text read as true or false.

    Without, it is an expression over flattened and dotted names. `flat` has these names; the default is built from
    `names`. Raises the faults of `render`.
    """
    if not is_expression(when):
        return read_truth(render(when, names, parts))
    return _evaluated(when, names if flat is None else flat, parts, condition=True, is_flat=flat is not None)


_FALSE = frozenset({"false", "0", "no", ""})


def read_truth(text: str) -> bool:
    """Whether the text of a rendered condition is true: `false`, `0`, `no` and an empty text are false."""
    return text.strip().lower() not in _FALSE


def _evaluated(
    template: Template, names: Names, parts: Parts | None, *, condition: bool, is_flat: bool = False
) -> Any:
    """The text of a template, or the truth of a condition without braces."""
    from failwell.workflows.template.environment import LookupDefect
    from failwell.workflows.template.explain import explained, mistake_of

    environment = environment_for(template, parts)
    compiled: Any = None
    problem: TemplateMistake
    try:
        _check_length(template.text, condition=condition)
        if condition:
            compiled, dotted = environment.condition(template.text)
            names = names if is_flat else FlatNames(names, dotted)
            return environment.truth(compiled, names)
        compiled = environment.template(template.text, template.folder)
        return environment.render(compiled, names)
    except LookupDefect as defect:
        raise defect.error from None
    except Exception as error:  # noqa: BLE001  (a filter raises any error, and each becomes a fault)
        problem = mistake_of(error, compiled)
    if template.written is not None:
        # The same mistake, with the line that the file has it on.
        _evaluated(template.unfolded(), names, parts, condition=condition, is_flat=True)
    # Raised here, the fault has no context with the original error, which may quote data.
    raise fault(explained(problem, template.text, names, condition=condition), template)


def _check_length(text: str, *, condition: bool) -> None:
    tags = len(text) if condition else sum(map(len, _TAGS.findall(text)))
    if len(text) > _LONGEST or tags > _LONGEST_TAGS:
        raise TemplateMistake(MistakeType.LENGTH)


_TAGS = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)


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
    is_bare = condition and is_expression(template)
    if template.is_plain and not is_bare:
        return None
    from failwell.workflows.template.explain import mistake_of

    environment = environment_for(template, parts)
    try:
        _check_length(template.text, condition=is_bare)
        (environment.condition if is_bare else environment.check)(template.text)
        return None
    except Exception as error:  # noqa: BLE001  (a mistake in a template may be any error of the compiler)
        found = mistake_of(error)
    mistake = SyntaxMistake(found.line or 1, found.type.value, found.detail)
    if template.written is not None:
        return syntax_mistake(template.unfolded(), condition=condition, parts=parts) or mistake
    return mistake


_MOST_ENVIRONMENTS = 16
_ENVIRONMENTS: OrderedDict[int, tuple[Parts, "Environment"]] = OrderedDict()
_NAMES_PARTS = re.compile(r"\{%[-+]?\s*(?:include|import|from|extends)\b")


def environment_for(template: Template, parts: Parts | None) -> "Environment":
    """The environment for `template`: one shared by all without parts, and one for each source of parts."""
    if "{%" not in template.text or not _NAMES_PARTS.search(template.text):
        return _shared_environment()
    if parts is None:
        if template.folder is None:
            return _shared_environment()
        parts = _folder_parts(template.folder)
    if id(parts) not in _ENVIRONMENTS:
        from failwell.workflows.template.environment import Environment

        # The parts are stored with their environment, so that their id is not reused.
        _ENVIRONMENTS[id(parts)] = (parts, Environment(parts.read))
        if len(_ENVIRONMENTS) > _MOST_ENVIRONMENTS:
            _ENVIRONMENTS.popitem(last=False)
    return _ENVIRONMENTS[id(parts)][1]


@cache
def _shared_environment() -> "Environment":
    from failwell.workflows.template.environment import Environment

    return Environment()


@lru_cache(maxsize=_MOST_ENVIRONMENTS)
def _folder_parts(folder: str) -> FolderParts:
    return FolderParts(folder)
