"""Errors of GPU runtimes are raised for real where there is a GPU; `gpu_errors.py` is run by hand on a borrowed one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.gpu_errors import NO_GPU, has_gpu

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).with_name("gpu_errors.py")


def test_every_error_that_a_gpu_raises_has_the_kind_that_is_expected() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False, timeout=3600
    )

    if done.returncode == NO_GPU:
        assert not has_gpu()
        pytest.skip("there is no GPU here")
    assert done.returncode == 0, done.stdout
