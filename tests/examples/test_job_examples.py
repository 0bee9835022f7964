"""The examples of jobs, run as a reader runs them."""

import subprocess
import sys
from pathlib import Path

from tests.cli.running import environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/jobs"


def test_the_eviction_of_a_model_runs_where_there_is_a_card_and_says_what_it_needs_elsewhere() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "gpu_eviction.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(),
    )

    if done.returncode == 2:
        assert "needs a CUDA card" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert "completed on attempt 2" in done.stdout
