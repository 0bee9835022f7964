"""Types of values that may contain templates. A text with `{{ … }}` is read as a `Template` with its place."""

from typing import Any, cast

from failwell.files.item_tree import Item, Path, Place, Template, is_list, is_map
from failwell.files.mistakes import MistakeLog
from failwell.files.value_types import (
    INVALID,
    AnyJson,
    Choice,
    Duration,
    Invalid,
    Schema,
    Type,
    name_of,
    quote_hint,
    type_name,
)


def template_of(item: Item) -> Template:
    """The text of an item as a template."""
    return Template(
        text=item.value,
        place=Place(file=item.file, line=item.line + 1, column=item.column + 1),
        folder=item.folder,
        first_line=item.first_line,
        written=item.written,
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


class Templated:
    """A text that may contain `{{ }}`, read as a `Template`."""

    def __init__(self, *, allow_empty: bool = False) -> None:
        self.allow_empty = allow_empty

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if type(value) is str and (value or self.allow_empty):
            return template_of(item)
        if value == "":
            log.add_at(item, path, f"{name_of(path)} must not be empty")
        else:
            log.add_at(
                item, path, f"{name_of(path)} must be text, not {type_name(value)}", hint=quote_hint(value)
            )
        return INVALID

    def schema(self) -> Schema:
        return {"type": "string"} if self.allow_empty else {"type": "string", "minLength": 1}


class TemplatedChoice(Choice):
    """One of a fixed set of words, or a template that renders to one of them."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if type(value) is str and ("{{" in value or "{%" in value):
            return template_of(item)
        return super().read(item, path, log)

    def schema(self) -> Schema:
        words, variable = super().schema()["anyOf"]
        return {"anyOf": [words, {"type": "string", "pattern": r"\{\{|\{%"}, variable]}


class TemplatedJson(AnyJson):
    """Any JSON value; its texts are templates."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        del path, log  # every value is allowed
        return templates_in(item)


class TemplatedDuration(Duration):
    """A duration, or a template that renders to one when the step starts."""

    further_patterns = (r"\{\{",)

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        if type(item.value) is str and "{{" in item.value:
            return template_of(item)
        return super().read(item, path, log)


class Verbatim:
    """A block that is checked and kept as it is written. With `templated`, its texts are templates."""

    def __init__(self, of: Type, *, templated: bool = False) -> None:
        self.of = of
        self.templated = templated

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = self.of.read(item, path, log)
        return INVALID if isinstance(value, Invalid) else self._keep(value, item)

    def _keep(self, value: Any, item: Item) -> Any:
        if is_map(value):
            return {key: self._keep(inner, item.value[key]) for key, inner in value.items()}
        if isinstance(value, tuple):
            entries = cast("tuple[Any, ...]", value)
            return [self._keep(inner, child) for inner, child in zip(entries, item.value, strict=True)]
        return template_of(item) if self.templated and type(value) is str else value

    def schema(self) -> Schema:
        return self.of.schema()
