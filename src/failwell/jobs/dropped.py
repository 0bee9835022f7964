"""Results that nobody will ever have: their files go with them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from failwell.jobs.worker import FileHandle
from failwell.runtime.suppress import suppress


def drop(value: Any) -> None:
    """Delete the files of a result that was not handed to anybody. Handles are of our own folder alone."""
    if isinstance(value, FileHandle):
        with suppress(OSError, reason="a file that cannot be deleted now is found when old jobs are deleted"):
            Path(value.path).unlink(missing_ok=True)
    elif isinstance(value, Mapping):
        for one in cast("Mapping[str, Any]", value).values():
            drop(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            drop(one)
