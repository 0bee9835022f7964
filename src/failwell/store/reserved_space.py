"""Disk space that is kept free for deleting: on a full disk, even a deletion has to write its log.

Every state folder holds a file of `SIZE` bytes without content. `prune` deletes it first and creates it again
when it is done.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from failwell.calls.suppress import suppress
from failwell.store.private_files import create_private

RESERVE = "journal.reserve"
SIZE = 512 * 1024


def is_short(folder: Path) -> bool:
    """Whether the disk of `folder` is nearly full."""
    try:
        status = os.statvfs(folder)
    except (AttributeError, OSError):
        return False
    return status.f_bavail * status.f_frsize < 4 * SIZE


def keep_reserve(folder: Path) -> None:
    """Create the reserve if it is missing and there is ample space; others need the last of it more."""
    path = folder / RESERVE
    if is_short(folder):
        return
    try:
        descriptor = create_private(path)
    except OSError:
        # It is there already, or cannot be.
        return
    try:
        os.posix_fallocate(descriptor, 0, SIZE)
    except (AttributeError, OSError):
        # A quota, or a system that cannot reserve space: an empty file would reserve nothing.
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


@contextmanager
def reserve_spent(folder: Path) -> Generator[None]:
    """Free the reserve for the block, so that records can be deleted on a full disk."""
    path = folder / RESERVE
    if not path.exists():
        # No state folder, or one on a disk that was full.
        yield
        return
    with suppress(OSError, reason="a folder that may not be written to; the deletion will say so"):
        path.unlink()
    try:
        yield
    finally:
        keep_reserve(folder)
