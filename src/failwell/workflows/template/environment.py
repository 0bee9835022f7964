"""Sets up minijinja, renders guarded sources with it, and turns its errors into `TemplateMistake`."""

import re
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, cast

from failwell.workflows.template.data_views import is_missing, is_view, unwrapped, view
from failwell.workflows.template.functions.filters import bounded
from failwell.workflows.template.functions.library import FILTERS, FUNCTIONS, INNER, TESTS
from failwell.workflows.template.lookup import MISSING, Names
from failwell.workflows.template.memory_budget import LARGEST, spend, spend_text, start_budget, was_undefined
from failwell.workflows.template.syntax.called_names import called_names, suggestion, uncalled_functions
from failwell.workflows.template.syntax.source_guard import Source, guarded, guarded_expression
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

FUEL = 2_000_000
"""Instructions of one rendering, if each writes little."""
_CACHE_SIZE = 4096
_MAX_OUTPUT = 64 * 1024 * 1024
_PYTHON_FILTERS = frozenset(FILTERS)
_UNKNOWN = frozenset({MistakeType.UNKNOWN_FILTER, MistakeType.UNKNOWN_TEST, MistakeType.UNKNOWN_FUNCTION})

ReadPart = Callable[[str, str], tuple[str, str] | None]
"""Returns the text of a part and its folder, by its name and the folder of the including template."""

_TYPES = {
    "SyntaxError": MistakeType.SYNTAX,
    "UndefinedError": MistakeType.UNDEFINED,
    "UnknownFilter": MistakeType.UNKNOWN_FILTER,
    "UnknownTest": MistakeType.UNKNOWN_TEST,
    "UnknownFunction": MistakeType.UNKNOWN_FUNCTION,
    "UnknownMethod": MistakeType.UNKNOWN_FUNCTION,
    "UnknownBlock": MistakeType.SYNTAX,
    "TooManyArguments": MistakeType.ARGUMENTS,
    "MissingArgument": MistakeType.ARGUMENTS,
    "TemplateNotFound": MistakeType.PART,
    "BadInclude": MistakeType.PART,
    "OutOfFuel": MistakeType.STEPS,
}
_DETAILS = {
    "recursion limit exceeded": MistakeType.DEPTH,
    "range has too many elements": MistakeType.MEMORY,
    "repeated string is too large": MistakeType.MEMORY,
    "repeated sequence is too large": MistakeType.MEMORY,
    "template exceeds maximum recursion limits": MistakeType.DEPTH,
}
"""Messages of the engine, word for word. They contain no text of a template or of the data."""


_NAME = re.compile(r"[^\W\d]\w*")
_TYPE = "(undefined|bool|number|none|string|sequence|map|iterable|plain object)"
_ENGINE_TYPES = re.compile(
    rf"\b(?:of type|got|convert) {_TYPE}\b|\A{_TYPE} is not iterable|\A[a-z ]+ \({_TYPE}\)\Z"
)
_TYPE_NAMES = {
    "bool": "boolean", "none": "null", "string": "text", "sequence": "list", "map": "mapping", "iterable": "list",
    "plain object": "object",
}  # fmt: skip
"""The engine's names of types, in our words."""


_HIDING = re.compile(r"\[[^\]]*:|\{%[-+]?\s*(?:include|import|from|extends|filter|autoescape)\b|\bself\b")


def hides_names(text: str) -> bool:
    """Whether a text may use names that the engine does not list, such as before `[1:]`, or `self`."""
    return _HIDING.search(text) is not None


class _CompiledTemplate(NamedTuple):
    name: str
    names: tuple[str, ...]
    """The names that it looks up."""
    uncalled: tuple[tuple[str, int], ...]
    """Functions that it would write, unless a value has their name; each with its line."""


