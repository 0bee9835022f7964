"""`failwell jobs prune`, in a process of its own: what is over goes, with all that belongs to it, and nothing else."""

import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.store.sqlite import JobStore
from failwell.store.sqlite.run_store import SqliteStore
from tests.cli.job_place import wait_until
from tests.cli.running import Done, environment, failwell

MODULE = """
import os, time

def echo(value=None):
    if value == "bad":
        raise ValueError("no")
    return value

def paint(size):
    return {"image": b"x" * size, "more": [{"thumb": b"y" * size}]}

class Slow:
    def execute(self, path):
        open(path + ".began", "a").close()
        while not os.path.exists(path):
            self.check_cancel()
            time.sleep(0.005)
        return "slow"
"""
DAY = 86_400.0
FAILWELL = (sys.executable, "-m", "failwell")


class Place:
    """A state folder with three capabilities in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.results = self.state / "jobs" / "results"

    def furnish(self) -> None:
        """Register them."""
        (self.folder / "tools.py").write_text(MODULE)
        for name, target in (("echo", "echo"), ("paint", "paint"), ("slow", "Slow")):
            file = self.folder / f"{name}.toml"
            file.write_text(f'name = "{name}"\nobject = "tools:{target}"\n')
            CapabilityRegistry(self.state).add(file)

    def __call__(self, *arguments: str, given: str = "") -> Done:
        return failwell(*arguments, "--store", str(self.state), given=given)

    def prune(self, *arguments: str, given: str = "") -> Done:
        return self("jobs", "prune", *arguments, given=given)

    def submit(self, *arguments: str) -> str:
        return self("jobs", "submit", *arguments, "--json").data["id"]

    def ids(self) -> list[str]:
        return [job["id"] for job in self("jobs", "list", "--json").data]

    def finish(self) -> None:
        assert self("workers", "run", "--until-empty").code == 0

    def age(self, job: str, seconds: float) -> None:
        """Let a job have ended so long ago."""
        with closing(sqlite3.connect(self.state / "journal.db")) as connection, connection:
            connection.execute("UPDATE jobs SET ended = ended - ? WHERE id = ?", (seconds, job))

    def counted(self) -> tuple[dict[str, int], dict[str, int]]:
        """How many jobs stand where: as it is kept, and as it is."""
        with closing(JobStore(self.state)) as store:
            kept = {state: count for state, count in store.counts().items() if count}
        with closing(sqlite3.connect(self.state / "journal.db")) as connection:
            real = dict(connection.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall())
        return kept, real

    def until(self, path: Path) -> None:
        end = time.monotonic() + 25
        while not path.exists():
            assert time.monotonic() < end, f"{path} never came"
            time.sleep(0.01)

    def until_hosted(self, state: Path) -> None:
        wait_until(lambda: bool(list((state / "jobs" / "hosts").glob("*/host.json"))))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = Place(tmp_path_factory.mktemp("empty"))
    made.furnish()
    return made


@pytest.fixture(scope="module")
def full(empty: Place, tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, list[str]]:
    made = a_copy(empty, tmp_path_factory.mktemp("full"))
    jobs = [made.submit("echo", f"value={value}") for value in ("1", "2", "3", '"bad"', "5")]
    made("jobs", "cancel", jobs[4])
    made.finish()
    made.age(jobs[0], 2 * DAY)
    made.age(jobs[1], DAY)
    return made, jobs


def a_copy(of: Place, folder: Path) -> Place:
    copytree(of.folder, folder, dirs_exist_ok=True)
    return Place(folder)


@pytest.fixture
def place(empty: Place, tmp_path: Path) -> Place:
    """Where nothing was done yet."""
    return a_copy(empty, tmp_path)


@pytest.fixture
def ended(full: tuple[Place, list[str]], tmp_path: Path) -> tuple[Place, list[str]]:
    """Jobs that are over: two days, one day and no time ago, one that failed, one that was cancelled."""
    return a_copy(full[0], tmp_path), full[1]


def test_what_ended_long_ago_goes_and_the_rest_stays(ended: tuple[Place, list[str]]) -> None:
    place, jobs = ended

    done = place.prune("--older-than", "36h", "--yes")

    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["deleted 1 job with 3 events", f"  {jobs[0]}"]
    assert place.ids() == jobs[:0:-1]
    assert place.counted()[0] == place.counted()[1] == {"completed": 2, "failed": 1, "cancelled": 1}
    shown = place("jobs", "show", jobs[0])
    assert shown.code != 0
    assert f"no job `{jobs[0]}`" in shown.err


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (["--keep", "2"], [0, 1, 2]),
        (["--keep", "0"], [0, 1, 2, 3]),
        (["--status", "failed"], [3]),
        (["--status", "failed", "--status", "completed"], [0, 1, 2, 3]),
        (["--status", "completed", "--keep", "1"], [0, 1]),
        (["--older-than", "1h", "--keep", "4"], [0]),
        (["--older-than", "3d"], []),
        (["--older-than", "1h", "--instance", "paint"], []),
        (["--older-than", "1h", "--instance", "echo"], [0, 1]),
    ],
)
def test_a_dry_run_says_what_would_go_and_lets_it_be(
    ended: tuple[Place, list[str]], options: list[str], gone: list[int]
) -> None:
    place, jobs = ended

    done = place.prune(*options, "--dry-run", "--json")

    assert done.code == 0, done.err
    assert done.data["deleted"] is False
    assert done.data["jobs"] == [jobs[index] for index in gone]
    assert len(place.ids()) == 5
    assert place.prune(*options, "--yes", "--json").data["jobs"] == done.data["jobs"]
    assert len(place.ids()) == 5 - len(gone)


def test_every_format_tells_the_same(ended: tuple[Place, list[str]]) -> None:
    place, jobs = ended
    options = ("--status", "failed", "--dry-run")

    as_json = place.prune(*options, "--format", "json").data
    as_text = place.prune(*options).out
    as_markdown = place.prune(*options, "--format", "markdown").out

    assert as_json == {
        "deleted": False,
        "jobs": [jobs[3]],
        "events": 3,
        "files": 0,
        "files_left": [],
        "kept_for_runs": [],
    }
    assert as_text == f"would delete 1 job with 3 events\n  {jobs[3]}\n"
    assert as_markdown == f"would delete 1 job with 3 events\n- {jobs[3]}\n"


def test_nothing_is_deleted_that_nobody_agreed_to(ended: tuple[Place, list[str]]) -> None:
    place, _ = ended

    done = place.prune("--keep", "0")

    assert done.code == 2
    assert "4 jobs with 12 events would be deleted; add `--yes`" in done.err
    assert len(place.ids()) == 5


@pytest.mark.parametrize(("answer", "left"), [("y", 1), ("", 5), ("no", 5)])
def test_a_person_is_asked_and_heard(ended: tuple[Place, list[str]], answer: str, left: int) -> None:
    place, _ = ended
    leader, follower = pty.openpty()
    command = [*FAILWELL, "jobs", "prune", "--keep", "0", "--store", str(place.state)]
    with closing(os.fdopen(leader, "w")) as person, closing(os.fdopen(follower)) as terminal:
        person.write(f"{answer}\n")
        person.flush()
        done = subprocess.run(
            command, stdin=terminal, capture_output=True, check=False, timeout=30, env=environment()
        )

    assert done.returncode == 0
    assert done.stderr.decode() == "delete 4 jobs with 12 events? [y/N] "
    assert (done.stdout.decode() == "nothing was deleted\n") is (left == 5)
    assert len(place.ids()) == left


def test_where_nothing_is_recorded_nothing_is_made(tmp_path: Path) -> None:
    done = failwell("jobs", "prune", "--keep", "0", "--store", str(tmp_path / "none"))

    assert (done.code, done.out) == (0, "deleted 0 jobs with 0 events\n")
    assert not (tmp_path / "none").exists()


def test_the_files_of_a_result_go_with_it_and_those_of_others_stay(place: Place) -> None:
    old, new = place.submit("paint", "size=10"), place.submit("paint", "size=20")
    place.finish()
    place.age(old, 40 * DAY)
    stranger = place.results / "notes.txt"
    stranger.write_text("not a result")

    done = place.prune("--older-than", "30d", "--yes")

    assert done.out.splitlines()[0] == "deleted 1 job with 3 events and 2 files"
    kept = place("jobs", "show", new, "--json").data["result"]
    paths = {Path(kept["image"]["$file"]["path"]), Path(kept["more"][0]["thumb"]["$file"]["path"])}
    assert set(place.results.iterdir()) == {*paths, stranger}
    assert {path.stat().st_size for path in paths} == {20}


def test_a_result_that_names_a_file_of_somebody_else_costs_him_nothing(place: Place) -> None:
    precious = place.folder / "precious.bin"
    precious.write_text("mine")
    job = place.submit("echo", f'value={{"$file": {{"path": "{precious}", "size": 4}}}}')
    place.submit("echo", "value=1")
    place.finish()

    done = place.prune("--keep", "0", "--yes", "--json")

    assert done.data["jobs"] == [job]
    assert done.data["files"] == 0
    assert precious.read_text() == "mine"


def test_jobs_of_a_run_that_is_not_over_stay(place: Place) -> None:
    jobs = {run: place.submit("echo", "value=1") for run in ("open", "done")}
    place.submit("echo", "value=2")
    place.finish()
    with closing(SqliteStore(place.state)) as store:
        for run in jobs:
            store.create(run, at=time.time(), workflow="w")
        store.append("done", [("run:completed", time.time(), {})])
    with closing(sqlite3.connect(place.state / "journal.db")) as connection, connection:
        for run, job in jobs.items():
            connection.execute(
                "UPDATE jobs SET request = json_set(request, '$.run', ?) WHERE id = ?", (run, job)
            )

    done = place.prune("--keep", "0", "--yes", "--json")
    told = place.prune("--keep", "0", "--yes")

    assert done.data["jobs"] == [jobs["done"]]
    assert done.data["kept_for_runs"] == [jobs["open"]]
    assert f"left alone, because their runs have not ended: {jobs['open']}" in told.out


def test_a_row_that_is_damaged_can_go_too(ended: tuple[Place, list[str]]) -> None:
    place, jobs = ended
    with closing(sqlite3.connect(place.state / "journal.db")) as connection, connection:
        connection.execute(
            """UPDATE jobs SET request = '{"run": ', result = '{"$file": ' WHERE id = ?""", (jobs[0],)
        )

    done = place.prune("--older-than", "36h", "--yes", "--json")

    assert done.code == 0, done.err
    assert done.data["jobs"] == [jobs[0]]
    assert place.ids() == jobs[:0:-1]


def test_a_key_is_forgotten_with_its_job(place: Place) -> None:
    first = place.submit("echo", "value=1", "--key", "k")
    place.submit("echo", "value=2")
    place.finish()
    place.prune("--keep", "0", "--yes")

    second = place.submit("echo", "value=1", "--key", "k")

    assert second != first
    assert place.submit("echo", "value=1", "--key", "k") == second


def test_a_host_is_not_disturbed_and_keeps_what_it_has(place: Place) -> None:
    go = place.folder / "go"
    host = subprocess.Popen(
        [*FAILWELL, "workers", "run", "--lanes", "2", "--store", str(place.state)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        place.until_hosted(place.state)
        over = [
            place("jobs", "submit", "echo", f"value={n}", "--wait", "--json").data["id"] for n in range(3)
        ]
        running = place.submit("slow", f"path={go}")
        place.until(Path(f"{go}.began"))
        waiting = place.submit("slow", f"path={go}")
        pruned = place.prune("--older-than", "0s", "--keep", "0", "--yes", "--json")
        standing = {job["id"]: job["status"] for job in place("jobs", "list", "--json").data}
        between = place.counted()
        go.touch()
        ends = [place("jobs", "wait", job, "--json").data["status"] for job in (running, waiting)]
        again = place("jobs", "submit", "echo", "value=9", "--wait", "--json").data
        second = place.prune("--older-than", "0s", "--yes", "--json").data["jobs"]
    finally:
        host.send_signal(signal.SIGTERM)
        _, words = host.communicate(timeout=25)

    assert pruned.code == 0, pruned.err
    assert pruned.data["jobs"] == over
    assert standing == {running: "running", waiting: "pending"}
    assert between[0] == between[1] == {"running": 1, "pending": 1}
    assert ends == ["completed", "completed"]
    assert again["result"] == 9
    assert second == [running, waiting]
    assert place.counted()[0] == place.counted()[1] == {"completed": 1}
    assert b"Traceback" not in words


def test_thousands_of_old_jobs_go_while_others_are_handed_in(place: Place) -> None:
    number = 3_000
    old_ones(place, number)
    pruning = subprocess.Popen(
        [*FAILWELL, "jobs", "prune", "--older-than", "1d", "--yes", "--json", "--store", str(place.state)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    new: list[str] = []
    longest = 0.0
    with closing(JobStore(place.state)) as store:
        from failwell.jobs.capabilities import CapabilityRegistry
        from failwell.jobs.client.queue_client import QueueClient
        from failwell.jobs.job import JobRequest

        desk = QueueClient(store, CapabilityRegistry(place.state))
        while pruning.poll() is None:
            began = time.monotonic()
            new.append(desk.submit(JobRequest(instance="echo", arguments={"value": len(new)})).id)
            longest = max(longest, time.monotonic() - began)
            assert len(new) < 100_000
    out, err = pruning.communicate(timeout=25)

    assert pruning.returncode == 0, err
    assert out.count(b"old-") == number
    assert new
    assert longest < 1.0
    assert place.counted()[0] == place.counted()[1] == {"pending": len(new)}


def old_ones(place: Place, number: int) -> None:
    """Put jobs on record that ended long ago."""
    rows: list[tuple[Any, ...]] = [
        (n, f"old-{n:06}", "echo", "completed", 0, 1.0, 1.0, 1.0, 1, 1, 0, '{"arguments":{}}', "1", f"{n},")
        for n in range(1, number + 1)
    ]
    with closing(JobStore(place.state)):
        pass
    with closing(sqlite3.connect(place.state / "journal.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO jobs (key, id, instance, state, priority, submitted, started, ended, attempt, charged,"
            " losses, request, result, events) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            rows,
        )
        connection.executemany(
            "INSERT INTO job_events (seq, job, type, at, data) VALUES (?,?,'completed',1.0,'{}')",
            [(n, n) for n in range(1, number + 1)],
        )
