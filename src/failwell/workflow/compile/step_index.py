"""What is known while a workflow file is read: its mistakes, its steps by name, and what they leave unknown."""

from collections.abc import Iterator
from typing import cast

from failwell.fault.axes import Category
from failwell.files.item_tree import Item
from failwell.files.mistakes import MistakeLog

_CATEGORIES = frozenset(Category)
SECTIONS = ("agents", "parallel", "for_each")


FLOW, NAMES, INPUTS, KINDS = "flow", "step names", "inputs", "kinds"
"""What a mistake of shape may leave unknown: where steps lead, which steps, inputs and kinds there are."""


class WorkflowMistakes(MistakeLog):
    """The mistakes of a file, and where its steps stand, for those that are named elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[str, tuple[str, Item]] = {}
        """Name → section and item, the first of each name."""
        self.incomplete: set[str] = set()
        """Names of steps with a mistake of shape: what they do is not known in full."""
        self.unreadable: set[str] = set()
        """Names of steps of which only the name is known."""
        self.declared: dict[str, str] = {}
        """Kinds of the author's own → their category, as far as they are declared."""
        self.plain_names: list[str] = []
        """Those names that stand in the file itself and may be suggested."""
        self.within: list[str] = []
        """Names of the bodies that are being read, to see a circle."""

    def index(self, root: Item) -> None:
        """Find the steps of a file by name; what is not a step is passed over."""
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


def named_steps(root: Item) -> Iterator[tuple[str, int, Item, Item]]:
    """Every entry with a name: its section, its index, the entry and the name."""
    for section in SECTIONS:
        listed: Item | None = root.value.get(section)
        entries: object = None if listed is None else listed.value
        if not isinstance(entries, list):
            continue
        for index, entry in enumerate(cast("list[Item]", entries)):
            name: Item | None = None if entry.keys is None else entry.value.get("name")
            if name is not None and type(name.value) is str:
                yield section, index, entry, name
