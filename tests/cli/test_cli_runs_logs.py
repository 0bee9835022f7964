"""`failwell runs logs`: what steps print, while they run and afterwards."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from failwell import workflows
from tests.cli.job_place import Place
from tests.cli.running import Done, environment, failwell

FLOW = """
workflow:
  name: flow
  input:
    regions: {type: array, default: [{id: eu}, {id: us}]}
    token: {type: string, secret: true, default: tok-5f8a11c09d}
  entry_point: build
agents:
  - name: build
    type: script
    command: sh
    args: ["-c", "echo one; echo \\"two $TOKEN\\" >&2; exit 3"]
    env_from: {TOKEN: workflow.input.token}
    routes: [{to: deploy}]
  - name: push
    type: script
    command: sh
    args: ["-c", "echo pushed {{ region.id }}"]
for_each:
  - name: deploy
    source: workflow.input.regions
    as: region
    key_by: id
    agent: push
    max_concurrent: 1
    routes: [{to: quiet}]
""".replace("  - name: push", "  - name: quiet\n    type: set\n    value: 1\n  - name: push")

SLOW = """
workflow: {name: slow, entry_point: build}
agents:
  - name: build
    type: script
    command: sh
    args: ["-c", "echo started; cat %s; printf 'no end of line'"]
"""


def logs(folder: Path, *arguments: str) -> Done:
    return failwell("runs", "logs", *arguments, "--store", str(folder / "store"))


def a_run(folder: Path, text: str = FLOW) -> Done:
    (folder / "flow.yaml").write_text(text)
    return failwell("run", str(folder / "flow.yaml"), "--store", str(folder / "store"))


PYTHON = """
workflow: {name: slow, entry_point: build}
agents:
  - name: build
    type: script
    command: python
    args: ["-c", "print('started'); print(open('%s').read(), end=''); print('no end of line', end='')"]
""".replace("python\n", f"{sys.executable}\n")


@contextmanager
def a_running_one(folder: Path, text: str = SLOW) -> "Generator[tuple[subprocess.Popen[str], Path]]":
    """A run whose step prints one line and then waits for the pipe to be written to."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    (folder / "slow.yaml").write_text(text % pipe)
    command = [sys.executable, "-m", "failwell", "run", "slow.yaml", "--store", "store"]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert any("build: started" in line for line in iter(process.stderr.readline, ""))
        yield process, pipe
    finally:
        process.kill()
        process.communicate()


def follower(folder: Path) -> "subprocess.Popen[str]":
    command = [
        sys.executable,
        "-m",
        "failwell",
        "runs",
        "logs",
        "last",
        "-f",
        "--store",
        str(folder / "store"),
    ]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)


def test_the_output_of_every_step_is_shown_with_its_stream_and_its_key_and_without_secrets(
    tmp_path: Path,
) -> None:
    a_run(tmp_path)

    shown = logs(tmp_path, "last")

    assert sorted(shown.out.splitlines()[:2]) == ["build ! two [redacted]", "build | one"]
    assert shown.out.splitlines()[2:] == ["deploy[0] (eu) | pushed eu", "deploy[1] (us) | pushed us"]
    file = next((tmp_path / "store").glob("runs/*/output.jsonl"))
    assert file.stat().st_mode & 0o777 == 0o600
    assert "5f8a11c09d" not in file.read_text()


def test_one_step_one_item_and_the_last_lines_can_be_chosen(tmp_path: Path) -> None:
    a_run(tmp_path)

    by_group, by_item = logs(tmp_path, "last", "deploy"), logs(tmp_path, "last", "deploy[1]")
    last = logs(tmp_path, "last", "--lines", "1", "--json")
    markdown = logs(tmp_path, "last", "push", "--format", "markdown")

    assert by_group.out.splitlines() == ["deploy[0] (eu) | pushed eu", "deploy[1] (us) | pushed us"]
    assert by_item.out == "deploy[1] (us) | pushed us\n"
    entry = json.loads(last.out)
    assert (entry["path"], entry["node"], entry["item"], entry["stream"]) == (
        "deploy[1]",
        "push",
        "us",
        "stdout",
    )
    assert entry["text"] == "pushed us"
    assert "- `deploy[0] (eu)` stdout: `pushed eu`" in markdown.out


