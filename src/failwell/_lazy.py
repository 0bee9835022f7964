"""Names of public modules that are imported when they are first used.

A public module lists its names twice: in an `if TYPE_CHECKING` block, which checkers and editors read, and in a
table, which the interpreter reads. A test compares the two. This module imports nothing, because every
public module loads it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Hooks = tuple[Callable[[str], object], Callable[[], list[str]], list[str]]


def lazy_names(module: str, homes: dict[str, str]) -> "Hooks":
    """The `__getattr__`, `__dir__` and `__all__` of a lazy module.

    Args:
        module: The module's `__name__`.
        homes: Module to the names that it defines, with spaces between them.
    """
    names = sorted(" ".join(homes.values()).split())

    def get(name: str) -> object:
        return load_name(module, name, homes)

    def names_of_module() -> list[str]:
        return listed_names(module, names)

    return get, names_of_module, names


def load_name(module: str, name: str, homes: dict[str, str]) -> object:
    """The value of `module.name`, for the module's `__getattr__`. It is stored there, so it is loaded once."""
    for home, names in homes.items():
        if name in names.split():
            import sys
            from importlib import import_module

            value = getattr(import_module(home), name)
            setattr(sys.modules[module], name, value)
            return value
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def listed_names(module: str, names: list[str]) -> list[str]:
    """What `dir(module)` lists: the public names and the dunder attributes."""
    import sys

    return sorted({*names, *(name for name in vars(sys.modules[module]) if name.startswith("__"))})
