"""The environment of a script: the host's, then the author's, then the variables of the run."""

import os
from collections.abc import Mapping

from failwell.processes.tree import MARKER

_MARKER = MARKER.encode()


def script_environment(
    author: Mapping[str, str],
    *,
    mark: str,
    error_out: str,
    usage_out: str,
    attempt: int,
    key: str,
    run: str,
) -> dict[bytes, bytes]:
    """One script's environment. `attempt` counts from 1; the variable for it counts from 0."""
    error_path, retries = os.fsencode(error_out), str(attempt - 1).encode()
    environment = dict(os.environb)
    # Marks are inherited, so that an outer run finds the processes of an inner one.
    outer = environment.get(_MARKER)
    # UTF-8 instead of a legacy code page; an author can override it.
    environment[b"PYTHONUTF8"] = b"1"
    # What a script in Python prints is seen when it prints it, not when a buffer is full.
    environment.setdefault(b"PYTHONUNBUFFERED", b"1")
    for name, value in author.items():
        environment[os.fsencode(name)] = os.fsencode(value)
    # These belong to one execution and override the values of an outer run or of the author.
    environment.update(
        {
            b"FAILWELL_ERROR_OUT": error_path,
            b"CONDUCTOR_ERROR_OUT": error_path,
            b"FAILWELL_USAGE_OUT": os.fsencode(usage_out),
            b"FAILWELL_RETRY_ATTEMPT": retries,
            b"CONDUCTOR_RETRY_ATTEMPT": retries,
            b"FAILWELL_IDEMPOTENCY_KEY": os.fsencode(key),
            b"FAILWELL_RUN_ID": os.fsencode(run),
            _MARKER: outer + b":" + mark.encode() if outer else mark.encode(),
        }
    )
    return environment
