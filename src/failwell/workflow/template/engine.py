"""Sets up minijinja, renders guarded sources with it, and turns its errors into `TemplateMistake`."""

import re
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from operator import is_
from threading import Lock
from typing import Any, NamedTuple

from failwell.workflow.template.data_views import is_view, unwrapped, view
from failwell.workflow.template.filters import FILTERS, INNER, MISSING_VALUE, bounded
from failwell.workflow.template.lookup import MISSING, Names
from failwell.workflow.template.memory_budget import LARGEST, begin, take, taken
from failwell.workflow.template.source_guard import Source, guarded, guarded_expression
from failwell.workflow.template.template_errors import Sort, TemplateMistake
from failwell.workflow.template.tokens import named_in, template_tokens

FUEL = 2_000_000
"""Instructions of one rendering, where it cannot write much with each."""
_REMEMBERED = 4096
_ROOM = 64 * 1024 * 1024
_PYTHON_FILTERS = frozenset(FILTERS)

ReadPart = Callable[[str, str], tuple[str, str] | None]
"""Gives the text of a part and its folder, by its name and the folder of who asks for it."""

_SORTS = {
    "SyntaxError": Sort.SYNTAX,
    "UndefinedError": Sort.UNDEFINED,
    "UnknownFilter": Sort.UNKNOWN_FILTER,
    "UnknownTest": Sort.UNKNOWN_TEST,
    "UnknownFunction": Sort.UNKNOWN_FUNCTION,
    "UnknownMethod": Sort.UNKNOWN_FUNCTION,
    "UnknownBlock": Sort.SYNTAX,
    "TooManyArguments": Sort.ARGUMENTS,
    "MissingArgument": Sort.ARGUMENTS,
    "TemplateNotFound": Sort.PART,
    "BadInclude": Sort.PART,
    "OutOfFuel": Sort.STEPS,
}
_DETAILS = {
    "recursion limit exceeded": Sort.DEPTH,
    "range has too many elements": Sort.MEMORY,
    "repeated string is too large": Sort.MEMORY,
    "repeated sequence is too large": Sort.MEMORY,
    "template exceeds maximum recursion limits": Sort.DEPTH,
}
"""What the engine says of itself, word for word. No text of a template or of the data comes into these."""


_NAME = re.compile(r"[^\W\d]\w*")


_HIDING = re.compile(r"\[[^\]]*:|\{%[-+]?\s*(?:include|import|from|extends|filter|autoescape)\b")


def hides_names(text: str) -> bool:
    """Whether a text may use names that the engine does not list as undeclared, such as before `[1:]`."""
    return _HIDING.search(text) is not None


class _Ready(NamedTuple):
    name: str
    names: tuple[str, ...]
    """What it looks up."""


class Engine:
    """Compiles and renders. With `read`, templates may include parts; the asking folder is in their names."""

    def __init__(self, read: ReadPart | None = None, fuel: int = FUEL) -> None:
        self._read = read
        self._fuel = fuel
        self._tiers: dict[int, Any] = {}
        self._ready: OrderedDict[tuple[str, str | None], tuple[Any, _Ready]] = OrderedDict()
        self._known: dict[tuple[Sort, str], bool] = {}
        self._count = 0
        self._lock = Lock()

    def render(self, text: str, folder: str | None, names: Names) -> str:
        """The text that a template renders to. Raises `TemplateMistake`."""
        engine, ready = self._compiled(text, folder)
        data: dict[str, Any] = {}
        for name in ready.names:
            value = names.get(name)
            if value is not MISSING:
                data[name] = view(value)
        begin()
        output: str = guarded_call(engine.render_template, ready.name, **data)
        if len(output) > LARGEST:
            raise TemplateMistake(Sort.MEMORY)
        return output

    def check(self, text: str, folder: str | None) -> None:
        """Compile a template, and find filters and tests that do not exist."""
        self._compiled(text, folder)
        for sort, name, line in named_in(template_tokens(text)):
            if not self._knows(sort, name):
                raise TemplateMistake(sort, line)

    def _knows(self, sort: Sort, name: str) -> bool:
        known = self._known.get((sort, name))
        if known is None:
            word = "filter" if sort is Sort.UNKNOWN_FILTER else "test"
            known = self._known[sort, name] = bool(
                guarded_call(self._tier(0).eval_expr, f'"{name}" is {word}')
            )
        return known

    def _compiled(self, text: str, folder: str | None) -> tuple[Any, _Ready]:
        key = (text, folder)
        with self._lock:
            compiled = self._ready.get(key)
            if compiled is None:
                compiled = self._ready[key] = self._compile(text, folder)
                if len(self._ready) > _REMEMBERED:
                    _, (engine, old) = self._ready.popitem(last=False)
                    engine.remove_template(old.name)
            return compiled

    def _compile(self, text: str, folder: str | None) -> tuple[Any, _Ready]:
        source = guarded(text, _PYTHON_FILTERS)
        names = set[str]()
        largest = self._look_through(source, folder, names, set())
        engine = self._tier(largest)
        self._count += 1
        name = f"{folder or ''}\0{self._count}"
        guarded_call(engine.add_template, name, source.text)
        return engine, _Ready(name, tuple(sorted(names)))

    def _look_through(
        self, source: Source, folder: str | None, names: set[str], visited: set[tuple[str, str]]
    ) -> int:
        """Collect the names that a template and its parts look up; gives the largest text they may repeat."""
        names |= guarded_call(self._tier(0).undeclared_variables_in_str, source.text)
        if hides_names(source.text):
            names |= set(_NAME.findall(source.text))
        largest = source.largest
        for wanted in source.parts:
            parts = None if self._read is None or folder is None else self._read(wanted, folder)
            if parts is None or parts in visited:
                continue
            visited.add(parts)
            part = guarded(parts[0], _PYTHON_FILTERS)
            # A part may stand in a loop of its host, so all of it may be repeated.
            largest = max(largest, len(parts[0]), self._look_through(part, parts[1], names, visited))
        return largest

    def _tier(self, largest: int) -> Any:
        """The engine whose fuel does not suffice to write `largest` more often than there is room for."""
        fuel = self._fuel
        while fuel > 2_000 and fuel // 4 * largest > _ROOM:
            fuel //= 10
        if fuel not in self._tiers:
            self._tiers[fuel] = new_environment(fuel, self._load if self._read is not None else None)
        return self._tiers[fuel]

    def _load(self, name: str) -> str | None:
        folder, _, wanted = name.rpartition("\1")
        source = None if self._read is None else self._read(wanted, folder)
        return None if source is None else guarded(source[0], _PYTHON_FILTERS).text


