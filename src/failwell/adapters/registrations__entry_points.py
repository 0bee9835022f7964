"""Adapters that installed packages bring: entry points of the group `failwell.adapters`.

The name of an entry point is the top-level module whose exceptions it is about; its value is a function without parameters that calls
`register_exception`, or a module that does so when it is imported. It is loaded when the first exception of that module is met.
"""

import logging
import os
import sys
from threading import Lock

GROUP = "failwell.adapters"
_HEADING = f"[{GROUP}]".encode()
_LARGEST = 1 << 20
_lock = Lock()
_loaded: set[str] = set()
_names: frozenset[str] | None = None


def load_adapters(top: str) -> None:
    """Load the entry points for exceptions of the top-level module `top`, once. A broken one is logged and passed over."""
    if top in _loaded or top not in _installed_names():
        return
    with _lock:
        if top in _loaded:
            return
        # Noted first: an entry point may meet exceptions of its own package.
        _loaded.add(top)
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=top):
        try:
            loaded = point.load()
            if callable(loaded):
                loaded()
        except Exception as error:  # noqa: BLE001  (a package's adapter may raise anything, and no failure is described worse for it)
            logging.getLogger("failwell.adapters").warning(
                "the entry point `%s = %s` of the group `%s` failed with %s; its exceptions are read without it",
                point.name, point.value, GROUP, type(error).__name__,
            )  # fmt: skip


def _installed_names() -> frozenset[str]:
    """The names of the entry points of this group.

    `importlib.metadata` takes 40 ms to import, which most programs need not pay: no package that they have installed names the group.
    """
    global _names
    if _names is None:
        _names = frozenset()
        if any(_names_group(path) for path in sys.path):
            from importlib.metadata import entry_points

            _names = frozenset(point.name for point in entry_points(group=GROUP))
    return _names


def _names_group(path: str) -> bool:
    try:
        with os.scandir(path or ".") as folder:
            installed = [entry.path for entry in folder if entry.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    return any(_has_heading(f"{metadata}/entry_points.txt") for metadata in installed)


def _has_heading(file: str) -> bool:
    try:
        with open(file, "rb") as text:
            return _HEADING in text.read(_LARGEST)
    except OSError:
        return False
