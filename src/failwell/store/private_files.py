"""Files and folders for their owner alone, created without following links.

A state folder may lie in a place where others can write. A file that is created there must not be one that
somebody else has put in its place.
"""

import os
from contextlib import ExitStack
from pathlib import Path

_FLAGS = os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def create_private(path: str | Path) -> int:
    """Create a file that must not exist, for its owner alone; return its descriptor, for writing.

    Raises:
        OSError: it exists, is a link, or the system refuses.
    """
    return os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)


def append_private(path: str | Path) -> int:
    """Open a file of its owner for appending, and create it if it is missing; return its descriptor.

    Raises:
        OSError: it is a link, or the system refuses.
    """
    return os.open(path, _FLAGS | os.O_CREAT | os.O_APPEND, 0o600)


def replace_private(path: str | Path, content: str, *, sync: bool = False) -> None:
    """Write a file as a whole: a reader sees the content before or all of the new one.

    Args:
        path: The file.
        content: What it holds afterwards.
        sync: Whether the content must survive a loss of power.

    Raises:
        OSError: the system refuses; the file is as it was.
    """
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}-{os.getpid()}-{os.urandom(4).hex()}")  # noqa: PTH118  (the path may be a string)
    descriptor = create_private(draft)
    with ExitStack() as unfinished:
        # Whatever ends the write, an interrupt too, leaves no draft.
        unfinished.callback(os.unlink, draft)
        with open(descriptor, "wb") as file:  # noqa: PTH123  (a descriptor has no path)
            file.write(content.encode())
            if sync:
                file.flush()
                os.fsync(descriptor)
        os.replace(draft, path)  # noqa: PTH105  (the path may be a string)
        unfinished.pop_all()
