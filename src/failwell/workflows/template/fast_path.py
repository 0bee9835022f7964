"""Renders short, simple templates without the source guard.

A workflow of 100,000 steps has as many templates, most of them one `{{ }}` that is rendered once. A short
text without blocks cannot exhaust the engine, so it is rendered as written, or rewritten where it compares or calls
a method. Whatever fails here is rendered again by `Engine`, which reports the mistake.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

from failwell.workflows.template.data_views import view
from failwell.workflows.template.environment import (
    FUEL,
    call_with_names,
    guarded_call,
    hides_names,
    new_environment,
)
from failwell.workflows.template.functions.filters import default_filter
from failwell.workflows.template.functions.library import FILTERS, FUNCTIONS
from failwell.workflows.template.lookup import MISSING, NEVER_RAN, FlatNames, Names
from failwell.workflows.template.memory_budget import LARGEST, start_budget, was_undefined
from failwell.workflows.template.syntax.called_names import uncalled_functions
from failwell.workflows.template.syntax.source_guard import guarded, guarded_expression
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

_LONGEST = 300
_PYTHON_FILTERS = frozenset(FILTERS)
_CACHE_SIZE = 4096
_TAGS = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_REWRITTEN = re.compile(r"[<>]|\d{19}|\b(?:in|is|and|or)\b|\w\s*\(")
"""Comparisons, large numbers, tests, steps as conditions, and calls other than those of filters."""
_PRODUCTS = re.compile(r"\*[^*]+\*")
_FILTER_CALLS = re.compile(r"\|\s*\w+\(")
_DOTTED = re.compile(r"""'[^']*'|"[^"]*"|([^\W\d]\w*)\s*[.\[]""")
_TRUTHS: frozenset[type] = frozenset({bool, int, float})

NamePaths = tuple[tuple[str, tuple[str, ...]], ...]
"""The names a template uses, each with the path that is read from it; empty if several paths are read."""


class _NullInput(Exception):
    """A filter received `None`, which may be null or undefined."""


class _FastTemplate:
    """A short template. It is compiled and cached at its second rendering."""

    __slots__ = ("_compiled", "_paths", "_templates", "_text", "_was_rendered")

    def __init__(self, source: "_Source") -> None:
        self._text = source.text
        self._paths = source.paths
        self._templates = _compiled_templates(source.is_rewritten)
        self._was_rendered = False
        self._compiled = -1

    def render(self, names: Names) -> str | None:
        """The rendered text, or `None` if rendering failed."""
        templates = self._templates
        values = _values_of(self._paths, names)
        if not self._was_rendered:
            self._was_rendered = True
            return _call_engine(templates, "render_str", self._text, values)
        if self._compiled != templates.generation:
            templates.add(self._text)
            self._compiled = templates.generation
        return _call_engine(templates, "render_template", self._text, values)


class _Source(NamedTuple):
    text: str
    paths: NamePaths
    is_rewritten: bool
    dotted: frozenset[str] = frozenset()
    """The names of an expression that are followed by a dot or a bracket."""