def test_a_step_that_printed_nothing_and_one_that_does_not_exist_are_told_apart(tmp_path: Path) -> None:
    a_run(tmp_path)

    quiet, unknown = logs(tmp_path, "last", "quiet"), logs(tmp_path, "last", "biuld")

    assert (quiet.code, quiet.out) == (0, "")
    assert "`quiet` printed nothing; it is a set step" in quiet.err
    assert unknown.code == 2
    assert "has no step `biuld`" in unknown.err
    assert "did you mean `build`?" in unknown.err


@pytest.mark.parametrize("text", [SLOW, PYTHON], ids=["sh", "python"])
def test_a_follower_gets_a_line_while_the_step_still_runs_and_ends_with_the_run(
    text: str, tmp_path: Path
) -> None:
    with a_running_one(tmp_path, text) as (run, pipe):
        watching = follower(tmp_path)
        assert watching.stdout is not None
        first = watching.stdout.readline()

        pipe.write_text("more\n")
        rest, _ = watching.communicate(timeout=30)
        run.communicate(timeout=30)

    assert first == "build | started\n"
    assert rest == "build | more\nbuild | no end of line\n"
    assert watching.returncode == 0


def test_what_a_killed_run_had_printed_is_there_and_a_follower_ends(tmp_path: Path) -> None:
    with a_running_one(tmp_path) as (run, _pipe):
        watching = follower(tmp_path)
        assert watching.stdout is not None
        watching.stdout.readline()
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=30)
        watching.communicate(timeout=30)

        shown = logs(tmp_path, "last", "build")

    assert watching.returncode == 0
    assert shown.out == "build | started\n"
    assert (
        failwell("runs", "list", "--json", "--store", str(tmp_path / "store")).data[0]["status"]
        == "interrupted"
    )


def test_a_stream_beyond_its_limit_is_shown_whole_from_its_own_file(tmp_path: Path) -> None:
    program = "print('\\\\n'.join(f'line {n}' for n in range(2000)))"
    text = f"""
workflow: {{name: flow, entry_point: much}}
agents:
  - name: much
    type: script
    command: {sys.executable}
    args: ["-c", "{program}"]
    output_limit: 1000
"""
    a_run(tmp_path, text)

    shown = logs(tmp_path, "last").out.splitlines()

    assert shown == [f"much | line {number}" for number in range(2000)]


def test_a_run_of_an_earlier_version_shows_what_its_events_hold(tmp_path: Path) -> None:
    a_run(tmp_path)
    next((tmp_path / "store").glob("runs/*/output.jsonl")).unlink()

    shown = logs(tmp_path, "last")

    assert shown.out.splitlines()[:2] == ["build | one", "build ! two [redacted]"]
    assert "deploy[1] (us) | pushed us" in shown.out


def test_control_characters_reach_the_terminal_as_text(tmp_path: Path) -> None:
    text = (SLOW % "/dev/null").replace("no end of line", "\\\\033[2Jx")
    a_run(tmp_path, text)

    assert logs(tmp_path, "last").out.splitlines()[-1] == "build | \\x1b[2Jx"


def test_the_updates_of_a_progress_bar_are_lines_of_their_own(tmp_path: Path) -> None:
    text = (SLOW % "/dev/null").replace("no end of line", "10%%\\\\r20%%\\\\r\\\\nend\\\\r")

    a_run(tmp_path, text)

    assert logs(tmp_path, "last").out.splitlines()[1:] == ["build | 10%", "build | 20%", "build | end"]


def test_python_reads_the_same_entries(tmp_path: Path) -> None:
    a_run(tmp_path)
    store = tmp_path / "store"
    run = workflows.list_runs(store=store)[0].id

    entries = list(workflows.read_logs(run, "deploy", store=store))
    followed = list(workflows.read_logs(run, "deploy", store=store, follow=True))

    assert [(entry.item, entry.text) for entry in entries] == [("eu", "pushed eu\n"), ("us", "pushed us\n")]
    assert followed == entries


def test_the_lines_of_a_job_step_are_shown_between_those_of_scripts(tmp_path: Path) -> None:
    place = Place(tmp_path, "fails", "echo")
    place.path("flow.yaml").write_text("""
workflow: {name: flow, entry_point: first}
agents:
  - {name: first, type: script, command: echo, args: [before], routes: [{to: work}]}
  - {name: work, type: job, job: fails, routes: [{to: $end}, {on_error: true, to: last}]}
  - {name: last, type: script, command: echo, args: [after]}
""")
    place("run", str(place.path("flow.yaml")))

    shown, only = place("runs", "logs", "last"), place("runs", "logs", "last", "work", "--follow")

    assert shown.out.splitlines() == ["first | before", "work ! about to fail", "last | after"]
    assert only.out == "work ! about to fail\n"
