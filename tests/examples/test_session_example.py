"""The agent in `examples/sessions` does what its comments say, from a script and from Python."""

from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from tests.cli.running import environment, failwell

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "sessions"


def test_the_agent_answers_a_script_and_halts_where_a_person_must_agree(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path))

    answered = failwell("chat", "clerk.yaml", "-p", "What about A-17?", *store, cwd=FOLDER)
    halted = failwell("chat", "--continue", "-p", "Yes, please.", *store, cwd=FOLDER)

    assert (answered.code, answered.out) == (0, "Order A-17 came broken. Shall I pay it back?\n")
    assert halted.code == 4


@pytest.mark.slow
def test_the_agent_is_talked_to_from_python_with_somebody_who_agrees(tmp_path: Path) -> None:
    done = run(
        [executable, "talk.py"],
        cwd=FOLDER,
        env=environment(FAILWELL_STORE=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines() == [
        "answered: Order A-17 came broken. Shall I pay it back?",
        "asked: `clerk` wants to call the tool `refund` with",
        "answered: Done.",
    ], done.stderr
