"""Files that a command reads and writes: a text is used unchanged or refused, and nothing is replaced unasked."""

import os
import sys
from collections.abc import Iterable

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
    content = read_bytes(path, most, f" for {what}")
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


def read_bytes(path: str, most: int, purpose: str = "") -> bytes:
    """The content of a file, or of stdin for `-`, up to one byte more than `most`.

    Raises:
        Unreadable: it cannot be read.
    """
    try:
        if path == "-":
            return b"" if sys.stdin is None else sys.stdin.buffer.read(most + 1)
        with open(path, "rb") as file:  # noqa: PTH123  (`pathlib` costs more to load than this command)
            return file.read(most + 1)
    except OSError as error:
        from failwell.cli.faults import Unreadable, reason

        raise Unreadable.wrap(
            error, f"cannot read {named(path)}{purpose}: {reason(error)}", caller_facing=True
        ) from error


def write_text(path: str, pieces: Iterable[str], *, force: bool, see: str, mode: int = 0o600) -> None:
    """Write a file. Without `force`, nothing that is there is touched, not even through a link.

    Raises:
        Usage: the file exists.
        Unwritable: the system refuses.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, flags, mode), "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(pieces)
    except FileExistsError:
        raise usage_error(
            f"`{path}` exists; `--force` replaces it, `-o FILE` writes another one", see=see
        ) from None
    except OSError as error:
        from failwell.cli.faults import Unwritable, reason

        raise Unwritable.wrap(error, f"cannot write `{path}`: {reason(error)}", caller_facing=True) from error
