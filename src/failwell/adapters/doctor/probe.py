"""Lists the exception classes of one package, as JSON on stdout. Run as a script, in a process of its own.

Stands on the standard library alone: the package may be anything, and may live in an environment
that does not have us.
"""

import json
import os
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_ERROR_WORDS = ("error", "exception", "exceptions", "errors", "failure")
_MOST_MODULES = 400
_DEEPEST = 2
_DEEPEST_PUBLIC = 3
FACTS = frozenset(
    {
        "status_code",
        "status",
        "http_status",
        "code",
        "error_code",
        "errno",
        "sqlstate",
        "pgcode",
        "response",
        "body",
    }
)
"""Attributes that say more than the class. Rules read them."""


def main(top: str) -> None:
    """Load `top` and the modules in it that are about errors, then print what there is."""
    # What a package prints while it is imported must not mix with the result.
    out = os.dup(1)
    os.dup2(2, 1)
    result: dict[str, Any] = {"top": top, "failed": []}
    broken = _import_error(top)
    if broken is not None:
        result["broken"] = broken
    else:
        spec = find_spec(top)
        paths = list(spec.submodule_search_locations or ()) if spec else []
        failed = {name: _import_error(name) for name in about_errors(top, paths)}
        result["failed"] = [[name, error] for name, error in failed.items() if error is not None]
        result["classes"] = [_row(cls) for cls in _classes(top)]
    with os.fdopen(out, "w", encoding="utf-8") as stdout:
        json.dump(result, stdout)


def _import_error(name: str) -> str | None:
    """The class of what importing `name` raises; `None` if it can be imported."""
    try:
        import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001  (a broken package may raise anything, even an exit)
        return type(error).__name__
    return None


def about_errors(top: str, paths: list[str]) -> Iterator[str]:
    """The modules under `top` in the folders `paths` that are named after errors, found without loading any."""
    waiting = [(top, paths, 0)]
    remaining = _MOST_MODULES
    while waiting:
        package, paths, depth = waiting.pop(0)
        for module in pkgutil.iter_modules(paths):
            name = f"{package}.{module.name}"
            if is_about_errors(module.name) and remaining:
                remaining -= 1
                yield name
            if module.ispkg and depth < _DEEPEST and not module.name.startswith("test"):
                waiting.append((name, [os.path.join(path, module.name) for path in paths], depth + 1))
        if depth == 0:
            # A namespace's parts have no file of their own and are not listed.
            waiting += [(f"{package}.{name}", [path], 1) for name, path in _folders(paths)]


def _folders(paths: list[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        for entry in os.scandir(path):
            init = os.path.join(entry.path, "__init__.py")
            if entry.is_dir() and entry.name.isidentifier() and not os.path.exists(init):
                yield entry.name, entry.path


def _classes(top: str) -> list[type[BaseException]]:
    """The public exception classes of `top`: in the package itself, or in a public module about errors."""
    classes: dict[tuple[str, str], type[BaseException]] = {}
    shown = [
        module
        for name, module in list(sys.modules.items())
        if name == top or (name.startswith(f"{top}.") and is_public(name))
    ]
    # A private module that is shown under a public name: `from . import _error as error`.
    shown += [
        value
        for name, value in list(vars(sys.modules[top]).items())
        if isinstance(value, ModuleType) and is_about_errors(name) and name[0] != "_"
    ]
    for module in shown:
        for value in list(vars(module).values()):
            if isinstance(value, type) and issubclass(value, BaseException) and _is_own(value, top):
                classes[value.__module__, value.__name__] = value
    return [classes[key] for key in sorted(classes)]


def is_about_errors(module: str) -> bool:
    """Whether a module of an SDK is named after errors."""
    module = module.rpartition(".")[2]
    # SQLAlchemy calls its module of errors `exc`.
    return module == "exc" or any(word in module.lower() for word in _ERROR_WORDS)


def is_public(name: str) -> bool:
    """Whether `name` is a module about errors that users may import from."""
    parts = name.split(".")[1:]
    return (
        is_about_errors(parts[-1])
        and len(parts) <= _DEEPEST_PUBLIC
        and not any(part.startswith("_") for part in parts)
    )


def _is_own(cls: type[BaseException], top: str) -> bool:
    # A warning is printed and not raised; a name that begins with an underscore is private.
    return (
        cls.__module__.partition(".")[0] == top
        and not issubclass(cls, Warning)
        and not cls.__name__.startswith("_")
    )


def _carries(cls: type[BaseException]) -> bool:
    """Whether its objects hold a status, a code or a reply, by what its classes declare and assign."""
    for above in cls.__mro__:
        if above.__module__ != "builtins":
            code = getattr(vars(above).get("__init__"), "__code__", None)
            names = {*vars(above), *vars(above).get("__annotations__", ()), *getattr(code, "co_names", ())}
            if not names.isdisjoint(FACTS):
                return True
    return False


def _row(cls: type[BaseException]) -> dict[str, Any]:
    return {
        "carries": _carries(cls),
        "module": cls.__module__,
        "name": cls.__name__,
        "mro": [[c.__module__, c.__name__] for c in cls.__mro__],
    }


if __name__ == "__main__":
    main(sys.argv[1])
