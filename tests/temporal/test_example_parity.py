"""Every example does on Temporal what it does on one machine: the same tests, with `--engine temporal`, and the same events.

What may differ is listed in docs/guides/temporal-runs.md, and nowhere else.
"""

import pytest

pytest.importorskip("temporalio")

import json
from collections.abc import Generator
from itertools import zip_longest
from pathlib import Path
from pprint import pformat
from typing import Any

from failwell import workflows
from failwell.store.event import Event
from tests.cli.running import Done, failwell
from tests.examples import test_workflow_examples as examples
from tests.temporal.engines import sequences
from tests.temporal.project import worker
from tests.temporal_server import server, task_queue

CODEC = "tests.temporal.hiding:Hiding"
"""Secret inputs travel only if payloads are encrypted."""
LOCAL = {
    # It kills the process that drives a run; on Temporal that is a worker: tests/temporal/test_campaigns.py.
    "test_a_long_job_whose_host_is_killed_does_nothing_twice"
}
RESUMED = {"human_gate:answered", "run:resumed"}
"""Events that say that a run which nobody drove goes on. On Temporal, somebody always drives it."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


class TemporalProject(examples.Project):
    """The same folder and commands; `run` submits to a worker of the project."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.queue = task_queue()

        self.id = f"r-{self.queue[-8:]}"
        """Runs of one namespace have different ids; the tests call theirs `r`."""

    def type(self, *arguments: str) -> Done:
        words = [self.id if word == "r" else word for word in arguments]
        if words[0] == "run":
            words += ["--engine", "temporal", "--address", server().address, "--task-queue", self.queue]
        done = failwell(*words, env={"FAILWELL_STORE": str(self.store), "FAILWELL_TEMPORAL_CODEC": CODEC})
        folder = self.store / "runs" / "r"
        if folder.parent.exists() and not folder.exists():
            folder.symlink_to(folder.parent / self.id)
        return Done(done.code, done.out.replace(self.id, "r"), done.err.replace(self.id, "r"))


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[TemporalProject]:
    remote = TemporalProject(tmp_path)
    with worker(remote.queue, tmp_path / "worker", codec=CODEC):
        yield remote
        local = examples.Project(tmp_path / "local")
        local.folder.mkdir()
        names = [name for name in request.function.__annotations__ if name not in ("project", "return")]
        request.function(project=local, **{name: request.node.funcargs[name] for name in names})

    assert not (found := differences(runs_of(remote), runs_of(local))), pformat(found)


def runs_of(project: examples.Project) -> list[Any]:
    """The status and the events of each run, in the order of their starts, whatever the folder of the project is."""
    runs = sorted(workflows.list_runs(store=project.store), key=lambda run: run.started)
    found = [[run.status, sequences(_events(run.id, project.store))] for run in runs]
    return json.loads(json.dumps(found).replace(str(project.folder), "FOLDER").replace(project.id, "r"))


def _events(run: str, store: Path) -> list[Event]:
    """The events of a run, without those that say that it was taken up and waits on."""
    events: list[Event] = []
    for event in workflows.read_events(run, store=store):
        is_repeated = event.type == "run:paused" and bool(events) and events[-1].type == event.type
        if event.type not in RESUMED and not is_repeated:
            events.append(event)
    return events


def differences(remote: list[Any], local: list[Any]) -> list[Any]:
    """Where two lists of runs differ."""
    if [status for status, _ in remote] != [status for status, _ in local]:
        return [[status for status, _ in remote], [status for status, _ in local]]
    found: list[Any] = []
    for (_, there), (_, here) in zip(remote, local, strict=True):
        for path in {**there, **here}:
            events = there.get(path, []), here.get(path, [])
            found += [(path, *pair) for pair in zip_longest(*events) if pair[0] != pair[1]]
    return found


globals().update(
    {
        name: test
        for name, test in vars(examples).items()
        if name.startswith("test_")
        and "project" in getattr(test, "__annotations__", {})
        and name not in LOCAL
    }
)
