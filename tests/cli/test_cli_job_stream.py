"""`failwell jobs submit --stream`: what a job makes, one item a line, as it comes."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.job_place import Place, finish


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "many")


def test_items_are_printed_as_they_are_made(place: Place) -> None:
    seen = place.path("seen")

    with place.start("jobs", "submit", "many", "--stream", f"path={seen}", "--json") as running:
        assert running.stdout is not None
        told: list[int] = []
        for number in range(3):
            told.append(json.loads(running.stdout.readline())["number"])
            Path(f"{seen}{number}").touch()
        rest, _ = finish(running)

    assert (told, rest, running.returncode) == ([0, 1, 2], "", 0)


def test_texts_are_printed_plainly_and_as_json_if_asked_for(place: Place) -> None:
    plain = place("jobs", "submit", "many", "--stream", "--action", "words")
    as_json = place("jobs", "submit", "many", "--action", "words", "--json", "--stream")

    assert (plain.out, as_json.out) == ("one\ntwo\n", '"one"\n"two"\n')


def test_a_stream_that_breaks_fails_the_command_and_names_its_job(place: Place) -> None:
    done = place("jobs", "submit", "many", "--stream", "--action", "broken")

    job = place("jobs", "show", "last", "--json").data
    assert (done.code, done.out, job["status"]) == (1, "1\n", "failed")
    assert f"`failwell jobs show {job['id']}`" in done.err


def test_a_stream_runs_in_its_own_process_beside_another_host(place: Place) -> None:
    with place.start("workers", "run") as host:
        place.until_hosted(place.path("state"))
        done = place("jobs", "submit", "many", "--stream", "--action", "words")
        host.send_signal(signal.SIGTERM)
        finish(host)

    assert (done.code, done.out) == (0, "one\ntwo\n")
    assert place("jobs", "show", "last", "--json").data["status"] == "completed"
