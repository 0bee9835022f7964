"""The example of workflows from Python, run as a reader runs it."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/workflow_from_python.py"


def test_a_failed_run_is_resumed_after_its_cause_is_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")

    assert capsys.readouterr().out.splitlines() == [
        "publish: build, upload",
        "first: failed, external.no_token: there is no token",
        "then:  completed, {'published': 'yes'}",
        "the build ran 1 time; 2 runs are recorded",
    ]
