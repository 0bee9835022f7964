"""Reads a TOML or YAML document by a shape: manifests and policies."""

from collections.abc import Mapping
from typing import Any

from failwell.errors.frozen import frozen
from failwell.files.disk import Refused, decoded
from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import Mistake, MistakeLog, one_line
from failwell.files.shapes import Shape
from failwell.files.toml_reader import from_values, read_toml
from failwell.files.value_types import Invalid
from failwell.files.yaml_reader import compose

_YAML = (".yaml", ".yml")


@frozen
class Document:
    """A document that was read: its value, and every mistake in it."""

    value: Any
    """`None` if there are mistakes."""
    mistakes: tuple[Mistake, ...]

    @property
    def lines(self) -> list[str]:
        """Every mistake as one line."""
        return [one_line(mistake) for mistake in self.mistakes]

    @property
    def fields(self) -> list[str]:
        """The fields that have mistakes, each once."""
        return list(dict.fromkeys(mistake.field for mistake in self.mistakes if mistake.field))


def read_document(content: bytes, file: str, shape: Shape) -> Document:
    """The document in `content`: YAML if the name of the file ends so, else TOML."""
    log = MistakeLog()
    try:
        text = decoded(content, file)
    except Refused as refused:
        log.add(refused.message, None, hint=refused.hint)
        return Document(value=None, mistakes=log.finish({}))
    if file.lower().endswith(_YAML):
        root = compose(text, file, log, None, _no_include(log))
        if root is None and not log.mistakes:
            root = from_values({}, file)
    else:
        root = read_toml(text, file, log)
    return _read(root, shape, log, {file: text})


def read_values(values: Mapping[str, Any], shape: Shape) -> Document:
    """The same for Python values. Their mistakes have paths and no places."""
    return _read(from_values(values), shape, MistakeLog(), {})


def _read(root: Item | None, shape: Shape, log: MistakeLog, texts: Mapping[str, str]) -> Document:
    value = None if root is None else shape.read(root, (), log)
    mistakes = log.finish(texts)
    is_invalid = log.errors or isinstance(value, Invalid)
    return Document(value=None if is_invalid else value, mistakes=mistakes)


def _no_include(log: MistakeLog) -> Any:
    def include(_path: str, tag: Item, path: Path) -> None:
        log.add_at(tag, path, "`!file` is not allowed in this file", hint="write the value here")

    return include
