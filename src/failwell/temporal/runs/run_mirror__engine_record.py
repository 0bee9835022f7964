"""Which server has a run: a file in the run's folder, so that commands find it without options."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from failwell.store.folder import ENGINE
from failwell.store.private_files import replace_private
from failwell.temporal.connection import ConnectionOptions, connection_options

_UNSTORED = ("api_key", "rpc_metadata")
"""Secrets. They come from the environment, as certificates that are no files do."""


def write_engine(folder: Path, connection: ConnectionOptions) -> None:
    """Note in the folder of a run that this server has it."""
    values = {
        name: value
        for name, value in asdict(connection).items()
        if name not in _UNSTORED and isinstance(value, str | bool)
    }
    replace_private(folder / ENGINE, json.dumps({"engine": "temporal", **values}))


def read_engine(folder: Path) -> ConnectionOptions | None:
    """The server that has the run of this folder; `None` for a run of this machine.

    Raises:
        MissingExtra: temporalio is not installed.
    """
    try:
        content: object = json.loads((folder / ENGINE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    values = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    return connection_options(**{name: value for name, value in values.items() if name != "engine"})


def forget_engine(folder: Path) -> None:
    """The run is driven on this machine from now on."""
    (folder / ENGINE).unlink(missing_ok=True)