class Condition(NamedTuple):
    """An expression by itself, as a template that writes `1` if it holds."""

    source: str
    dotted: frozenset[str]
    """Names in it that a dot or a bracket follows."""


_CONDITION = (
    "{% set _value = EXPR %}{% if not (_value is string or _value is number or _value is boolean or _value is none"
    " or _value is mapping or _value is iterable) %}{{ _value|_no_value }}{% endif %}{% if _value %}1{% endif %}"
)


def condition(text: str) -> Condition:
    """`text`, as a template that the engine can be given. Raises `TemplateMistake`."""
    expression, dotted = guarded_expression(text, _PYTHON_FILTERS)
    # An undefined value passes all tests but the last, which the engine refuses by itself.
    source = _CONDITION.replace("_value is string", "_value is not defined or _value is string")
    return Condition(source.replace("EXPR", f"({expression})", 1), dotted)


def guarded_call(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call the engine. Any error becomes a `TemplateMistake`, which quotes neither template nor data."""
    problem: TemplateMistake
    try:
        return call(*args, **named)
    except TemplateMistake as mistake:
        problem = mistake
    except RecursionError:
        problem = TemplateMistake(Sort.DEPTH)
    except MemoryError:
        problem = TemplateMistake(Sort.MEMORY)
    except BaseException as error:
        # The engine and the filters raise whatever Python does, and its errors quote the data. A panic of the
        # engine is no `Exception`; neither is a cancellation or an interrupt, which is not ours to handle.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        problem = _mistake(error)
    raise problem


def _mistake(error: BaseException) -> TemplateMistake:
    sort = _SORTS.get(getattr(error, "kind", ""), Sort.OPERATION)
    sort = _DETAILS.get(getattr(error, "detail", None) or "", sort)
    return TemplateMistake(sort, getattr(error, "line", None))


def new_environment(fuel: int, load: Callable[[str], str | None] | None) -> Any:
    """An environment of the engine with everything that templates may use, and a fixed number of steps."""
    from minijinja import Environment

    engine: Any = Environment(
        undefined_behavior="strict", keep_trailing_newline=True, debug=False, fuel=fuel, finalizer=_written
    )
    engine.auto_escape_callback = _no_escape
    engine.remove_global("debug")
    for name, function in (*FILTERS.items(), *INNER.items(), ("_no_value", _no_value)):
        engine.add_filter(name, function)
    engine.add_global("_missing", MISSING_VALUE)
    for name, expected in (("None", None), ("True", True), ("False", False)):
        engine.add_test(name, partial(is_, expected))
    for name, function in (
        ("int", _int),
        ("float", _float),
        ("str", _str),
        ("bool", _bool),
        ("len", _len),
        ("abs", _abs),
    ):
        engine.add_global(name, function)
    if load is not None:
        engine.loader = load
        engine.path_join_callback = _joined
    return engine


def _joined(name: str, parent: str) -> str:
    """The name of a part as the engine keeps it: the folder of who asks for it, and what it asks for."""
    folder = parent.partition("\0")[0] if "\0" in parent else _folder_of(parent)
    return f"{folder}\1{name}"


def _folder_of(parent: str) -> str:
    folder, _, wanted = parent.rpartition("\1")
    head, _, _ = wanted.rpartition("/")
    return f"{folder}/{head}" if head else folder


def _no_escape(_: str) -> bool:
    return False


def _written(value: Any) -> Any:
    """Write as Python does, and take the room: a loop over a large value must end before memory does."""
    if value is None:
        return NotImplemented  # it may be an undefined one, and only the engine knows
    if isinstance(value, str):
        return taken(value)
    if isinstance(value, int | float):
        take(1)
        # A whole one may be a fraction that is to be written as one, and only the engine knows.
        return NotImplemented if isinstance(value, int) else repr(value)
    return taken(str(value if is_view(value) else bounded(unwrapped(value))))


def _str(value: Any = "") -> str:
    return value if type(value) is str else str(unwrapped(value))


def _no_value(_: Any) -> str:
    raise TemplateMistake(Sort.RESULT)


# Functions of our own, because Python's types have methods that a template would reach.


def _int(value: Any = 0) -> int:
    return int(value)


def _float(value: Any = 0.0) -> float:
    return float(value)


def _bool(value: Any = False) -> bool:
    return bool(value)


def _len(value: Any) -> int:
    return len(value)


def _abs(value: Any) -> Any:
    return abs(value)
