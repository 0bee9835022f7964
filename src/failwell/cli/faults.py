"""The faults of the command line."""

from failwell.errors.fault import Fault


class Usage(Fault, kind="validation.input_invalid"):
    """The command line is invalid."""

    valid: list[str] | None = None
    """What could have been written instead."""
    near: str | None = None
    """The valid word that is most similar to what was written."""


class Unreadable(Fault):
    """A file or a stream could not be read. Its kind is that of its cause."""


class Unwritable(Fault):
    """The output could not be written. Its kind is that of its cause."""


class InternalError(Fault, kind="internal.bug"):
    """failwell itself failed."""


def reason(error: OSError) -> str:
    """The system's text for an error number as commands print it: lower-case, without the path."""
    return (error.strerror or type(error).__name__).lower()
