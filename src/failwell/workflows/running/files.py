"""The files of a run beside its journal: failures and notifications for other programs, conversations of agents.

The journal has all of it already, so a file that cannot be written does not fail the run.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from failwell.errors.fault import Fault
from failwell.store.event import Event
from failwell.store.folder import make_private, write_error, write_notification
from failwell.store.private_files import replace_private

_LOG = logging.getLogger("failwell.workflows")
CONVERSATION = "conversation-"
"""How the files begin that hold conversations of agents."""
WRITTEN = frozenset({"run:failed", "notification"})
"""The types of event that are written to a file."""


def write_event(folder: Path, run: str, workflow: str, event: Event) -> None:
    """Write the failure or the notification of an event."""
    if event.type == "run:failed":
        failure = event.data["failure"]
        write_failures(folder, run, workflow, failure, at=event.at, node=event.data.get("node"))
        return
    try:
        write_notification(folder, {"timestamp": event.at, "run_id": run, **event.data})
    except Fault as fault:
        _LOG.error("run %s: %s", run, fault)


def write_failures(
    folder: Path, run: str, workflow: str, failure: Mapping[str, Any], *, at: float, node: str | None
) -> None:
    """Write a failure, and the further failures of its group, one line each."""
    try:
        for member in (failure, *failure.get("others", ())):
            leaf = member["frames"][0]["node"] if member["frames"] else node
            write_error(folder, at=at, run=run, workflow=workflow, node=leaf, failure=member)
    except Fault as fault:
        _LOG.error("run %s: %s", run, fault)


def copy_conversations(before: Path, after: Path) -> None:
    """Take the conversations of agents from the folder of a run to that of the run that continues it."""
    try:
        for file in sorted(before.glob(f"{CONVERSATION}*.json")):
            make_private(after)
            replace_private(after / file.name, file.read_text("utf-8"))
    except (OSError, UnicodeError) as error:
        # A conversation that is lost begins anew.
        _LOG.error("the conversations in %s cannot be continued: %s", before, type(error).__name__)