class _CompiledTemplates:
    """The engine's environment with its cached templates; the cache is emptied when it is full."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.generation = 0
        self._count = 0

    def add(self, text: str) -> None:
        self._count += 1
        if self._count > _CACHE_SIZE:
            self.environment.clear_templates()
            self.generation += 1
            self._count = 1
        self.environment.add_template(text, text)


def render_fast(text: str, names: Names) -> str | None:
    """The text that a template renders to, or `None` if it needs the source guard or fails."""
    template = _fast_template(text)
    output = None if template is None else template.render(names)
    return output if output is not None and len(output) <= LARGEST else None


def holds_fast(text: str, names: Names) -> bool | None:
    """Whether an expression holds, or `None` if it needs the source guard or fails."""
    source = _expression(text)
    if source is None:
        return None
    values = _values_of(source.paths, FlatNames(names, source.dotted))
    result = _call_engine(_compiled_templates(source.is_rewritten), "eval_expr", source.text, values)
    # `None` may be an undefined value, and a text may be the engine's name of a function.
    return bool(result) if type(result) in _TRUTHS else None


def _values_of(paths: NamePaths, names: Names) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, path in paths:
        value = names.get(name)
        if value is not MISSING and value is not NEVER_RAN:
            values[name] = _narrow(path, value)
    return values


def _narrow(path: tuple[str, ...], value: object) -> Any:
    """`value` reduced to what is at `path`, which saves creating a view for each step."""
    part = value
    for step in path:
        if not isinstance(part, dict) or step not in part:
            return view(value)
        part = cast("dict[str, object]", part)[step]
    part = view(part)
    for step in reversed(path):
        part = {step: part}
    return part


def _call_engine(templates: _CompiledTemplates, method: str, text: str, values: dict[str, Any]) -> Any:
    start_budget()
    try:
        result = call_with_names(templates.environment, method, text, values)
    except TemplateMistake:
        # `Engine` fails in the same way and reports it.
        return None
    return None if was_undefined() else result


@lru_cache(maxsize=_CACHE_SIZE)
def _fast_template(text: str) -> _FastTemplate | None:
    if not _is_short(text):
        return None
    is_rewritten = any(_REWRITTEN.search(_FILTER_CALLS.sub("|", tag)) for tag in _TAGS.findall(text))
    try:
        if any(uncalled_functions(text)):
            return None
        source = guarded(text, _PYTHON_FILTERS).text if is_rewritten else text
        return _FastTemplate(_Source(source, _names_in(source, is_rewritten=is_rewritten), is_rewritten))
    except TemplateMistake:
        # `Engine` reports what cannot be parsed.
        return None


@lru_cache(maxsize=_CACHE_SIZE)
def _expression(text: str) -> _Source | None:
    if "\\" in text or "}" in text or "{" in text or not _is_short(text):
        return None
    try:
        if _REWRITTEN.search(_FILTER_CALLS.sub("|", text)):
            source, dotted = guarded_expression(text, _PYTHON_FILTERS)
            paths = _names_in("{{ " + source + " }}", is_rewritten=True)
            return _Source(source, paths, is_rewritten=True, dotted=dotted)
        paths = _names_in("{{ " + text + " }}", is_rewritten=False)
        return _Source(text, paths, is_rewritten=False, dotted=frozenset(_DOTTED.findall(text)))
    except TemplateMistake:
        return None


def _is_short(text: str) -> bool:
    return len(text) <= _LONGEST and "{%" not in text and "\r" not in text and not hides_names(text)  # fmt: skip


def _names_in(text: str, *, is_rewritten: bool) -> NamePaths:
    if _PRODUCTS.search(text):
        raise TemplateMistake(MistakeType.MEMORY)
    environment = _compiled_templates(is_rewritten).environment
    dotted: set[str] = guarded_call(environment.undeclared_variables_in_str, text, nested=True)
    names: dict[str, tuple[str, ...]] = {}
    for path in dotted:
        name, *steps = path.split(".")
        if name not in FUNCTIONS:
            names[name] = () if name in names else tuple(steps)
    return tuple(names.items())


@cache
def _compiled_templates(is_rewritten: bool) -> _CompiledTemplates:
    return _CompiledTemplates(new_environment(FUEL, None) if is_rewritten else _environment())


def _environment() -> Any:
    environment = new_environment(FUEL, None)
    for name, function in FILTERS.items():
        environment.add_filter(name, _refuse_null(function))
    for name in ("default", "d"):
        environment.add_filter(name, _default)
    return environment


def _default(value: Any, default: Any = "", boolean: Any = False) -> Any:
    if default is None:
        raise _NullInput
    return default_filter(value, default, boolean)


def _refuse_null(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        if value is None:
            raise _NullInput
        return function(value, *args, **kwargs)

    return call
