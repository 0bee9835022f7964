"""`failwell jobs`, `failwell workers` and `failwell top`, each in a process of its own."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from shutil import rmtree

import pytest

from tests.cli.job_place import Place, finish, wait_until
from tests.cli.running import environment, failwell


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "echo", "slow")


def test_a_job_is_kept_until_somebody_runs_it(place: Place) -> None:
    handed_in = place("jobs", "submit", "echo", 'value={"a": [1, null]}', "--priority", "3", "--json")
    waiting = place("jobs", "list", "--json").data
    drained = place("workers", "run", "--until-empty")
    shown = place("jobs", "show", "last", "--json").data

    assert handed_in.data["status"] == "pending"
    assert [job["id"] for job in waiting] == [handed_in.data["id"]]
    assert drained.code == 0
    assert (shown["status"], shown["result"], shown["priority"]) == ("completed", {"a": [1, None]}, 3)
    kinds = [event["type"] for event in shown["events"]]
    assert [kind for kind in kinds if not kind.startswith("worker:")] == ["submitted", "started", "completed"]


def test_whoever_waits_runs_the_job_if_nobody_else_does(place: Place) -> None:
    done = place("jobs", "submit", "echo", "value=hello", "--wait")

    assert (done.code, done.out) == (0, '"hello"\n')


def test_a_failed_job_fails_the_command_that_waited_for_it(place: Place) -> None:
    # What it takes is not on record, so only the worker can refuse an argument.
    done = place("jobs", "submit", "echo", "nothing=1", "--wait", "--error-format", "json")

    assert done.code == 2
    assert done.error["kind"] == "validation.input_invalid"
    assert place("jobs", "list", "--status", "failed", "--json").data[0]["attempts"] == 1


def test_a_host_takes_up_what_others_hand_in_and_stops_what_others_cancel(place: Place) -> None:
    go = place.folder / "go"
    with place.start("workers", "run", "--lanes", "2") as host:
        place.until_hosted(place.folder / "state")
        slow = place("jobs", "submit", "slow", f"path={go}", "--json").data["id"]
        place.until(Path(f"{go}.began"))
        with place.start("jobs", "tail", slow, "--json") as tail:
            cancelled = place("jobs", "cancel", slow[:18], "--json")
            told = [json.loads(line) for line in finish(tail)[0].splitlines()]
        echoed = place("jobs", "submit", "echo", "value=7", "--wait", "--json").data
        second_host = place("workers", "run", "--until-empty")
        # The file with the workers follows their start a moment later.
        wait_until(lambda: len(place("workers", "--json").data) == 2)
        seen = place("workers", "--json").data
        top = place("top", "--once")
        host.send_signal(signal.SIGTERM)
        _, words = finish(host)

    assert cancelled.data == {
        "id": slow,
        "status": "cancelled",
        "certainty": "partial",
    }
    assert (told[-1]["type"], told[-1]["data"]["certainty"]) == ("cancelled", "partial")
    assert [one["data"]["phase"] for one in told if one["type"] == "cancel_phase"] == [
        "cooperative",
        "completed",
    ]
    assert echoed["result"] == 7
    assert second_host.code == 0
    assert {(one["id"], one["host"]) for one in seen} == {("slow", host.pid), ("echo", host.pid)}
    assert "1 completed" in top.out
    assert "1 cancelled" in top.out
    assert "SIGTERM: running jobs have 5 s to end" in words


def test_a_cancelled_job_of_an_older_version_is_shown_as_it_is(place: Place) -> None:
    job = place("jobs", "submit", "echo", "value=1", "--json").data["id"]
    with closing(sqlite3.connect(place.folder / "state" / "journal.db")) as database, database:
        database.execute("UPDATE jobs SET state = 'cancelled' WHERE id = ?", (job,))

    shown = place("jobs", "show", job, "--json").data

    assert shown["status"] == "cancelled"
    assert not {"certainty", "error"} & set(shown)
    assert "certainty" not in place("jobs", "show", job).out


def test_a_waiting_job_is_cancelled_and_repeated_without_a_host(place: Place) -> None:
    job = place("jobs", "submit", "echo", "value=1", "--json").data["id"]
    cancelled = place("jobs", "cancel", job)
    again = place("jobs", "retry", job, "--wait", "--json").data

    assert cancelled.out == f"job {job} is cancelled: it never began\n"
    shown = place("jobs", "show", job, "--json").data
    assert (shown["certainty"], shown["error"]["kind"]) == ("not_sent", "cancel.job")
    assert shown["events"][-1]["data"]["certainty"] == "not_sent"
    assert "certainty    not_sent: it never began\n" in place("jobs", "show", job).out
    assert "it never began" in place("jobs", "list", "--status", "cancelled").out
    assert place("jobs", "cancel", job).code == 2
    assert (again["status"], again["result"]) == ("completed", 1)
    assert again["id"] != job


def test_a_job_that_has_not_ended_is_not_done_twice(place: Place) -> None:
    job = place("jobs", "submit", "echo", "value=1", "--delay", "1h", "--json").data["id"]

    refused = place("jobs", "retry", job)

    assert refused.code == 2
    assert f"job {job} has not ended (pending)" in refused.err
    assert f"failwell jobs wait {job}" in refused.err
    assert len(place("jobs", "list", "--json").data) == 1


def test_the_same_key_is_the_same_job(place: Place) -> None:
    first = place("jobs", "submit", "echo", "value=1", "--key", "k", "--json").data
    second = place("jobs", "submit", "echo", "value=2", "--key", "k", "--json").data

    assert first["id"] == second["id"]


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_listings_have_every_format_and_are_empty_without_a_store(tmp_path: Path, form: str) -> None:
    for command in (("jobs",), ("workers",)):
        done = failwell(*command, "--format", form, "--store", str(tmp_path / "none"))

        assert done.code == 0
        if form == "json":
            assert done.data == []
    assert failwell("top", "--format", form, "--store", str(tmp_path / "none")).code == 0
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("submit",), "missing INSTANCE"),
        (("submit", "nobody"), "no capability is called `nobody`"),
        (("submit", "echo", "x"), "is not NAME=VALUE"),
        (("show",), "missing JOB"),
        (("show", "nothing"), "no job `nothing`"),
        (("list", "--wait"), "is for `failwell jobs submit` and `failwell jobs retry`"),
        (("submit", "echo", "--timeout", "soon"), "takes a span"),
    ],
)
def test_what_is_asked_wrongly_is_told(place: Place, arguments: tuple[str, ...], words: str) -> None:
    done = place("jobs", *arguments)

    assert done.code in (1, 2)
    assert words in done.err


WORKFLOW = """
workflow:
  name: jobs
  entry_point: first
