"""Reading files that people write: bounded in size, inside the project, UTF-8 only."""

import os
import stat
from hashlib import sha256

from failwell.errors.frozen import frozen

LARGEST = 2 * 1024 * 1024
"""Bytes of one file."""


@frozen
class FileText:
    """The content of a file."""

    text: str
    digest: str
    size: int


class Refused(Exception):
    """A file exists and cannot be used. `hint` is the next step."""

    def __init__(self, message: str, hint: str, kind: str = "validation.shape_invalid") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.kind = kind


def read(path: str, name: str) -> FileText:
    """The text of the file at `path`, called `name` in messages.

    Raises:
        Refused: it is not a regular file, too large, or not UTF-8.
        OSError: it cannot be opened.
    """
    # Opening a pipe or a device could block, so its type is checked first.
    mode = os.stat(path).st_mode  # noqa: PTH116
    if not stat.S_ISREG(mode):
        actual = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise Refused(f"`{name}` is {actual}", "name a file", "validation.path_wrong_type")
    with open(path, "rb") as stream:  # noqa: PTH123
        size = os.fstat(stream.fileno()).st_size
        content = b"" if size > LARGEST else stream.read(LARGEST + 1)
    if size > LARGEST or len(content) > LARGEST:
        raise Refused(
            f"`{name}` has {max(size, len(content)):,} bytes; a file may have {LARGEST:,}",
            "split it into several files",
        )
    return FileText(text=decoded(content, name), digest=sha256(content).hexdigest(), size=len(content))


def decoded(content: bytes, name: str) -> str:
    """The text of a file's content, without a byte-order mark.

    Raises:
        Refused: it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec does not count the byte-order mark.
        mark = 3 if content.startswith(b"\xef\xbb\xbf") else 0
        raise Refused(
            f"`{name}` is not UTF-8: invalid byte at offset {error.start + mark}",
            "save the file as UTF-8",
        ) from None


def project_of(path: str) -> str:
    """The folder that the includes of a file must lie in: the nearest one with `.git`, else its own."""
    own_folder = os.path.dirname(os.path.realpath(path))  # noqa: PTH120
    folder = own_folder
    while True:
        if os.path.exists(os.path.join(folder, ".git")):  # noqa: PTH110, PTH118
            return folder
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            return own_folder
        folder = above


def is_inside(path: str, folder: str) -> bool:
    """Whether a file that is to be read lies in `folder` after links are resolved."""
    real = os.path.realpath(path)
    return real == folder or real.startswith(folder.rstrip(os.sep) + os.sep)


def kind_of(error: OSError) -> str:
    """The kind of a failure to open a file."""
    if isinstance(error, IsADirectoryError | NotADirectoryError):
        return "validation.path_wrong_type"
    return "validation.path_denied" if isinstance(error, PermissionError) else "validation.path_not_found"
