"""A script that starts a host or submits a job while a worker imports it is told to put that under a main guard."""

import subprocess
import sys
from pathlib import Path

import pytest

_HEAD = """
import asyncio
from failwell.capability import capability
from failwell.jobs import Client, Runtime

@capability
def double(value: int) -> int:
    return 2 * value

async def main():
    async with Runtime("state") as jobs:
        jobs.register(double)
        print(await jobs.call("double", {"value": 2}))
"""


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("asyncio.run(main())", "module `script` starts a job host when it is imported"),
        (
            "if __name__ == '__main__':\n    asyncio.run(main())\nelse:\n    Client('state').submit('double', value=1)",
            "module `script` submits a job when it is imported",
        ),
    ],
    ids=["host", "client"],
)
def test_a_script_without_a_main_guard_is_told_where_it_belongs(tmp_path: Path, end: str, words: str) -> None:
    (tmp_path / "script.py").write_text(_HEAD + end)
    done = _run(tmp_path)

    assert words in done.stderr
    assert 'put that under `if __name__ == "__main__":`' in done.stderr


def test_a_script_with_a_main_guard_hosts_its_own_function(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"{_HEAD}if __name__ == '__main__':\n    asyncio.run(main())")

    assert _run(tmp_path).stdout == "4\n"


def _run(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
