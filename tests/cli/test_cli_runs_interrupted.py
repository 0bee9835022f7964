"""A run whose process was killed, as the shipped commands show it: `interrupted`, with the way to resume it."""

import json
import re
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from failwell.cli.main import main
from failwell.store.sqlite.run_store import SqliteStore
from tests.cli.running import environment
from tests.store.building import a_fact, a_run

WORKFLOW = """
workflow: {name: nightly, entry_point: fetch}
agents:
  - {name: fetch, type: set, values: {a: 1}, routes: [{to: build}]}
  - {name: build, type: script, command: sh, args: ["-c", "%s"], routes: [{to: $end}]}
"""
STATE = "state of runs"
"""With spaces: a command that is shown must work when it is pasted."""
SCRIPT = "echo x >> '{log}'; test -e '{go}' || exec sleep 60"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with a run that `failwell run` was killed in the middle of."""
    folder = tmp_path_factory.mktemp("killed")
    log, state = folder / "log", folder / STATE
    script = SCRIPT.format(log=log, go=folder / "go")
    (folder / "flow.yaml").write_text(WORKFLOW % script)
    command = [sys.executable, "-m", "failwell", "run", str(folder / "flow.yaml"), "--store", str(state)]
    env = environment(FAILWELL_RUN_ID="r1")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env) as running:
        assert running.stdout is not None
        while not log.exists():
            assert running.poll() is None, running.stdout.read()
        running.kill()
    return folder


def ask(capsys: pytest.CaptureFixture[str], state: Path, *arguments: str) -> str:
    assert main([*arguments, "--store", str(state)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "markdown"])
@pytest.mark.parametrize("action", [["list"], ["show", "r1"]])
def test_a_killed_run_is_interrupted_and_says_how_to_resume(
    killed: Path, capsys: pytest.CaptureFixture[str], action: list[str], form: str
) -> None:
    printed = ask(capsys, killed / STATE, "runs", *action, "--format", form)

    assert "interrupted" in printed
    assert re.search(r"resume:?\s+failwell resume r1", printed)


@pytest.mark.parametrize("action", [["list"], ["show", "r1"]])
def test_a_program_reads_the_same(
    killed: Path, capsys: pytest.CaptureFixture[str], action: list[str]
) -> None:
    read: Any = json.loads(ask(capsys, killed / STATE, "runs", *action, "--json"))

    run = read[0] if action == ["list"] else read
    assert (run["id"], run["status"], run["resume"]) == (
        "r1",
        "interrupted",
        f"failwell resume r1 --store {shlex.quote(str(killed / STATE))}",
    )


def test_looking_at_runs_writes_nothing(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(SqliteStore(killed / STATE)) as store:
        before = list(store.read("r1"))
        ask(capsys, killed / STATE, "runs", "list", "--status", "interrupted")
        ask(capsys, killed / STATE, "runs", "show", "r1")

        assert list(store.read("r1")) == before


def test_the_command_that_is_shown_finishes_the_run(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = killed / STATE
    (killed / "go").touch()
    command = shlex.split(json.loads(ask(capsys, state, "runs", "show", "r1", "--json"))["resume"])

    assert main(command[1:]) == 0

    capsys.readouterr()
    shown = json.loads(ask(capsys, state, "runs", "show", "r1", "--json"))
    assert (shown["status"], shown["resumed"], "resume" in shown) == ("completed", 1, False)
    assert (killed / "log").read_text() == "x\nx\n"


def test_a_run_that_died_before_it_began_is_run_again_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(SqliteStore(tmp_path)) as store:
        store.create("r1", at=1.0, file="flow.yaml")

    listed = ask(capsys, tmp_path, "runs", "list")
    shown = json.loads(ask(capsys, tmp_path, "runs", "show", "r1", "--json"))
    code = main(["resume", "r1", "--store", str(tmp_path)])

    assert "died before it began" in listed
    assert [step["command"] for step in shown["next"]] == [f"failwell run flow.yaml --store {tmp_path}"]
    assert code == 2
    with closing(SqliteStore(tmp_path)) as store:
        assert store.run("r1").status == "failed"


def test_cancel_closes_a_run_whose_process_died(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(SqliteStore(tmp_path)) as store:
        a_run(store, "r1", a_fact())

    printed = ask(capsys, tmp_path, "stop", "r1")

    assert printed.splitlines() == [
        "no process was running r1; it is recorded as failed and can be resumed",
        f"next: failwell resume r1 --store {tmp_path}",
    ]
    with closing(SqliteStore(tmp_path)) as store:
        assert [event.type for event in store.read("r1")][-1] == "run:failed"


def test_secret_inputs_are_part_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = {"token": {"secret": True, "ref": "workflow.input.token"}, "day": "today"}
    with closing(SqliteStore(tmp_path)) as store:
        store.create("r1", at=1.0, facts=[("run:started", 1.0, {"inputs": inputs})])

    shown = json.loads(ask(capsys, tmp_path, "runs", "show", "r1", "--json"))

    assert shown["resume"] == f"failwell resume r1 -i token=VALUE --store {tmp_path}"
    assert [step["command"] for step in shown["next"]] == [shown["resume"]]
