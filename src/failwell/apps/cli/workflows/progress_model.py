"""The progress of a run, folded from its events.

Of a loop with ten thousand items only the running ones are kept; the others are counted.
"""

from dataclasses import dataclass, field
from typing import Any

from failwell.journal.event import Event

_KEPT = 200
"""Nodes that have ended and are still shown."""


@dataclass(slots=True)
class Row:
    """One node, as it is shown."""

    path: str
    node: str
    type: str
    state: str = "running"
    attempt: int = 1
    started: float = 0.0
    ended: float | None = None
    until: float | None = None
    text: str = ""
    """The kind of its failure, why it was skipped, what it asks."""
    item: str | None = None
    total: int | None = None
    """Members of a group."""
    done: int = 0
    failed: int = 0

    @property
    def depth(self) -> int:
        """How deep it stands in groups and sub-workflows."""
        return self.path.count("/") + self.path.count("[")


@dataclass(slots=True)
class Model:
    """The whole run, as it is shown."""

    run: str = ""
    workflow: str = ""
    started: float = 0.0
    state: str = "running"
    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    spent: float = 0.0
    hidden: int = 0
    """Nodes that ended and are no longer shown."""

    def apply(self, event: Event) -> Row | None:
        """Apply an event and return the row that changed."""
        data: Any = event.data
        row = self.rows.get(data.get("path", ""))
        match event.type:
            case "run:started":
                self.run, self.workflow, self.started = data["run"], data["workflow"], event.at
            case "node:started":
                row = self._start(event)
            case "node:completed" | "node:failed":
                self._end(event, row)
            case "node:retrying" if row is not None:
                row.state, row.until = "retrying", data["until"]
                row.text = data["failure"]["envelope"]["kind"]
                self._spend(data)
            case "node:waiting" if row is not None:
                row.state, row.until = "waiting", data["until"]
            case "human_gate:paused" if row is not None:
                row.state, row.text = "asks", data.get("prompt", "")
            case "human_gate:resumed" if row is not None:
                row.state, row.text = "running", data["decision"]
            case "group:started" if row is not None:
                row.total = len(data["keys"])
            case "node:skipped":
                row = Row(data["path"], data["node"], "", "skipped", started=event.at, ended=event.at)
                row.text = data["reason"]
                self.rows[row.path] = row
            case "run:completed" | "run:failed" | "run:cancelled" | "run:cancelling":
                self.state = event.type.removeprefix("run:")
            case _:
                pass
        return row

    def _start(self, event: Event) -> Row:
        data: Any = event.data
        row = self.rows.get(data["path"])
        if row is None or row.ended is not None:
            row = Row(data["path"], data["node"], data["type"], started=event.at, item=data.get("item"))
            self.rows.pop(row.path, None)
            self.rows[row.path] = row
        row.state, row.attempt, row.until = "running", data["attempt"], None
        return row

    def _end(self, event: Event, row: Row | None) -> None:
        data: Any = event.data
        self._spend(data)
        if row is None:
            return
        well = event.type == "node:completed"
        row.state, row.ended = "done" if well else "failed", event.at
        row.text = "" if well else data["failure"]["envelope"]["kind"]
        above = self.rows.get(_above(row.path))
        if above is not None and above.total is not None:
            above.done += well
            above.failed += not well
            if well:
                self._drop(row.path)
        self._tidy()

    def _spend(self, data: Any) -> None:
        usage: dict[str, Any] = data.get("usage") or {}
        self.spent += usage.get("cost_usd") or 0.0

    def _drop(self, path: str) -> None:
        for key in [key for key in self.rows if key == path or key.startswith((f"{path}/", f"{path}["))]:
            del self.rows[key]
            self.hidden += 1

    def _tidy(self) -> None:
        if len(self.rows) <= _KEPT * 2:
            return
        over = [path for path, row in self.rows.items() if row.ended is not None][:-_KEPT]
        for path in over:
            del self.rows[path]
        self.hidden += len(over)


def _above(path: str) -> str:
    """The group or sub-workflow that a path lies in."""
    if path.endswith("]"):
        return path[: path.rindex("[")]
    return path.rpartition("/")[0]
