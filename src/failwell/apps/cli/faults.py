"""The faults of a command line: what was typed, what was named, what broke behind it."""

from failwell.fault.base import Fault


class Usage(Fault, kind="validation.input_invalid"):
    """The command line could not be understood."""

    valid: list[str] | None = None
    """What could have been written instead."""
    near: str | None = None
    """The one of them that was probably meant."""


class Unreadable(Fault):
    """A file or a stream that was named could not be read. What kind of failure that is, its cause knows."""


class Unwritable(Fault):
    """The output could not be written. What kind of failure that is, its cause knows."""


class OwnDefect(Fault, kind="internal.bug"):
    """Something in failwell itself broke."""


def reason(error: OSError) -> str:
    """The system's own words for an error number, lower-case, without the path."""
    return (error.strerror or type(error).__name__).lower()
