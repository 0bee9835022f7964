"""State machines that are written in Python, through the command and the Python interface."""

from pathlib import Path

import pytest

from failwell import workflows
from tests.cli.running import failwell
from tests.workflows.stages.stage_place import StagePlace, error_of

MACHINE = """\
from failwell.workflows import Stage, StagePhase, StateMachine, Verdict


def prepare(phase: StagePhase) -> None:
    phase.context["topic"] = "rain"


def judge(phase: StagePhase) -> Verdict:
    if phase.attempt == 1:
        return Verdict(verdict="retry", feedback="name the topic")
    return Verdict(verdict="ok")


def leave(phase: StagePhase) -> dict[str, object]:
    return {"topic": phase.context["topic"], "said": phase.feedback}


def choose(phase: StagePhase) -> str:
    return "review"


machine = StateMachine(
    name="weather",
    stages=[
        Stage(
            id="draft",
            setup=prepare,
            prompt="Write about {{ ctx.topic }}.",
            assertion=judge,
            exit=leave,
            next=choose,
            successors=["review", "$end"],
            retry_policy={"maxAttempts": 2},
        ),
        Stage(id="review", prompt="Review {{ draft.output.topic }}."),
    ],
    runtime={"default_model": "scripted:replies.yaml"},
    output={"said": "{{ draft.output.said }}", "review": "{{ review.output.result }}"},
)
"""

LOCAL = """\
from failwell.workflows import Stage, StateMachine

machine = StateMachine(name="m", stages=[Stage(id="a", setup=lambda phase: None)])
"""


@pytest.fixture
def place(tmp_path: Path) -> StagePlace:
    place = StagePlace(tmp_path)
    place.script(draft=[{"text": "wet"}], review=[{"text": "fine"}])
    return place


def test_a_machine_in_python_runs_by_the_command_and_from_python(place: StagePlace) -> None:
    place.write("weather_machine.py", MACHINE)

    done = place.command("run", "weather_machine.py")
    result = workflows.run(place.folder / "weather_machine.py", store=place.store)

    assert done.data == {"said": "name the topic", "review": "fine"}
    assert result.output == done.data
    assert [event["data"]["attempt"] for event in place.events("node:started")] == [1, 2, 1]


def test_mistakes_of_a_machine_in_python_name_the_line_of_the_stage(place: StagePlace) -> None:
    place.write("wrong_machine.py", MACHINE.replace('["review", "$end"]', '["revue"]'))

    done = failwell("validate", "wrong_machine.py", cwd=place.folder)

    assert done.code == 2
    assert "wrong_machine.py:25:1" in done.err + done.out
    assert "did you mean `review`?" in done.err + done.out


def test_a_python_file_that_is_no_machine_says_what_it_lacks(place: StagePlace) -> None:
    files = {
        "no_machine.py": ("x = 1\n", "it must have one `StateMachine`, and has 0"),
        "broken_machine.py": ("import nothing_of_that_name\n", "cannot import broken_machine.py"),
        "json.py": ("x = 1\n", "another module is called `json`; rename the file"),
        "local_machine.py": (LOCAL, "a phase must be a function that its module names"),
    }

    for name, (text, message) in files.items():
        place.write(name, text)

        done = place.command("run", name)

        assert done.code == 2, name
        assert message in error_of(done)["message"], name
