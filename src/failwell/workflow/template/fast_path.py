"""Renders short, simple templates without the source guard.

A workflow of 100,000 steps has as many templates, most of them one `{{ }}` that is rendered once. A short
text without blocks and without methods that grow a text cannot exhaust the engine, so it is rendered
as written. Whatever fails here is rendered again by `Engine`, which reports the mistake.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, cast

from failwell.workflow.template.data_views import view
from failwell.workflow.template.engine import (
    FUEL,
    call_with_names,
    guarded_call,
    hides_names,
    new_environment,
)
from failwell.workflow.template.functions.filters import FILTERS, METHODS, default_filter
from failwell.workflow.template.lookup import MISSING, FlatNames, Names
from failwell.workflow.template.memory_budget import LARGEST, start_budget
from failwell.workflow.template.template_errors import TemplateMistake

_LONGEST = 300
_CACHE_SIZE = 4096
_NOT_FAST = re.compile(r"\{%|\r|\*[^*]+\*|\.\s*(?:" + "|".join(METHODS) + r")\b")
_DOTTED = re.compile(r"""'[^']*'|"[^"]*"|([^\W\d]\w*)\s*[.\[]""")
_TRUTHS: frozenset[type] = frozenset({bool, int, float})

NamePaths = tuple[tuple[str, tuple[str, ...]], ...]
"""The names a template uses, each with the path that is read from it; empty if several paths are read."""


class _NullInput(Exception):
    """A filter received `None`, which may be null or undefined."""


class _FastTemplate:
    """A template that is rendered as written. It is compiled and cached at its second rendering."""

    __slots__ = ("_compiled", "_paths", "_text", "_was_rendered")

    def __init__(self, text: str, paths: NamePaths) -> None:
        self._text = text
        self._paths = paths
        self._was_rendered = False
        self._compiled = -1

    def render(self, names: Names) -> str | None:
        """The rendered text, or `None` if rendering failed."""
        environment = _compiled_templates()
        values = _values_of(self._paths, names)
        if not self._was_rendered:
            self._was_rendered = True
            return _call_engine("render_str", self._text, values)
        if self._compiled != environment.generation:
            environment.add(self._text)
            self._compiled = environment.generation
        return _call_engine("render_template", self._text, values)


class _CompiledTemplates:
    """The engine's environment with its cached templates; the cache is emptied when it is full."""

    def __init__(self) -> None:
        self.environment = _environment()
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
    expression = _expression(text)
    if expression is None:
        return None
    paths, dotted = expression
    result = _call_engine("eval_expr", text, _values_of(paths, FlatNames(names, dotted)))
    # `None` may be an undefined value, and a text may be the engine's name of a function.
    return bool(result) if type(result) in _TRUTHS else None


def _values_of(paths: NamePaths, names: Names) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, path in paths:
        value = names.get(name)
        if value is not MISSING:
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


def _call_engine(method: str, text: str, values: dict[str, Any]) -> Any:
    start_budget()
    try:
        return call_with_names(_compiled_templates().environment, method, text, values)
    except TemplateMistake:
        # `Engine` fails in the same way and reports it.
        return None


@lru_cache(maxsize=_CACHE_SIZE)
def _fast_template(text: str) -> _FastTemplate | None:
    paths = _names_in(text)
    return None if paths is None else _FastTemplate(text, paths)


@lru_cache(maxsize=_CACHE_SIZE)
def _expression(text: str) -> tuple[NamePaths, frozenset[str]] | None:
    """The names that an expression looks up, and those that are followed by a dot or a bracket."""
    paths = None if "\\" in text or "}" in text or "{" in text else _names_in("{{ " + text + " }}")
    return None if paths is None else (paths, frozenset(_DOTTED.findall(text)))


def _names_in(text: str) -> NamePaths | None:
    if len(text) > _LONGEST or hides_names(text) or _NOT_FAST.search(text):
        return None
    try:
        dotted: set[str] = guarded_call(
            _compiled_templates().environment.undeclared_variables_in_str, text, nested=True
        )
    except TemplateMistake:
        # `Engine` reports what cannot be parsed.
        return None
    names: dict[str, tuple[str, ...]] = {}
    for path in dotted:
        name, *steps = path.split(".")
        names[name] = () if name in names else tuple(steps)
    return tuple(names.items())


@cache
def _compiled_templates() -> _CompiledTemplates:
    return _CompiledTemplates()


def _environment() -> Any:
    environment = new_environment(FUEL, None)
    for name, function in FILTERS.items():
        environment.add_filter(name, _refuse_null(function))
    for name in ("default", "d"):
        environment.add_filter(name, default_filter)
    return environment


def _refuse_null(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        if value is None:
            raise _NullInput
        return function(value, *args, **kwargs)

    return call