class Engine:
    """Compiles and renders templates. `read_part` allows includes; their names contain the folder."""

    def __init__(self, read_part: ReadPart | None = None, fuel: int = FUEL) -> None:
        self._read_part = read_part
        self._fuel = fuel
        self._tiers: dict[int, Any] = {}
        self._templates: OrderedDict[tuple[str, str | None, bool], tuple[Any, _CompiledTemplate]] = (
            OrderedDict()
        )
        self._exists: dict[tuple[MistakeType, str], bool] = {}
        self._count = 0
        self._lock = Lock()

    def render(self, text: str, folder: str | None, names: Names) -> str:
        """The text that a template renders to. Raises `TemplateMistake`."""
        try:
            return self._render(text, folder, names, exact=False)
        except TemplateMistake as mistake:
            if mistake.type is not MistakeType.OPERATION or mistake.detail is not None:
                raise
        # The engine knows neither whole numbers of any size nor `%` of texts, and does not say which types it refuses.
        return self._render(text, folder, names, exact=True)

    def _render(self, text: str, folder: str | None, names: Names, *, exact: bool) -> str:
        engine, template = self._compiled(text, folder, exact=exact)
        data: dict[str, Any] = {}
        for name in template.names:
            value = names.get(name)
            if value is not MISSING:
                data[name] = view(value)
        for name, line in template.uncalled:
            if name not in data:
                raise TemplateMistake(MistakeType.RESULT, line, detail=f"`{name}` is a function")
        start_budget()
        output: str = call_with_names(engine, "render_template", template.name, data)
        if len(output) > LARGEST:
            raise TemplateMistake(MistakeType.MEMORY)
        if was_undefined():
            raise TemplateMistake(MistakeType.UNDEFINED)
        return output

    def check(self, text: str, folder: str | None) -> None:
        """Compile a template, and find filters, tests, functions and methods that do not exist."""
        self._compiled(text, folder)
        for mistake_type, name, line, detail in called_names(text):
            if detail is not None or not self._has(mistake_type, name):
                raise TemplateMistake(mistake_type, line, detail=detail or suggestion(mistake_type, name))

    def named(self, mistake: TemplateMistake, text: str, folder: str | None) -> TemplateMistake:
        """A mistake about something unknown, with its name."""
        if mistake.detail is None and mistake.type in _UNKNOWN:
            try:
                self.check(text, folder)
            except TemplateMistake as named:
                return named if named.type is mistake.type else mistake
        return mistake

    def _has(self, mistake_type: MistakeType, name: str) -> bool:
        exists = self._exists.get((mistake_type, name))
        if exists is None:
            word = "filter" if mistake_type is MistakeType.UNKNOWN_FILTER else "test"
            if not name.isidentifier():
                return name in TESTS
            exists = self._exists[mistake_type, name] = bool(
                guarded_call(self._tier(0).eval_expr, f'"{name}" is {word}')
            )
        return exists

    def _compiled(
        self, text: str, folder: str | None, *, exact: bool = False
    ) -> tuple[Any, _CompiledTemplate]:
        key = (text, folder, exact)
        with self._lock:
            compiled = self._templates.get(key)
            if compiled is None:
                compiled = self._templates[key] = self._compile(text, folder, exact=exact)
                if len(self._templates) > _CACHE_SIZE:
                    _, (engine, old) = self._templates.popitem(last=False)
                    engine.remove_template(old.name)
            return compiled

    def _compile(self, text: str, folder: str | None, *, exact: bool) -> tuple[Any, _CompiledTemplate]:
        source = guarded(text, _PYTHON_FILTERS, exact=exact)
        names = set[str]()
        largest = self._collect_names(source, folder, names, set())
        engine = self._tier(largest)
        self._count += 1
        name = f"{folder or ''}\0{self._count}"
        guarded_call(engine.add_template, name, source.text)
        looked_up = tuple(sorted(names.difference(FUNCTIONS)))
        return engine, _CompiledTemplate(name, looked_up, tuple(uncalled_functions(text)))

    def _collect_names(
        self, source: Source, folder: str | None, names: set[str], visited: set[tuple[str, str]]
    ) -> int:
        """Collect the names that a template and its parts look up; returns the largest text they may repeat."""
        names |= guarded_call(self._tier(0).undeclared_variables_in_str, source.text)
        if hides_names(source.text):
            names |= set(_NAME.findall(source.text))
        largest = source.largest
        for name in source.parts:
            part = None if self._read_part is None or folder is None else self._read_part(name, folder)
            if part is None or part in visited:
                continue
            visited.add(part)
            text, part_folder = part
            part_source = guarded(text, _PYTHON_FILTERS, is_part=True)
            # A part may be included in a loop, so all of it may be repeated.
            largest = max(largest, len(text), self._collect_names(part_source, part_folder, names, visited))
        return largest

    def _tier(self, largest: int) -> Any:
        """The engine whose fuel is too low to write `largest` more often than the output limit allows."""
        fuel = self._fuel
        while fuel > 2_000 and fuel // 4 * largest > _MAX_OUTPUT:
            fuel //= 10
        if fuel not in self._tiers:
            self._tiers[fuel] = new_environment(fuel, self._load if self._read_part is not None else None)
        return self._tiers[fuel]

    def _load(self, name: str) -> str | None:
        folder, _, part = name.rpartition("\1")
        source = None if self._read_part is None else self._read_part(part, folder)
        return None if source is None else guarded(source[0], _PYTHON_FILTERS, is_part=True).text