agents:
  - name: first
    type: job
    job: {job}
    arguments: {{value: "{{{{ 40 + 2 }}}}"}}
    routes:
      - to: told
        on_error: {kind}
      - to: $end
  - name: told
    type: set
    value: "{{{{ first.error.kind }}}}"
    routes:
      - to: $end
"""


def test_a_job_node_runs_on_the_queue_and_leaves_its_record(place: Place) -> None:
    file = place.folder / "w.yaml"
    file.write_text(WORKFLOW.format(job="echo", kind="worker.crashed"))

    done = place("run", str(file), "--quiet")

    assert done.code == 0, done.err
    assert done.data["result"] == "42"
    [job] = place("jobs", "list", "--json").data
    assert (job["status"], job["instance"], job["actor"]) == ("completed", "echo", "first")
    assert job["run"] == place("runs", "list", "--json").data[0]["id"]


def test_a_job_that_fails_is_routed_by_its_kind(place: Place) -> None:
    file = place.folder / "w.yaml"
    file.write_text(WORKFLOW.format(job="nobody", kind="worker.not_loaded"))

    done = place("run", str(file), "--quiet")

    assert done.code == 0, done.err


def test_a_job_node_is_done_by_the_host_if_there_is_one(place: Place) -> None:
    file = place.folder / "w.yaml"
    file.write_text(WORKFLOW.format(job="echo", kind="worker.crashed"))
    with place.start("workers", "run") as host:
        place.until_hosted(place.folder / "state")
        done = place("run", str(file), "--quiet")
        wait_until(lambda: [one["id"] for one in place("workers", "--json").data] == ["echo"])
        host.send_signal(signal.SIGTERM)
        finish(host)

    assert done.code == 0, done.err


def test_running_scripts_loads_nothing_of_the_queue(tmp_path: Path) -> None:
    code = (
        "import sys, failwell.cli.runs.run, failwell.workflows.job_nodes;"
        "print([name for name in sys.modules if name.startswith('failwell.jobs')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )

    assert done.stdout == "[]\n"


@pytest.mark.acceptance("cjm-substrate 44")
def test_a_workflow_goes_on_where_a_job_can_never_fit(place: Place) -> None:
    place("jobs", "submit", "echo", "value=1", "--wait")
    with closing(sqlite3.connect(place.folder / "state" / "journal.db")) as store:
        store.execute("UPDATE job_profiles SET ram_mb = 1e12")
        store.commit()
    file = place.folder / "w.yaml"
    file.write_text(WORKFLOW.format(job="echo", kind="resource.never_fits"))

    done = place("run", str(file), "--quiet")
    [job] = place("jobs", "list", "--status", "failed", "--json").data

    assert done.code == 0, done.err
    assert (job["error"]["kind"], job["attempts"]) == ("resource.never_fits", 0)
    short = job["error"]["resource_shortfall"]
    assert short["resource"] == "system_ram_mb"
    assert short["needed"] == 1e12


def test_submitting_says_how_long_an_attempt_may_run(place: Place) -> None:
    told = place("jobs", "submit", "echo", "value=1")
    as_json = place("jobs", "submit", "echo", "value=1", "--timeout", "90s", "--json")
    unlimited = place("jobs", "submit", "echo", "value=1", "--timeout", "none")
    stored = place("jobs", "list", "--json").data

    assert "an attempt may run for 1 h 0 m; `--timeout SPAN` sets it" in told.err
    assert (as_json.data["timeout"], as_json.err) == (90, "")
    assert "an attempt may run for any time" in unlimited.err
    assert sorted(job.get("timeout", 0) for job in stored) == [0, 90, 3_600]


@pytest.mark.parametrize(
    "options",
    [
        ("--at", "9999-12-31T23:59-10:00"),
        ("--delay", "99999999d"),
        ("--within", "99999999d"),
        ("--timeout", "99999999d"),
    ],
)
def test_a_time_that_no_calendar_has_is_refused(place: Place, options: tuple[str, str]) -> None:
    refused = place("jobs", "submit", "echo", *options)

    assert refused.code == 2
    assert "internal.bug" not in refused.err
    assert place("jobs", "list", "--json").data == []


def test_a_key_that_is_taken_says_so(place: Place) -> None:
    first = place("jobs", "submit", "echo", "value=1", "--key", "k", "--wait", "--json").data["id"]

    again = place("jobs", "submit", "echo", "value=1", "--key", "k", "--wait")

    assert f"the key belongs to job {first}, which is completed; nothing new was submitted" in again.err
    assert "is submitted" not in again.err


def test_a_callback_that_nobody_registered_is_named(place: Place) -> None:
    lines = place.folder / "lines.jsonl"
    lines.write_text('{"value": 1}\n')

    refused = place("jobs", "submit", "echo", "--from", str(lines), "--group", "g", "--callback", "ecko")

    assert refused.code == 2
    assert "echo" in refused.err
    assert place("jobs", "list", "--json").data == []


def test_a_folder_that_is_gone_is_named(place: Place) -> None:
    away = place.folder / "away"
    away.mkdir()
    (away / "gone.py").write_text(
        "from failwell.capability import capability\n@capability\ndef gone() -> int: return 1\n"
    )
    assert place("capabilities", "add", str(away / "gone.py")).code == 0
    rmtree(away)

    failed = place("jobs", "submit", "gone", "--wait")

    assert f"the folder {away} of capability 'gone' does not exist" in failed.err


def test_another_file_beside_the_capabilities_is_left_alone(place: Place) -> None:
    folder = place.folder / "state" / "capabilities"
    (folder / "x y.toml").touch()
    (folder / ".hid.toml").touch()

    assert [each["id"] for each in place("capabilities", "list", "--json").data] == ["echo", "slow"]


def test_a_manifest_without_an_end_is_refused(place: Place) -> None:
    refused = place("capabilities", "add", "/dev/zero")

    assert refused.code == 2
    assert "more than 1,048,576 bytes" in refused.err
