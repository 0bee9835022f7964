"""One document, TOML or YAML, read by a shape in one step: manifests and policies."""

from collections.abc import Mapping
from typing import Any

from failwell.fault.frozen import frozen
from failwell.files.disk import Refused, decoded
from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import Mistake, Problems, one_line
from failwell.files.shapes import Shape
from failwell.files.toml_reader import from_values, read_toml
from failwell.files.value_types import Invalid
from failwell.files.yaml_reader import compose

_YAML = (".yaml", ".yml")


@frozen
class Document:
    """A document that was read: its value if it can be used, and every mistake in it."""

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
    problems = Problems()
    try:
        text = decoded(content, file)
    except Refused as refused:
        problems.add(refused.message, None, hint=refused.hint)
        return Document(value=None, mistakes=problems.finish({}))
    if file.lower().endswith(_YAML):
        root = compose(text, file, problems, None, _no_include(problems))
        if root is None and not problems.found:
            root = from_values({}, file)
    else:
        root = read_toml(text, file, problems)
    return _read(root, shape, problems, {file: text})


def read_values(values: Mapping[str, Any], shape: Shape) -> Document:
    """The same for values that are at hand, such as a dict of Python; their mistakes have paths and no places."""
    return _read(from_values(values), shape, Problems(), {})


def _read(root: Item | None, shape: Shape, problems: Problems, texts: Mapping[str, str]) -> Document:
    value = None if root is None else shape.read(root, (), problems)
    mistakes = problems.finish(texts)
    is_wrong = problems.errors or isinstance(value, Invalid)
    return Document(value=None if is_wrong else value, mistakes=mistakes)


def _no_include(problems: Problems) -> Any:
    def include(_path: str, tag: Item, path: Path) -> None:
        problems.wrong(tag, path, "`!file` is for workflow files", hint="write the value here")

    return include
