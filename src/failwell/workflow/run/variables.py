"""The environment that a script is given: the host's, the author's, and the run's own on top."""

import os
from collections.abc import Mapping
from typing import Any

from failwell.processes.tree import MARKER

ERROR_OUT = "FAILWELL_ERROR_OUT"
USAGE_OUT = "FAILWELL_USAGE_OUT"
_OURS = frozenset(
    {
        ERROR_OUT, USAGE_OUT, "FAILWELL_RETRY_ATTEMPT", "FAILWELL_IDEMPOTENCY_KEY", "FAILWELL_RUN_ID", MARKER,
        "CONDUCTOR_ERROR_OUT", "CONDUCTOR_RETRY_ATTEMPT",
    }
)  # fmt: skip
"""Variables that name one execution. Those of an outer run never reach an inner one's scripts."""


class Variables:
    """Makes environments. The host's part is copied only when it has changed."""

    def __init__(self) -> None:
        self._seen: dict[Any, Any] = {}
        self._host: dict[bytes, bytes] = {}
        self._outer = ""

    def of_script(
        self,
        author: Mapping[str, str],
        *,
        mark: str,
        error_out: str,
        usage_out: str,
        attempt: int,
        key: str,
        run: str,
    ) -> dict[bytes, bytes]:
        """One script's environment; `attempt` counts from 1, scripts are told it from 0."""
        self._refresh()
        path, before = os.fsencode(error_out), str(attempt - 1).encode()
        made = dict(self._host)
        for name, value in author.items():
            made[os.fsencode(name)] = os.fsencode(value)
        made.update(
            {
                b"FAILWELL_ERROR_OUT": path,
                b"CONDUCTOR_ERROR_OUT": path,
                b"FAILWELL_USAGE_OUT": os.fsencode(usage_out),
                b"FAILWELL_RETRY_ATTEMPT": before,
                b"CONDUCTOR_RETRY_ATTEMPT": before,
                b"FAILWELL_IDEMPOTENCY_KEY": os.fsencode(key),
                b"FAILWELL_RUN_ID": os.fsencode(run),
                MARKER.encode(): f"{self._outer}{mark}".encode(),
            }
        )
        return made

    def _refresh(self) -> None:
        now = dict(os.environ)
        if self._seen == now and self._host:
            return
        self._seen = now
        ours = {name.encode() for name in _OURS}
        self._host = {
            os.fsencode(name): os.fsencode(value)
            for name, value in self._seen.items()
            if os.fsencode(name) not in ours
        }
        # Legacy code pages garble what a script prints; an author may still say otherwise.
        self._host[b"PYTHONUTF8"] = b"1"
        # Marks are handed down, so that an outer run finds the processes of an inner one.
        outer = os.environ.get(MARKER)
        self._outer = f"{outer}:" if outer else ""
