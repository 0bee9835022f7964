"""Raises a typed error from a Python script that failwell runs.

    from failwell.workflows.script_helpers.failwell_error import raise_kind

    raise_kind("external.git.drift", "the branch moved", details={"branch": "main"})

The file needs nothing but Python 3 and may be copied beside a script. `raise_kind` writes the error
and returns: how the script ends is its own affair.
"""

import json
import os
from typing import Any, Dict, Optional  # noqa: UP035  (a copy of this file may run on an older Python)

_VARIABLES = ("FAILWELL_ERROR_OUT", "CONDUCTOR_ERROR_OUT")


def raise_kind(kind: str, message: str, *, details: Optional[Dict[str, Any]] = None) -> str:  # noqa: UP006, UP045  (as above)
    """Write the error of this run and return the path of the file. A later call replaces an earlier one.

    Raises:
        RuntimeError: the script was not started by failwell.
        ValueError: `kind` or `message` is empty, or `details` hold a NaN.
        TypeError: `details` are not JSON.
    """
    path = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), None)
    if path is None:
        raise RuntimeError("FAILWELL_ERROR_OUT is not set: run this script as a step of `failwell run`")
    if not kind or not message:
        raise ValueError("an error needs a kind and a message")
    error: Dict[str, Any] = {"failwell_error": True, "kind": kind, "message": message}  # noqa: UP006  (as above)
    if details is not None:
        error["details"] = details
    text = json.dumps(error, allow_nan=False)
    draft = "{}.{}.tmp".format(path, os.getpid())  # noqa: UP032  (as above)
    with open(draft, "w", encoding="utf-8") as file:  # noqa: PTH123  (as above)
        file.write(text)
    os.replace(draft, path)  # noqa: PTH105  (as above)
    return path
