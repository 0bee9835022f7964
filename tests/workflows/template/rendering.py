"""Ways to say in one line what a template is given and what comes of it."""

from collections.abc import Mapping
from typing import Any

from failwell.files.item_tree import Place
from failwell.workflows.plan import Template
from failwell.workflows.template.names import MISSING
from failwell.workflows.template.render import holds, render


class NamesFrom:
    """The names of a mapping."""

    __slots__ = ("_names",)

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def get(self, name: str, /) -> object:
        """The value under `name`, or `MISSING`."""
        return self._names.get(name, MISSING)


def a_template(text: str, folder: str | None = None) -> Template:
    """A template that stands at flow.yaml:3:7."""
    return Template(text=text, place=Place(file="flow.yaml", line=3, column=7), folder=folder)


def rendered(text: str, **names: Any) -> str:
    """What `text` gives over `names`."""
    return render(a_template(text), NamesFrom(names))


def true(text: str, **names: Any) -> bool:
    """Whether the condition `text` holds over `names`."""
    return holds(a_template(text), NamesFrom(names))
