"""The mistakes and the steps of a workflow file while it is read."""

from collections.abc import Iterator
from typing import cast

from failwell.errors.axes import Category
from failwell.files.item_tree import Item
from failwell.files.mistakes import MistakeLog

_CATEGORIES = frozenset(Category)
SECTIONS = ("agents", "stages", "parallel", "for_each")


FLOW, NAMES, INPUTS, KINDS = "flow", "step names", "inputs", "kinds"
"""Topics that a mistake may leave unknown: where steps lead, and which steps, inputs and kinds exist."""


class WorkflowMistakes(MistakeLog):
    """The mistakes of a file, and its steps by name, because groups refer to steps by name."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[str, tuple[str, Item]] = {}
        """Name → section and item, the first of each name."""
        self.incomplete: set[str] = set()
        """Names of steps with mistakes of shape."""
        self.unreadable: set[str] = set()
        """Names of steps of which only the name is known."""
        self.declared: dict[str, str] = {}
        """Declared kind → category."""
        self.plain_names: list[str] = []
        """Names that do not come from the environment, so that messages may suggest them."""
        self.within: list[str] = []
        """Names of the bodies that are being read, to detect cycles."""

    def index(self, root: Item) -> None:
        """Record the steps and declared kinds of a file by name. Invalid entries are skipped."""
        kinds = root.value.get("kinds")
        if kinds is not None and kinds.keys is not None:
            for name, kind in kinds.value.items():
                category = None if kind.keys is None else kind.value.get("category")
                if category is not None and type(category.value) is str and category.value in _CATEGORIES:
                    self.declared[name] = category.value
        for section, _, entry, name in named_steps(root):
            self.steps.setdefault(name.value, (section, entry))
            if not name.from_env:
                self.plain_names.append(name.value)


def _name_key(section: str) -> str:
    """The key that names an entry. A stage has an `id`, and its `name` is for people."""
    return "id" if section == "stages" else "name"


def named_steps(root: Item) -> Iterator[tuple[str, int, Item, Item]]:
    """Every entry with a name: its section, its index, the entry and the name."""
    for section in SECTIONS:
        listed: Item | None = root.value.get(section)
        entries: object = None if listed is None else listed.value
        if not isinstance(entries, list):
            continue
        for index, entry in enumerate(cast("list[Item]", entries)):
            name: Item | None = None if entry.keys is None else entry.value.get(_name_key(section))
            if name is not None and type(name.value) is str:
                yield section, index, entry, name
