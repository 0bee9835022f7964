"""Capabilities for the tests of the engine."""

import os
import signal
import time
from pathlib import Path

from failwell.capability import capability


@capability
def double(number: int) -> int:
    return 2 * number


@capability
def shout(text: str) -> str:
    return text.upper()


@capability
def refuse(text: str) -> str:
    raise ValueError(f"no {text}")


@capability
def wait_for(file: str, mark: str) -> str:
    """Write the number of this process into `mark`, then wait until `file` exists."""
    with Path(mark).open("a") as marks:
        marks.write(f"{os.getpid()}\n")
    while not Path(file).exists():
        time.sleep(0.02)
    return "done"


@capability
def crash_once(mark: str) -> str:
    """Kill this process the first time."""
    is_first = not Path(mark).exists()
    with Path(mark).open("a") as marks:
        marks.write(f"{os.getpid()}\n")
    if is_first:
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


@capability
def refuse_again(mark: str) -> str:
    with Path(mark).open("a") as marks:
        marks.write(f"{os.getpid()}\n")
    raise ValueError("no")


@capability
def long_text(length: int) -> str:
    return "x" * length
