"""Where failwell keeps what it records: one state folder, readable by its owner alone.

`--store DIR`, else `$FAILWELL_STORE`, else `$XDG_STATE_HOME/failwell`, else `~/.local/state/failwell`.
In it: `journal.db`, and for each run a folder `runs/<run>/`.
"""

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path

from failwell.fault.axes import ActionKind
from failwell.fault.facts import UserAction
from failwell.journal.faults import BadRunId, StoreFull, StoreUnavailable

JOURNAL = "journal.db"
ERRORS = "errors.jsonl"
NOTIFICATIONS = "notifications.jsonl"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID_VARIABLES = ("FAILWELL_RUN_ID", "CONDUCTOR_RUN_ID")


def state_folder(named: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The state folder: the one that is named, or else what the environment says. Nothing is made."""
    known = os.environ if environ is None else environ
    if named or known.get("FAILWELL_STORE"):
        return Path(named or known["FAILWELL_STORE"]).expanduser().absolute()
    state = known.get("XDG_STATE_HOME", "")
    # The XDG specification says to pass over a relative path.
    above = Path(state) if state.startswith("/") else Path("~/.local/state").expanduser()
    return above / "failwell"


def run_folder(state: Path, run: str) -> Path:
    """The folder of one run. Nothing is made.

    Raises:
        BadRunId: the id could lead out of the state folder.
    """
    return state / "runs" / checked_id(run)


def make_private(folder: Path) -> Path:
    """Make `folder` and what is missing above it; what is made only its owner can enter.

    Raises:
        StoreUnavailable: the system refuses.
    """
    missing: list[Path] = []
    above = folder
    try:
        while not above.is_dir():
            missing.append(above)
            above = above.parent
        for one in reversed(missing):
            one.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise refused(error, folder) from error
    return folder


def refused(error: OSError, path: Path) -> StoreUnavailable | StoreFull:
    """The fault for a state folder that the system does not let us use."""
    if error.errno in _FULL:
        return StoreFull(
            message=f"there is no space left for `{path}`",
            user_action=UserAction(
                ActionKind.FREE_RESOURCES, "free disk space, or give another folder with `--store DIR`"
            ),
        )
    words = (error.strerror or type(error).__name__).lower()
    return StoreUnavailable(
        message=f"the state folder `{path}` cannot be used: {words}",
        retryable=False,
        user_action=UserAction(
            ActionKind.FIX_CONFIGURATION, "give another folder with `--store DIR` or `FAILWELL_STORE`"
        ),
    )


def checked_id(run: str) -> str:
    """`run` itself.

    Raises:
        BadRunId: it is not 1 to 64 letters, digits, `_` and `-`.
    """
    if not _ID.fullmatch(run):
        raise BadRunId(run=run)
    return run


def new_run_id(now: float, environ: Mapping[str, str] | None = None) -> str:
    """An id for a run that starts `now`: sorted by time, never given twice, unless the environment names one.

    Raises:
        BadRunId: the environment names an impossible one.
    """
    known = os.environ if environ is None else environ
    for variable in _ID_VARIABLES:
        named = known.get(variable)
        # A script is told the id of the run it belongs to; a run that it starts is another one.
        if named and not known.get("FAILWELL_IDEMPOTENCY_KEY", "").startswith(f"{named}/"):
            return checked_id(named)
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(now, UTC)
    # Milliseconds for the order, 40 random bits so that equal ones do not meet.
    return f"{moment:%Y%m%d-%H%M%S}{moment.microsecond // 1000:03d}-{os.urandom(5).hex()}"
