"""The short way for short texts: rendered without being looked through first.

A workflow of 100,000 steps has as many templates, most of them one `{{ }}` that is met once. What has no
blocks, few characters and no method that grows a text cannot harm the engine, so it goes there as it
stands. Whatever does not come out well is left to the long way, which knows what to say of it.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, cast

from failwell.workflow.template.data_views import view
from failwell.workflow.template.engine import FUEL, hides_names, new_environment, watched
from failwell.workflow.template.filters import FILTERS, METHODS, default_filter
from failwell.workflow.template.lookup import MISSING, FlatNames, Names
from failwell.workflow.template.memory_budget import LARGEST, begin
from failwell.workflow.template.template_errors import TemplateMistake

_LONGEST = 300
_REMEMBERED = 4096
_NOT_QUICK = re.compile(r"\{%|\r|\*[^*]+\*|\.\s*(?:" + "|".join(METHODS) + r")\b")
_DOTTED = re.compile(r"""'[^']*'|"[^"]*"|([^\W\d]\w*)\s*[.\[]""")
_TRUTHS: frozenset[type] = frozenset({bool, int, float})

Wanted = tuple[tuple[str, tuple[str, ...]], ...]
"""Names, each with the one path that is followed from it; an empty path where there is not just one."""


class _Unsure(Exception):
    """A filter got nothing, and cannot tell null from undefined."""


class _Quick:
    """A template that may go to the engine as it stands. Met a second time, it is compiled and kept."""

    __slots__ = ("_compiled", "_met", "_text", "_wanted")

    def __init__(self, text: str, wanted: Wanted) -> None:
        self._text = text
        self._wanted = wanted
        self._met = False
        self._compiled = -1

    def render(self, names: Names) -> str | None:
        """The text, or nothing."""
        environment = _kept()
        values = _given(self._wanted, names)
        if not self._met:
            self._met = True
            return _tried(environment.environment.render_str, self._text, values)
        if self._compiled != environment.generation:
            environment.add(self._text)
            self._compiled = environment.generation
        return _tried(environment.environment.render_template, self._text, values)


class _Kept:
    """The environment, and how many templates it holds. When they are too many it forgets them all."""

    def __init__(self) -> None:
        self.environment = _environment()
        self.generation = 0
        self._count = 0

    def add(self, text: str) -> None:
        self._count += 1
        if self._count > _REMEMBERED:
            self.environment.clear_templates()
            self.generation += 1
            self._count = 1
        self.environment.add_template(text, text)


def quick_text(text: str, names: Names) -> str | None:
    """The text that a template gives, or nothing if it is not for here."""
    quick = _quick(text)
    output = None if quick is None else quick.render(names)
    return output if output is not None and len(output) <= LARGEST else None


def quick_truth(text: str, names: Names) -> bool | None:
    """Whether an expression holds, or nothing if it is not for here."""
    found = _expression(text)
    if found is None:
        return None
    wanted, dotted = found
    made = _tried(_kept().environment.eval_expr, text, _given(wanted, FlatNames(names, dotted)))
    # Null could be an undefined value as well, and a text what the engine makes of a function.
    return bool(made) if type(made) in _TRUTHS else None


def _given(wanted: Wanted, names: Names) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, path in wanted:
        value = names.get(name)
        if value is not MISSING:
            given[name] = _along(path, value)
    return given


def _along(path: tuple[str, ...], value: object) -> Any:
    """`value` with nothing in it but what `path` leads to, which spares a view at every step."""
    held = value
    for step in path:
        if not isinstance(held, dict) or step not in held:
            return view(value)
        held = cast("dict[str, object]", held)[step]
    held = view(held)
    for step in reversed(path):
        held = {step: held}
    return held


def _tried(call: Callable[..., Any], text: str, values: dict[str, Any]) -> Any:
    begin()
    try:
        return watched(call, text, **values)
    except TemplateMistake:
        # The guarded way fails in the same way and reports it.
        return None


@lru_cache(maxsize=_REMEMBERED)
def _quick(text: str) -> _Quick | None:
    wanted = _wanted(text)
    return None if wanted is None else _Quick(text, wanted)


@lru_cache(maxsize=_REMEMBERED)
def _expression(text: str) -> tuple[Wanted, frozenset[str]] | None:
    """What an expression looks up, and the names in it that a dot or a bracket follows."""
    wanted = None if "\\" in text or "}" in text or "{" in text else _wanted("{{ " + text + " }}")
    return None if wanted is None else (wanted, frozenset(_DOTTED.findall(text)))


def _wanted(text: str) -> Wanted | None:
    if len(text) > _LONGEST or hides_names(text) or _NOT_QUICK.search(text):
        return None
    try:
        paths: set[str] = watched(_kept().environment.undeclared_variables_in_str, text, nested=True)
    except TemplateMistake:
        # What the engine cannot parse is left to the guarded way, which reports it.
        return None
    names: dict[str, tuple[str, ...]] = {}
    for path in paths:
        name, *rest = path.split(".")
        names[name] = () if name in names else tuple(rest)
    return tuple(names.items())


@cache
def _kept() -> _Kept:
    return _Kept()


def _environment() -> Any:
    environment = new_environment(FUEL, None)
    for name, function in FILTERS.items():
        environment.add_filter(name, _sure(function))
    for name in ("default", "d"):
        environment.add_filter(name, default_filter)
    return environment


def _sure(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(value: Any, *args: Any, **named: Any) -> Any:
        if value is None:
            raise _Unsure
        return function(value, *args, **named)

    return call
