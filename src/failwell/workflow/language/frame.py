"""Where a template stands while it is rendered: its variables, and what the whole rendering shares."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.workflow.language.budget import OUTPUT, Budget
from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.values import UNDEFINED
from failwell.workflow.names import MISSING, Names

Evaluate = Callable[["Frame"], Any]
"""An expression, ready to be asked."""
Write = Callable[["Frame", list[str]], None]
"""A statement, ready to write what it has to say."""


class Blocks:
    """The blocks of a template and of those that extend it: for each name, the youngest first."""

    __slots__ = ("bodies",)

    def __init__(self) -> None:
        self.bodies: dict[str, list[Write]] = {}

    def add(self, own: Mapping[str, Write]) -> None:
        """Put an elder template's blocks below those that are there."""
        for name, body in own.items():
            self.bodies.setdefault(name, []).append(body)


class Rendering:
    """What all frames of one rendering share."""

    __slots__ = ("blocks", "budget", "functions", "known", "names", "part")

    def __init__(
        self,
        names: Names,
        budget: Budget,
        functions: Mapping[str, Any],
        part: Callable[[Any, str | None], Any],
    ) -> None:
        self.names = names
        self.budget = budget
        self.functions = functions
        self.known: dict[str, Any] = {}
        self.part = part
        """Gives a compiled part by the name that an `include` has for it, and the asking folder."""
        self.blocks = Blocks()

    def look_up(self, name: str) -> Any:
        """The value of a name that is no variable, asked for once."""
        found = self.known.get(name, MISSING)
        if found is MISSING:
            found = self.names.get(name)
            if found is MISSING:
                found = self.functions.get(name, UNDEFINED)
            self.known[name] = found
        return found


class Frame:
    """The variables of one scope."""

    __slots__ = ("budget", "folder", "parent", "rendering", "variables")

    def __init__(self, rendering: Rendering, variables: dict[str, Any], folder: str | None) -> None:
        self.rendering = rendering
        self.budget = rendering.budget
        self.variables = variables
        self.folder = folder
        self.parent: Any = None
        """The template that this one extends, once its `extends` was met."""

    def inner(self) -> "Frame":
        """A scope inside of this one: what it sets stays there."""
        return Frame(self.rendering, dict(self.variables), self.folder)


def joined(out: list[str], budget: Budget) -> str:
    """The whole of what was written, if it is not too much."""
    text = "".join(out)
    if len(text) > OUTPUT:
        raise Mistake(Sort.MEMORY)
    return budget.text(text)
