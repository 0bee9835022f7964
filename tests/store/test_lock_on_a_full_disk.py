"""A lock that nobody has room to sign is a lock all the same."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource")

TAKER = """
import resource, sys
from pathlib import Path
from failwell.store.faults import Locked
from failwell.store.locks import is_held, run_lock

resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
folder = Path(sys.argv[1])
with run_lock(folder, "jobs"):
    try:
        with run_lock(folder, "jobs"):
            print("taken twice")
    except Locked as fault:
        print(is_held(folder), fault.pid)
print(is_held(folder))
"""


def test_a_lock_holds_where_no_byte_can_be_written(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TAKER, str(tmp_path)], capture_output=True, text=True, check=False, timeout=30
    )

    assert (done.stdout, done.stderr) == ("True None\nFalse\n", "")
