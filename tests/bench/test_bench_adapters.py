"""The bench of SDK exceptions runs, and says for every shape what it cost and whether the aim was met."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.adapters import rows_of

ROOT = Path(__file__).resolve().parents[2]


def test_every_shape_stands_beside_litellm_and_the_aim() -> None:
    took = {"classify": [20.0, 21.0], "read": [30.0], "describe": [60.0, 61.0], "litellm": [400.0, 410.0]}

    classified, whole, described, other = rows_of({"openai, 429": took})

    assert (classified.section, classified.name, classified.verdict) == ("classify", "openai, 429", "met")
    assert classified.against == (("litellm", 0.05),)
    assert (whole.section, whole.least) == ("read", 30.0)
    assert (described.section, described.verdict) == ("describe", "missed")
    assert (other.section, other.least) == ("litellm", 400.0)


@pytest.mark.slow
def test_it_measures_every_shape_of_the_sdks_that_are_installed() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench/adapters.py"), "--quick", sys.executable],
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().startswith("SDK exceptions without a traceback:")
    for shape in ("connection error", "read time-out", "401", "429, headers and body", "500, a page"):
        assert (f"openai, {shape}" in done.stdout) == (find_spec("openai") is not None)
