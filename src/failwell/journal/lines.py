"""Files of one JSON object a line, in a run's folder: its errors, and what it announced.

A line is written by one call, so that lines of several writers never mix, and the file is its owner's alone.
"""

import errno
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from failwell.journal.event import encoded
from failwell.journal.faults import StoreFull
from failwell.journal.folder import ERRORS, NOTIFICATIONS, make_private, refused

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def write_error(
    folder: Path, *, at: float, run: str, workflow: str, node: str | None, failure: Mapping[str, Any]
) -> Path:
    """Add a run's failure to its `errors.jsonl`, and return that file's path.

    Raises:
        StoreFull: there is no space left.
        StoreUnavailable: the folder cannot be written to.
    """
    line = {
        "timestamp": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
        "run_id": run,
        "workflow": workflow,
        "node": node,
        "envelope": failure.get("envelope"),
        "frames": failure.get("frames", []),
        "report": failure.get("report"),
    }
    return append_line(folder / ERRORS, line)


def write_notification(folder: Path, notification: Mapping[str, Any]) -> Path:
    """Add what a run announces to its `notifications.jsonl`, and return that file's path.

    Raises as `write_error` does.
    """
    return append_line(folder / NOTIFICATIONS, notification)


def append_line(path: Path, value: Mapping[str, Any]) -> Path:
    """Add one line to a private file, all of it or nothing."""
    line = f"{encoded(value)}\n".encode("ascii")
    make_private(path.parent)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
        try:
            _write(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFull(message=f"there is no space left for `{path}`") from error
        raise refused(error, path) from error
    return path


def _write(descriptor: int, line: bytes) -> None:
    written = os.write(descriptor, line)
    if written < len(line):
        # The disk filled up in the middle of the line: half of one would spoil the next.
        os.ftruncate(descriptor, max(0, os.fstat(descriptor).st_size - written))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
