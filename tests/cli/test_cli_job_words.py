"""What the commands about jobs say: the id, the reason, the traceback, the last lines, and what to do next."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.job_place import Place, finish, read_until, wait_until
from tests.cli.running import failwell


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "echo", "slow", "many", "fails", "dies")


def test_a_failure_that_was_waited_for_names_its_job(place: Place) -> None:
    done = place("jobs", "submit", "fails", "--wait")

    job = place("jobs", "show", "last", "--json").data["id"]
    assert done.code == 1
    assert f"job {job} is submitted" in done.err
    assert f"job {job} failed; `failwell jobs show {job}`" in done.err


def test_a_large_shortfall_is_written_out(place: Place) -> None:
    place("jobs", "submit", "echo", "--wait")
    with closing(sqlite3.connect(place.path("state") / "journal.db")) as store:
        store.execute("UPDATE job_profiles SET ram_mb = 9e6")
        store.commit()

    done = place("jobs", "submit", "echo", "--wait")

    assert "9,000,000 MB needed" in done.err


def test_a_result_that_is_none_is_named_by_its_type(place: Place) -> None:
    done = place("jobs", "submit", "many", "--action", "odd", "--wait")

    assert "result is of type object" in done.err


def test_a_wait_below_a_second_is_told_the_same_everywhere() -> None:
    done = failwell("describe", given="HTTP/1.1 429 Too Many Requests\nretry-after-ms: 100\n\n{}")

    assert "retry in 0.1 s" in done.out
    assert "Wait 0.1 s" in done.out


def test_the_traceback_of_a_failure_and_the_last_words_of_a_death_are_shown(place: Place) -> None:
    place("jobs", "submit", "fails", "--wait")
    failed = place("jobs", "show", "last")
    place("jobs", "submit", "dies", "--wait", "--attempts", "1")
    died = place("jobs", "show", "last")
    as_markdown = place("jobs", "show", "last", "--format", "markdown")

    assert ", in fails\n  RuntimeError: [withheld]\n" in failed.out
    assert "stderr: about to fail" in failed.out
    assert "stderr: last words" in died.out
    assert "## printed\n\n```text\n" in as_markdown.out
    assert "stderr: last words\n```" in as_markdown.out


def test_a_tail_shows_how_far_a_job_has_got(place: Place) -> None:
    go = place.path("go")
    with place.start("workers", "run") as host:
        read_until(host.stderr, "runs the jobs of")
        job = place("jobs", "submit", "slow", "--action", "telling", f"path={go}", "--json").data["id"]
        with place.start("jobs", "tail", job, "--json") as tail:
            told = json.loads(read_until(tail.stdout, '"progress"'))
            go.touch()
            rest, _ = finish(tail)
        host.terminate()
        finish(host)

    assert told["data"] == {"fraction": 0.25, "message": "a quarter"}
    assert json.loads(rest.splitlines()[-1])["type"] == "completed"


def test_a_tail_says_that_nobody_runs_the_job(place: Place) -> None:
    job = place("jobs", "submit", "echo", "--json").data["id"]

    with place.start("jobs", "tail", job) as tail:
        told = read_until(tail.stderr, "no process runs jobs now")

    assert f"job {job} waits" in told


def test_a_listing_carries_no_results(place: Place) -> None:
    place("jobs", "submit", "echo", "value=42", "--wait")

    [listed] = place("jobs", "list", "--json").data
    shown = place("jobs", "show", listed["id"][:18], "--json").data

    assert "result" not in listed
    assert shown["result"] == 42


@pytest.mark.parametrize(
    "command", [("jobs", "list"), ("jobs", "submit", "echo"), ("workers", "run", "--until-empty"), ("top",)]
)
def test_a_file_in_place_of_the_state_folder_is_a_mistake(tmp_path: Path, command: tuple[str, ...]) -> None:
    file = tmp_path / "file"
    file.touch()

    done = failwell(*command, env={"FAILWELL_STORE": str(file)})

    assert done.code == 2
    assert f"the state folder `{file}` is a file" in done.err


def test_the_picture_says_why_each_job_waits(place: Place) -> None:
    go = place.path("go")
    with place.start("workers", "run", "--lanes", "8") as host:
        read_until(host.stderr, "runs the jobs of")
        place("jobs", "submit", "echo", "--wait")
        place("jobs", "submit", "slow", f"path={go}.first")
        Path(f"{go}.first").touch()
        place("jobs", "wait", "last")
        place("jobs", "submit", "slow", f"path={go}")
        place.until(Path(f"{go}.began"))
        second = place("jobs", "submit", "slow", f"path={go}", "--json").data["id"]
        wait_until(lambda: second in place("top", "--once").out)
        busy = place("top", "--once").out
        go.touch()
        place("jobs", "wait", second)
        host.terminate()
        finish(host)

    assert "`slow` is busy: it runs 1 at a time" in busy


def test_the_picture_says_which_jobs_wait_for_the_end_of_a_quarantine(place: Place) -> None:
    with place.start("workers", "run") as host:
        read_until(host.stderr, "runs the jobs of")
        for _ in range(3):
            place("jobs", "submit", "dies", "--attempts", "1", "--wait")
        place("jobs", "submit", "dies")
        wait_until(lambda: "next attempt in" in place("top", "--once").out)
        told = place("top", "--once").out
        host.terminate()
        finish(host)

    assert "`dies` is quarantined, because it died too often; next attempt in" in told
