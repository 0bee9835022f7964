"""Every test of workers leaves the process as it found it: no child, no thread, no descriptor more."""

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.children import children, remember_children


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    # What the session has loaded by now stays; a full collection would visit all of it after each test.
    gc.freeze()
    remember_children()
    threads, files = set(threading.enumerate()), _descriptors()

    yield

    gc.collect()
    assert children() == []
    assert {thread for thread in threading.enumerate() if thread.is_alive()} <= threads
    assert _descriptors() <= files


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has nothing installed, failwell least of all."""
    place = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    return str(place / "bin" / "python")


@pytest.fixture
def run_folder(tmp_path: Path) -> str:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return str(folder)
