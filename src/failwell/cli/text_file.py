"""A file whose text is a value: used unchanged, or refused."""

import sys

from failwell.cli.parser import usage_error

MOST_BYTES = 16 * 1024 * 1024
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


def text_of(path: str, what: str, see: str, most: int = MOST_BYTES) -> str:
    """The text of a file, or of stdin for `-`; an empty one is an empty text.

    Args:
        path: Which file.
        what: What the text is for, to name it in an error.
        see: The command that documents it.
        most: Bytes that it may have.

    Raises:
        Unreadable: it cannot be read.
        Usage: it is too large, or is not text.
    """
    name = named(path)
    try:
        content = _bytes(path, most)
    except OSError as error:
        from failwell.cli.faults import Unreadable, reason

        raise Unreadable.wrap(
            error, f"cannot read {name} for {what}: {reason(error)}", caller_facing=True
        ) from error
    if len(content) > most:
        limit = f"{most // 1024**2} MiB"
        raise usage_error(
            f"{name} is larger than {limit}, too large for {what}; give its path instead",
            see=see,
        )
    try:
        return content.decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        raise usage_error(
            f"{name} is not UTF-8 text (byte {error.start}), so it cannot be {what}; give its path instead",
            see=see,
        ) from None


def named(path: str) -> str:
    """What a file is called in a message."""
    return "the standard input" if path == "-" else f"`{path}`"


def _bytes(path: str, most: int) -> bytes:
    if path == "-":
        return b"" if sys.stdin is None else sys.stdin.buffer.read(most + 1)
    with open(path, "rb") as file:  # noqa: PTH123  (`pathlib` costs more to load than this command)
        return file.read(most + 1)
