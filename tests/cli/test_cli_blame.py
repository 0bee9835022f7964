"""A defect of a capability is told as its author's, and one of this program as ours."""

from json import loads
from pathlib import Path

import pytest

from tests.cli.job_place import Place

BROKEN = """
def recursing():
    return recursing()

def raising():
    raise RuntimeError("wrong on purpose")

def stumbling():
    return None.text

def dying():
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
"""


def broken(folder: Path, name: str) -> Place:
    place = Place(folder)
    place.path("broken.py").write_text(BROKEN)
    place.path("broken.toml").write_text(f'name = "broken"\nobject = "broken:{name}"\n')
    place("capabilities", "add", str(place.path("broken.toml")))
    return place


@pytest.mark.parametrize(
    ("name", "error"),
    [("recursing", "RecursionError"), ("raising", "RuntimeError"), ("stumbling", "AttributeError")],
)
def test_what_a_capability_was_not_written_for_is_its_authors_to_correct(
    tmp_path: Path, name: str, error: str
) -> None:
    place = broken(tmp_path, name)

    done = place("jobs", "submit", "broken", "--wait")

    first, *_, last = [line for line in done.err.splitlines() if line.startswith(("error:", "hint:"))]
    assert first == f"error: capability `broken` has a defect: it raised {error}"
    assert last.startswith("hint: see where with `failwell jobs show ")
    assert last.endswith(", and fix it, or tell the author of `broken`")


def test_a_job_that_is_shown_says_the_same_beside_its_traceback(tmp_path: Path) -> None:
    place = broken(tmp_path, "raising")
    place("jobs", "submit", "broken", "--wait")

    shown = place("jobs", "show", "last")

    [told] = [line for line in shown.out.splitlines() if line.startswith("next ")]
    assert told.endswith("fix it, or tell the author of `broken`")


def test_the_record_itself_blames_the_capability(tmp_path: Path) -> None:
    place = broken(tmp_path, "raising")
    place("jobs", "submit", "broken", "--wait")

    error = loads(place("jobs", "show", "last", "--format", "json").out)["error"]

    assert (error["kind"], error["blame"]) == ("internal.bug", "worker")


def test_a_killed_job_says_that_a_want_of_memory_is_assumed_and_where_to_look(tmp_path: Path) -> None:
    place = broken(tmp_path, "dying")
    place("jobs", "submit", "broken", "--wait")

    shown = place("jobs", "show", "last").out
    error = loads(place("jobs", "show", "last", "--format", "json").out)["error"]

    assert "memory       assumed to have run out" in shown
    assert "kernel log" in next(line for line in shown.splitlines() if line.startswith("next "))
    assert (error["kind"], error["details"]["out_of_memory"]) == ("worker.oom", "assumed")
    assert "kernel log" in error["user_action"]["detail"]


WORKFLOW = """
workflow: {name: w, entry_point: a}
agents:
  - {name: a, type: job, job: broken, routes: [{to: $end}]}
"""


def test_a_workflow_blames_the_capability_of_its_job(tmp_path: Path) -> None:
    place = broken(tmp_path, "raising")
    place.path("w.yaml").write_text(WORKFLOW)

    done = place("run", str(place.path("w.yaml")), "--quiet")

    assert "error: capability `broken` has a defect: it raised RuntimeError" in done.err
