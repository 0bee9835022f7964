"""Many jobs at once: totals, filters by kind and fingerprint, bulk retry and cancel with a preview; and jobs for later."""

import os
import pty
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.job_place import Place
from tests.cli.running import environment, failwell_process

REFUSING = """
from failwell.capability import CapabilityInputError

def refuses():
    raise CapabilityInputError("not like this", fields_invalid=["value"])
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path, "echo", "fails", "slow")
    (tmp_path / "refusing.py").write_text(REFUSING)
    (tmp_path / "refuses.toml").write_text('name = "refuses"\nobject = "refusing:refuses"\n')
    assert place("capabilities", "add", str(tmp_path / "refuses.toml")).code == 0
    return place


def _failures(place: Place, count: int = 3) -> list[str]:
    ids = [place("jobs", "submit", "fails", f"value={number}").out.strip() for number in range(count)]
    ids.append(place("jobs", "submit", "refuses").out.strip())
    assert place("workers", "run", "--until-empty").code == 0
    return ids


def test_dead_letters_are_listed_and_counted_by_kind(place: Place) -> None:
    *bugs, wrong = _failures(place)
    place("jobs", "submit", "echo", "value=1", "--wait")

    by_kind = place("jobs", "list", "--status", "failed", "--kind", "internal.bug", "--json").data
    by_prefix = place("jobs", "list", "--kind", "validation.", "--json").data
    mark = by_kind[0]["error"]["fingerprint"]
    by_mark = place("jobs", "list", "--fingerprint", mark[:8], "--json").data
    recent = place(
        "jobs", "list", "--status", "failed", "--since", "1h", "--capability", "fails", "--json"
    ).data
    old = place("jobs", "list", "--status", "failed", "--until", "1h", "--json").data
    totals = place("jobs", "stats", "--json").data
    misspelt = place("jobs", "list", "--kind", "provider.ratelimited")

    assert [job["id"] for job in by_kind] == bugs[::-1]
    assert [job["id"] for job in by_prefix] == [wrong]
    assert {job["id"] for job in by_mark} == set(bugs)
    assert {job["id"] for job in recent} == set(bugs)
    assert old == []
    assert [(total["status"], total["kind"], total["instance"], total["jobs"]) for total in totals] == [
        ("failed", "internal.bug", "fails", 3),
        ("completed", None, "echo", 1),
        ("failed", "validation.input_invalid", "refuses", 1),
    ]
    assert misspelt.code == 2
    assert "did you mean `provider.rate_limited`" in misspelt.err


def test_a_bulk_retry_shows_what_it_would_do_and_changes_nothing_unasked(place: Place) -> None:
    _failures(place)
    arguments = ("jobs", "retry", "--all", "--status", "failed", "--kind", "internal.bug", "--since", "2h")

    asked = place(*arguments, "--json")
    process = failwell_process(*arguments, "--store", str(place.folder / "state"))
    dry = place(*arguments, "--dry-run")
    unchanged = place("jobs", "list", "--status", "pending", "--json").data

    assert (asked.code, process.code, dry.code) == (2, 2, 0)
    assert asked.data["done"] is False
    assert asked.data["totals"][0]["jobs"] == asked.data["count"] == 3
    assert "would retry 3 jobs" in process.out
    assert "add `--yes`" in process.err
    assert unchanged == []


@pytest.mark.parametrize(("answer", "count"), [("y", 4), ("", 0)])
def test_a_person_at_a_terminal_is_asked(place: Place, answer: str, count: int) -> None:
    _failures(place)
    leader, follower = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "failwell",
        "jobs",
        "retry",
        "--all",
        "--store",
        str(place.folder / "state"),
    ]
    with closing(os.fdopen(leader, "w")) as person, closing(os.fdopen(follower)) as terminal:
        person.write(f"{answer}\n")
        person.flush()
        done = subprocess.run(
            command, stdin=terminal, capture_output=True, check=False, timeout=30, env=environment()
        )

    assert done.returncode == 0
    assert b"would retry 4 jobs" in done.stdout
    assert b"retry 4 jobs? [y/N]" in done.stderr
    assert len(place("jobs", "list", "--status", "pending", "--json").data) == count


def test_a_bulk_retry_submits_each_job_once(place: Place) -> None:
    *bugs, wrong = _failures(place)
    place("jobs", "retry", bugs[0])
    place("capabilities", "disable", "refuses")

    first = place("jobs", "retry", "--all", "--yes", "--json").data
    second = place("jobs", "retry", "--all", "--yes", "--json").data
    pending = place("jobs", "list", "--status", "pending", "--json").data
    by_hand = place("jobs", "retry", bugs[0])

    assert (first["done"], first["count"], first["retried_before"]) == (True, 2, 1)
    assert list(first["left_out"]) == ["refuses"]
    assert (second["count"], second["retried_before"]) == (0, 3)
    assert {job["key"] for job in pending} == {f"retry/{job}" for job in bugs}
    assert by_hand.code == 0
    assert place("jobs", "show", wrong, "--json").data["status"] == "failed"


def test_a_bulk_cancel_ends_waiting_jobs_with_and_without_a_host(place: Place) -> None:
    for number in range(3):
        place("jobs", "submit", "echo", f"value={number}", "--delay", "1h")
    kept = place("jobs", "submit", "slow", "path=x", "--delay", "1h").out.strip()

    refused = place("jobs", "cancel", "--all", "--capability", "echo")
    alone = place("jobs", "cancel", "--all", "--capability", "echo", "--yes", "--json").data
    with place.start("workers", "run"):
        place.until_hosted(place.folder / "state")
        hosted = place("jobs", "cancel", "--all", "--yes", "--json").data
        ended = place("jobs", "wait", kept, "--json").data

    assert refused.code == 2
    assert "would cancel 3 jobs" in refused.out
    assert (alone["done"], alone["count"]) == (True, 3)
    assert (hosted["jobs"], ended["status"], ended["certainty"]) == ([kept], "cancelled", "not_sent")


def test_a_wrong_choice_is_told(place: Place) -> None:
    cases = [
        (("retry",), "name a job, or choose jobs with `--all`"),
        (("retry", "last", "--all"), "exclude each other"),
        (("retry", "last", "--kind", "internal.bug"), "`--kind` needs `--all`"),
        (("retry", "--all", "--status", "running"), "has not ended"),
        (("cancel", "--all", "--status", "failed"), "has ended"),
        (("submit", "echo", "--at", "2h"), "`--delay 2h` takes a span"),
        (("submit", "echo", "--at", "2030-01-01", "--delay", "2h"), "not allowed with"),
        (("submit", "echo", "--unique", "ended"), "there is no `key`"),
    ]
    for arguments, words in cases:
        done = place("jobs", *arguments)
        assert done.code == 2
        assert words in done.err


def test_a_job_for_later_says_when_it_starts(place: Place) -> None:
    at = place("jobs", "submit", "echo", "value=1", "--at", "2100-01-31T18:00+01:00", "--json").data
    listed = place("jobs", "list").out
    soon = place("jobs", "submit", "echo", "value=2", "--delay", "0.2s", "--wait", "--json").data

    assert at["not_before"] == "2100-01-31T17:00:00.000+00:00"
    assert "starts 2100-01-31 17:00:00Z" in listed
    assert soon["result"] == 2
    assert soon["started"] > soon["submitted"]
