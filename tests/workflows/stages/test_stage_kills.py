"""A run that is killed in any phase of a stage is resumed there: nothing is lost, and what runs twice says so."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from failwell.workflows.plan import PHASES
from tests.cli.running import environment
from tests.workflows.stages.stage_place import HEAD, StagePlace, paired

CODE = """\
import os, time
from pathlib import Path

def work(phase):
    with Path("effects.txt").open("a") as file:
        file.write(f"{phase}\\n")
    if os.environ.get("STOP_AT") == phase:
        Path("stopped").write_text(phase)
        time.sleep(600)

def setup(phase): work("setup"); phase.context["topic"] = "rain"
def init(phase): work("init")
def gate(phase): work("checkGate"); return "proceed"
def judge(phase): work("assert"); return "ok"
def leave(phase): work("exit"); return {"topic": phase.context["topic"], "answer": phase.act["output"]["result"]}
def following(phase): work("next"); return "b"

def note(text: str) -> str:
    "A tool whose calls must not happen twice."
    work("act")
    return text
"""
STAGES = """\
tools: {note: {python: "killed_stages:note"}}
stages:
  - id: a
    setup: killed_stages:setup
    init: killed_stages:init
    checkGate: killed_stages:gate
    allowedTools: [note]
    assert: killed_stages:judge
    exit: killed_stages:leave
    next: {code: killed_stages:following, to: [b]}
  - {id: b}
output: {topic: "{{ a.output.topic }}", answer: "{{ a.output.answer }}"}
"""


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_a_stage_that_is_killed_in_a_phase_continues_with_it(tmp_path: Path, phase: str) -> None:
    place = StagePlace(tmp_path)
    place.write("machine.yaml", HEAD.format(entry="a") + STAGES)
    place.write("killed_stages.py", CODE)
    call = {"tool_calls": [{"name": "note", "arguments": {"text": "x"}}]}
    place.script(a=[call, {"text": "done"}], b=[{"text": "end"}])

    _kill_in(place, phase)
    resumed = place.command("resume", "last")

    assert resumed.code == 0, resumed.err
    assert resumed.data == {"topic": "rain", "answer": "done"}
    assert place.phases("a") == paired(*PHASES)
    reruns = [event["data"].get("rerun", 0) for event in place.events("node:started")]
    assert reruns == [0, 1, 0]
    effects = (tmp_path / "effects.txt").read_text().split()
    # The effect of `act` must not happen twice: the tool was begun, so the model is told that its outcome is unknown.
    repeated = [] if phase == "act" else [phase]
    assert effects == [part for part in PHASES for _ in range(1 + (part in repeated))]


def _kill_in(place: StagePlace, phase: str) -> None:
    """Run the machine in a process of its own, and kill it in `phase`."""
    command = [sys.executable, "-m", "failwell", "run", "machine.yaml", "--store", str(place.store)]
    process = subprocess.Popen(
        command,
        cwd=place.folder,
        env=environment(STOP_AT=phase),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not (place.folder / "stopped").exists():
            assert process.poll() is None, "the run ended before the phase"
            assert time.monotonic() < deadline, "the phase was not reached"
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
