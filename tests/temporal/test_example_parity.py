"""Every example does on Temporal what it does on one machine: the same tests, with `--engine temporal`."""

import pytest

pytest.importorskip("temporalio")

from collections.abc import Generator
from pathlib import Path

from tests.apps.running import Done, failwell
from tests.examples import test_workflow_examples as examples
from tests.temporal.project import worker
from tests.temporal_server import server, task_queue

CODEC = "tests.temporal.hiding:Hiding"
"""Secret inputs travel only if payloads are encrypted."""
LOCAL = {
    # It kills the process that drives a run; on Temporal that is a worker: tests/temporal/test_campaigns.py.
    "test_a_long_job_whose_host_is_killed_does_nothing_twice"
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


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
def project(tmp_path: Path) -> Generator[TemporalProject]:
    project = TemporalProject(tmp_path)
    with worker(project.queue, tmp_path / "worker", codec=CODEC):
        yield project


globals().update(
    {
        name: test
        for name, test in vars(examples).items()
        if name.startswith("test_")
        and "project" in getattr(test, "__annotations__", {})
        and name not in LOCAL
    }
)
