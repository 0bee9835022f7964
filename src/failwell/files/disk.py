"""Reading files for workflows: bounded in size, inside the project, UTF-8 only."""

import os
import stat
from hashlib import sha256

from failwell.fault.classes import Validation
from failwell.fault.frozen import frozen

LARGEST = 2 * 1024 * 1024
"""Bytes of one file."""


@frozen
class FileText:
    """A file as it stands on disk."""

    text: str
    digest: str
    size: int


class Refused(Exception):
    """A file was there and cannot be used. `hint` says what to do."""

    def __init__(self, message: str, hint: str, kind: str = "validation.shape_invalid") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.kind = kind


def read(path: str, name: str) -> FileText:
    """The text of the file at `path`, called `name` in messages.

    Raises:
        Refused: it is no regular file, too large, or not UTF-8.
        OSError: the operating system does not give it.
    """
    # A pipe or a device would be waited for, so it is looked at before it is opened.
    kind = os.stat(path).st_mode  # noqa: PTH116
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "not a regular file"
        raise Refused(f"`{name}` is {what}", "name a file", "validation.path_wrong_type")
    with open(path, "rb") as stream:  # noqa: PTH123
        size = os.fstat(stream.fileno()).st_size
        content = b"" if size > LARGEST else stream.read(LARGEST + 1)
    if size > LARGEST or len(content) > LARGEST:
        raise Refused(
            f"`{name}` has {max(size, len(content)):,} bytes; a file may have {LARGEST:,}",
            "split it: put parts into files of their own and name them with `!file`, or use sub-workflows",
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
        # The codec counts behind a byte-order mark.
        mark = 3 if content.startswith(b"\xef\xbb\xbf") else 0
        raise Refused(
            f"`{name}` is not UTF-8: the byte at offset {error.start + mark} does not belong there",
            "save the file as UTF-8",
        ) from None


def project_of(path: str) -> str:
    """The folder that includes of the file at `path` must stay in: the nearest one with `.git`, else its own."""
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
    """Whether `path`, its links followed, lies in `folder`."""
    real = os.path.realpath(path)
    return real == folder or real.startswith(folder.rstrip(os.sep) + os.sep)


def unreadable(path: str, error: OSError) -> Validation:
    """The fault for a workflow file that the operating system does not give."""
    kind = kind_of(error)
    reason = {
        "validation.path_not_found": "there is no such file",
        "validation.path_wrong_type": "it is a folder, or lies below a file",
        "validation.path_denied": "it may not be read",
    }[kind]
    return Validation(kind=kind, message=f"cannot read the workflow `{path}`: {reason}")


def kind_of(error: OSError) -> str:
    """The kind of a failure to open a file."""
    if isinstance(error, IsADirectoryError | NotADirectoryError):
        return "validation.path_wrong_type"
    return "validation.path_denied" if isinstance(error, PermissionError) else "validation.path_not_found"
