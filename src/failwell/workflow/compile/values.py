"""What every type of value shares: the mark of a mistake, and the words that messages are made of."""

from typing import Any, Final, Protocol

from failwell.workflow.plan import Place, Template
from failwell.workflow.source.problems import Problems
from failwell.workflow.source.scalars import NotJson, meaning
from failwell.workflow.source.tree import Item, Path, is_list, is_map

Schema = dict[str, Any]


class _Wrong:
    """The result of reading a value that is a mistake."""

    def __repr__(self) -> str:
        return "WRONG"


WRONG: Final = _Wrong()
VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$\{"}
"""A text that an environment variable stands in, where something else is wanted."""


class Type(Protocol):
    """What a value may be."""

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        """The value, or `WRONG` after a mistake was put on the list."""
        ...

    def schema(self) -> Schema:
        """The same as JSON Schema."""
        ...


def sort_of(value: object) -> str:
    """What a value is, in words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "text" if value else "an empty text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def unquoted(item: Item) -> Any:
    """The value of an item; a variable's text is read as if it stood in the file without quotes."""
    if item.veiled and type(item.value) is str:
        try:
            return meaning(item.value)
        except NotJson:
            return item.value
    return item.value


def shown(item: Item) -> str:
    """A short value as it may be quoted in a message."""
    if item.veiled or type(item.value) in (dict, list):
        return ""
    text = item.value if type(item.value) is str else sort_of(item.value)
    return text if len(text) <= 60 and text.isprintable() else ""


def template_of(item: Item) -> Template:
    """The text of an item as a template."""
    return Template(
        text=item.value,
        place=Place(file=item.file, line=item.line + 1, column=item.column + 1),
        folder=item.folder,
    )


def templates_in(item: Item) -> Any:
    """The value of an item with every text in it as a template."""
    value = item.value
    if type(value) is str:
        return template_of(item)
    if is_map(value):
        return {key: templates_in(child) for key, child in value.items()}
    if is_list(value):
        return [templates_in(child) for child in value]
    return value


def name_of(at: Path) -> str:
    """The nearest name in a path, as messages quote it."""
    while at:
        at, step = at
        if isinstance(step, str):
            return f"`{step[:60]}`"
    return "the file"


def nearest(word: str, known: Any) -> str:
    """The known word that is spelled most like `word`, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word[:60], list(known), n=1, cutoff=0.6)
    return near[0] if near else ""


def quotes(value: object) -> str:
    """What to do with a value that should have been text."""
    return "put it in quotes to make it text" if isinstance(value, bool | int | float) else ""
