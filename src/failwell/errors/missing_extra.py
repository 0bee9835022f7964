"""One answer for every optional library that is not there: its name, and the command that brings it."""

from importlib import import_module
from types import ModuleType


class MissingExtra(ImportError):
    """A function needs a library that is not installed."""


def need(module: str, extra: str | None = None) -> ModuleType:
    """The module called `module`, which `failwell[extra]` brings; without an extra, the library itself does.

    Raises:
        MissingExtra: it is not installed. A library that is installed and fails to load raises
            its own error, because installing it again would not help.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if module != missing and not module.startswith(f"{missing}."):
            raise
        top = module.partition(".")[0]
        wanted = top if extra is None else f"'failwell[{extra}]'"
        message = f"`{top}` is not installed; pip install {wanted}"
        raise MissingExtra(message, name=top) from None
