"""The state folder: its location, its permissions, and the JSON lines files of a run.

`--store DIR`, else `$FAILWELL_STORE`, else `$XDG_STATE_HOME/failwell`, else `~/.local/state/failwell`.
It holds `journal.db`, and for each run a folder `runs/<run>/`. Only its owner can read what is created.
"""

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from stat import S_IMODE, S_IWGRP, S_IWOTH
from typing import Any

from failwell.store.event import to_json
from failwell.store.faults import BadRunId, os_fault, unsafe_fault
from failwell.store.private_files import append_private

JOURNAL = "journal.db"
ERRORS = "errors.jsonl"
NOTIFICATIONS = "notifications.jsonl"
ENGINE = "engine.json"
"""In the folder of a run that another engine drives: which one, and where. Its events are copied from there."""
LAST_RUN = "last"
"""What commands take for the latest run."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_VARIABLES = ("FAILWELL_RUN_ID", "CONDUCTOR_RUN_ID")


def state_folder(path: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The state folder: `path` if given, else what the environment says. Creates nothing."""
    variables = os.environ if environ is None else environ
    if path or variables.get("FAILWELL_STORE"):
        return absolute_folder(Path(path or variables["FAILWELL_STORE"]).expanduser())
    state = variables.get("XDG_STATE_HOME", "")
    # The XDG specification says to ignore a relative path.
    parent = Path(state) if state.startswith("/") else Path("~/.local/state").expanduser()
    return parent / "failwell"


def absolute_folder(folder: Path) -> Path:
    """The folder as seen from the current directory.

    Raises:
        StoreUnavailable: the path is relative, and the current directory was deleted.
    """
    try:
        return folder.absolute()
    except OSError as error:
        raise os_fault(error, folder) from error


def store_option(folder: Path, environ: Mapping[str, str] | None = None) -> str:
    """The ` --store DIR` that a suggested command needs to find this state folder; empty for the default one."""
    if folder.absolute() == state_folder(environ=environ):
        return ""
    from shlex import quote

    return f" --store {quote(str(folder))}"


def run_folder(state: Path, run: str) -> Path:
    """The folder of one run. Creates nothing.

    Raises:
        BadRunId: the id could lead out of the state folder.
    """
    return state / "runs" / check_run_id(run)


def make_private(folder: Path) -> Path:
    """Create `folder` and its missing parents; only their owner can enter them.

    Raises:
        StoreUnavailable: the system refuses, or others can write to the folder.
        StoreFull: there is no space left.
    """
    missing_folders: list[Path] = []
    parent = folder
    try:
        while not parent.is_dir():
            missing_folders.append(parent)
            parent = parent.parent
        for path in reversed(missing_folders):
            path.mkdir(mode=0o700, exist_ok=True)
        mode = S_IMODE(folder.stat().st_mode)
    except OSError as error:
        raise os_fault(error, folder) from error
    if mode & (S_IWGRP | S_IWOTH) and os.name == "posix":
        raise unsafe_fault(folder, mode)
    return folder


def file_exists(path: Path) -> bool:
    """Whether a file of the state folder exists.

    Raises:
        StoreUnavailable: this process may not look into the folder.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise os_fault(error, path.parent) from error
    return True


# ---------------------------------------------------------------- run ids


def check_run_id(run: str) -> str:
    """`run` itself.

    Raises:
        BadRunId: it is not 1 to 64 letters, digits, `_` and `-`.
    """
    if not _ID.fullmatch(run):
        raise BadRunId(run=run)
    return run


def check_new_run_id(run: str) -> str:
    """`run` itself, which a new run may have.

    Raises:
        BadRunId: it is no run id, or commands would read it as something else.
    """
    if run == LAST_RUN or run.startswith("-"):
        raise BadRunId(
            run=run,
            reason="commands read it as the latest run"
            if run == LAST_RUN
            else "commands read it as an option",
        )
    return check_run_id(run)


def new_run_id(now: float, environ: Mapping[str, str] | None = None) -> str:
    """An id for a run that starts `now`. Ids sort by time and are unique; the environment can set one.

    Raises:
        BadRunId: the environment sets an invalid one.
    """
    variables = os.environ if environ is None else environ
    for variable in _ID_VARIABLES:
        run = variables.get(variable)
        # A script gets the id of its run in the environment; a run that it starts is another one.
        if run and not variables.get("FAILWELL_IDEMPOTENCY_KEY", "").startswith(f"{run}/"):
            return check_new_run_id(run)
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(now, UTC)
    # Milliseconds for the order, 40 random bits against collisions.
    return f"{moment:%Y%m%d-%H%M%S}{moment.microsecond // 1000:03d}-{os.urandom(5).hex()}"


# ---------------------------------------------------------------- JSON lines files


def write_error(
    folder: Path, *, at: float, run: str, workflow: str, node: str | None, failure: Mapping[str, Any]
) -> Path:
    """Append a run's failure to its `errors.jsonl`, and return that file's path.

    Raises:
        StoreFull: there is no space left.
        StoreUnavailable: the folder cannot be written to.
    """
    from datetime import UTC, datetime

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
    """Append a notification to a run's `notifications.jsonl`, and return that file's path.

    Raises as `write_error` does.
    """
    return append_line(folder / NOTIFICATIONS, notification)


def append_line(path: Path, value: Mapping[str, Any]) -> Path:
    """Append one line to a private file of the state folder, all of it or nothing.

    A line is one system call, so lines of several writers never mix.
    """
    line = f"{to_json(value)}\n".encode("ascii")
    make_private(path.parent)
    try:
        descriptor = append_private(path)
        try:
            _write_whole(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise os_fault(error, path) from error
    return path


def _write_whole(descriptor: int, line: bytes) -> None:
    count = os.write(descriptor, line)
    if count < len(line):
        # The disk filled up in the middle of the line. Half a line would spoil the next one.
        os.ftruncate(descriptor, max(0, os.fstat(descriptor).st_size - count))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
