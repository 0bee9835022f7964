"""The manifest of a class or a function of this program's own, so that a worker can import it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from failwell.fault.capability import CapabilityInputError
from failwell.jobs.manifest import Manifest


def manifest_of(what: type | Callable[..., Any], **fields: Any) -> Manifest:
    """The manifest of a class or a function, so that a worker of the same interpreter can import it.

    Raises:
        CapabilityInputError: a worker could not find it.
    """
    module, name = what.__module__, what.__qualname__
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if file is None or "<" in name:
        raise CapabilityInputError(
            f"`{name}` cannot be imported by a worker: put it at the top of a module in a file",
            fields_invalid=["what"],
        )
    path = Path(file).resolve()
    if module == "__main__":
        spec = getattr(loaded, "__spec__", None)
        module = path.stem if spec is None else spec.name
    place = path.parents[module.count(".") + (path.stem == "__init__")]
    marked: dict[str, str] = getattr(what, "__failwell__", {})
    known: dict[str, Any] = {
        "name": marked.get("name") or name.rpartition(".")[2].lower(),
        "version": marked.get("version", ""),
        "path": (str(place),),
    }
    return Manifest(object=f"{module}:{name}", **{**known, **fields})
