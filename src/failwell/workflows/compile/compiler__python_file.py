"""The tree of a state machine that is written in Python, as if a workflow file had held it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from failwell.errors.fault import Fault
from failwell.errors.faults import Validation
from failwell.files.disk import read
from failwell.files.includes import Loaded
from failwell.files.item_tree import Item
from failwell.workflows.stages.state_machine import machine_in


def load_python(file: str) -> Loaded:
    """Import the module at `file`, and return the tree of its state machine.

    Raises:
        OSError: it cannot be read.
        Validation: it has no state machine, or cannot be imported.
    """
    content = read(file, file)
    try:
        machine, module = machine_in(Path(file))
        document = machine.document(module)
    except Fault:
        raise
    except Exception as error:
        # Whatever the author's module raises, its file is not usable.
        raise Validation(
            kind="validation.config_invalid",
            message=f"cannot import {Path(file).name}: {type(error).__name__}",
            caller_facing=True,
        ) from error
    root = _item(document, 0, file)
    stages: list[Item] = root.value["stages"].value
    for index, stage in enumerate(machine.stages):
        stages[index] = _item(document["stages"][index], stage.line - 1, file)
    return Loaded(root=root, files={file: (content.digest, content.text)}, digest=content.digest)


def _item(value: Any, line: int, file: str) -> Item:
    """A value with one place for all of it."""
    if isinstance(value, Mapping):
        values = {key: _item(inner, line, file) for key, inner in cast("Mapping[str, Any]", value).items()}
        item = Item(values, line, 0, file)
        item.keys = dict.fromkeys(values, (line, 0))
        return item
    if isinstance(value, list):
        return Item([_item(inner, line, file) for inner in cast("list[Any]", value)], line, 0, file)
    return Item(value, line, 0, file)