class Condition(NamedTuple):
    """An expression as a template that writes `1` if it holds."""

    source: str
    dotted: frozenset[str]
    """Its names that are followed by a dot or a bracket."""


_PREFIX = "{% set _value = ("
_CONDITION = (
    "{% set _value = (EXPR) %}{% if not (_value is not defined or _value is string or _value is number or _value is boolean or _value is none"
    " or _value is mapping or _value is iterable) %}{{ _value|_no_value }}{% endif %}{% if _value %}1{% endif %}"
)


def condition(text: str) -> Condition:
    """The expression `text` as a template. Raises `TemplateMistake`."""
    _, dotted = guarded_expression(text, _PYTHON_FILTERS)
    # An undefined value passes all tests but the last one, which the engine refuses itself.
    return Condition(_CONDITION.replace("EXPR", text, 1), dotted)


def without_prefix(mistake: TemplateMistake) -> TemplateMistake:
    """A mistake in the template of a condition, with its place in the condition."""
    if mistake.place is not None:
        start, end = mistake.place
        mistake.place = (start - len(_PREFIX), end - len(_PREFIX)) if end else None
    return mistake


def guarded_call(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call the engine. Any error becomes a `TemplateMistake`, which quotes neither template nor data."""
    problem: TemplateMistake
    try:
        return call(*args, **kwargs)
    except TemplateMistake as mistake:
        problem = mistake
    except RecursionError:
        problem = TemplateMistake(MistakeType.DEPTH)
    except MemoryError:
        problem = TemplateMistake(MistakeType.MEMORY)
    except BaseException as error:
        # The engine and the filters raise any Python error, and errors quote data. A panic of the engine is not an
        # `Exception`; neither is a cancellation or an interrupt, which is raised again.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        problem = _mistake(error)
    raise problem


def call_with_names(engine: Any, method: str, text: str, values: dict[str, Any]) -> Any:
    """`guarded_call` of a method of the engine with the values of names, which may be any names.

    The method of the base class is called: the wrapper around it has a parameter of its own, `self`.
    """
    base = cast("Any", super(type(engine), engine))
    return guarded_call(getattr(base, method), text, **values)


def _mistake(error: BaseException) -> TemplateMistake:
    mistake_type = _TYPES.get(getattr(error, "kind", ""), MistakeType.OPERATION)
    mistake_type = _DETAILS.get(getattr(error, "detail", None) or "", mistake_type)
    mistake = TemplateMistake(mistake_type, getattr(error, "line", None))
    types = _ENGINE_TYPES.search(str(getattr(error, "detail", None) or ""))
    if types is not None:
        word = str(types[types.lastindex or 1])
        mistake.engine_types = f"of {_TYPE_NAMES.get(word, word)}"
    return mistake


def new_environment(fuel: int, load: Callable[[str], str | None] | None) -> Any:
    """An environment of the engine with all filters and functions, and a limited number of steps."""
    from minijinja import Environment

    engine: Any = Environment(
        undefined_behavior="strict", keep_trailing_newline=True, debug=False, fuel=fuel, finalizer=_written
    )
    engine.auto_escape_callback = _no_escape
    engine.remove_global("debug")
    for name, function in (*FILTERS.items(), *INNER.items(), ("_no_value", _no_value)):
        engine.add_filter(name, function)
    for name, function in TESTS.items():
        engine.add_test(name, function)
    for name, function in FUNCTIONS.items():
        engine.add_global(name, function)
    if load is not None:
        engine.loader = load
        engine.path_join_callback = _joined
    return engine


def _joined(name: str, parent: str) -> str:
    """The name of a part for the engine: the folder of the including template, and the included name."""
    folder = parent.partition("\0")[0] if "\0" in parent else _folder_of(parent)
    return f"{folder}\1{name}"


def _folder_of(parent: str) -> str:
    folder, _, part = parent.rpartition("\1")
    head, _, _ = part.rpartition("/")
    return f"{folder}/{head}" if head else folder


def _no_escape(_: str) -> bool:
    return False


def _written(value: Any) -> Any:
    """The text of a value as Python writes it. Its size is spent from the budget."""
    if value is None:
        return NotImplemented  # only the engine knows whether it is undefined
    if isinstance(value, str):
        return spend_text(value)
    if is_missing(value):
        raise TemplateMistake(MistakeType.UNDEFINED)
    if isinstance(value, int | float):
        spend(1)
        # Only the engine knows whether an integer was written as a fraction.
        return NotImplemented if isinstance(value, int) else repr(value)
    return spend_text(str(value if is_view(value) else bounded(unwrapped(value))))


def _no_value(value: Any) -> str:
    raise TemplateMistake(MistakeType.UNDEFINED if is_missing(value) else MistakeType.RESULT)
