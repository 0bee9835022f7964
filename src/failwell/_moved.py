"""Old module paths and parameters that still work: each warns and names its replacement.

A package lists its old modules when it is imported, which always comes before one of them is imported.
"""

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any, ParamSpec, TypeVar
from warnings import warn

_P = ParamSpec("_P")
_R = TypeVar("_R")


class MovedModule(ModuleType):
    """Stands for a module that is gone, and provides its names from their new places."""

    def __init__(self, name: str, target: str, renamed: Mapping[str, str]) -> None:
        super().__init__(name, f"Deprecated: use `{target}` instead.")
        self._target = target
        self._renamed = renamed

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        current = self._renamed.get(name, name)
        value = getattr(import_module(self._target), current)
        warn(
            f"`{self.__name__}.{name}` is deprecated: use `{self._target}.{current}` instead",
            DeprecationWarning,
            stacklevel=2,
        )
        return value


def keep_old_modules(
    package: str, moved: Mapping[str, str], renamed: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """Let the old modules of `package` be imported.

    Args:
        package: The package that held them.
        moved: Old module, relative to the package, to the public module that has its names now.
        renamed: Old module to its names that changed: old name to new.
    """
    for old, target in moved.items():
        name = f"{package}.{old}"
        module = MovedModule(name, target, (renamed or {}).get(old, {}))
        sys.modules.setdefault(name, module)
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[parent], last, sys.modules[name])


def renamed_parameters(**renamed: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a function accept parameters by their old names: old name to new."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def accept(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            for old in kwargs.keys() & renamed.keys():
                _rename(kwargs, old, renamed[old])
            return function(*args, **kwargs)

        return accept

    return decorate


def _rename(arguments: dict[str, Any], old: str, new: str) -> None:
    if new in arguments:
        raise TypeError(f"`{old}` is the old name of `{new}`: pass one of them")
    warn(f"the parameter `{old}` is deprecated: use `{new}` instead", DeprecationWarning, stacklevel=3)
    arguments[new] = arguments.pop(old)
