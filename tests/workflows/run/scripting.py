"""Runs scripts for real, and watches whether processes live."""

import asyncio
import os
import select
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from failwell.calls.policy import Match
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Request
from failwell.workflows.plan import END, DeclaredKind, Node, Plan, Route, ScriptSpec, Template
from failwell.workflows.running.executor import Success, Tools
from failwell.workflows.running.script_executor import ScriptExecutor

SRC = Path(__file__).resolve().parents[3] / "src"
CATCH_ALL = (Route(on_error=Match(), to=END),)
_T = TypeVar("_T")


def a_request(
    *command: str,
    opted_in: bool = False,
    output: Mapping[str, Any] | None = None,
    attempt: int = 1,
    **call: Any,
) -> Request:
    node = Node(
        name="build",
        type="script",
        spec=ScriptSpec(command=Template(text=command[0])),
        routes=CATCH_ALL if opted_in else (),
        output=output,
    )
    return Request(
        path="build",
        node=node,
        run="run-1",
        workflow="demo",
        visit=1,
        attempt=attempt,
        key=f"run-1/build/1.{attempt}",
        call={"command": command[0], "args": list(command[1:]), **call},
    )


def sh(text: str, **more: Any) -> Request:
    return a_request("sh", "-c", text, **more)


def python(text: str, **more: Any) -> Request:
    return a_request(sys.executable, "-c", text, **more)


def some_tools(folder: Path, *, grace: float = 0.3, **more: Any) -> Tools:
    kinds: dict[str, DeclaredKind] = more.pop("kinds", {})
    lent: dict[str, Any] = {
        "plan": Plan(name="demo", entry="build", nodes={}, kinds=kinds),
        "run_folder": folder,
        "secret": lambda reference: f"value of {reference}",  # pyright: ignore[reportUnknownLambdaType]
        "note": lambda kind, told: None,  # pyright: ignore[reportUnknownLambdaType]
        "grace": grace,
    }
    return Tools(**{**lent, **more})


async def with_executor(work: Callable[[ScriptExecutor], Awaitable[_T]]) -> _T:
    """Do `work` and close the run after it."""
    executor = ScriptExecutor()
    try:
        return await work(executor)
    finally:
        assert await executor.close("run-1", grace=0.3) == set()


def run(folder: Path, request: Request, **lent: Any) -> Success | Failure:
    """Run one script to its end."""
    return asyncio.run(with_executor(lambda executor: executor.run(request, some_tools(folder, **lent))))


def worked(folder: Path, request: Request, **lent: Any) -> Success:
    done = run(folder, request, **lent)
    assert isinstance(done, Success), done
    return done


def broke(folder: Path, request: Request, **lent: Any) -> Failure:
    done = run(folder, request, **lent)
    assert isinstance(done, Failure), done
    return done


def envelope(done: Failure) -> dict[str, Any]:
    return done.template_error


class Roll:
    """A pipe in the file system under which processes say their numbers."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "roll"
        os.mkfifo(self.path)
        self._end = os.open(self.path, os.O_RDWR)

    def call(self, count: int) -> list[int]:
        """The handles of the next processes that say their number, once all of them have."""
        text = b""
        while text.count(b"\n") < count:
            assert select.select([self._end], [], [], 20)[0], f"only {text!r} was said"
            text += os.read(self._end, 4096)
        return [os.pidfd_open(int(line)) for line in text.split()]


MOMENT = 0.5
"""A process that was killed has lost its memory, and with it its mark, a moment before it has ended."""


def all_end(handles: list[int], within: float) -> bool:
    """Whether every process ends in time."""
    return all(select.select([handle], [], [], within)[0] for handle in handles)


def all_live(handles: list[int]) -> bool:
    return not any(select.select([handle], [], [], 0)[0] for handle in handles)


def runaways(roll: Path) -> tuple[str, int]:
    """A shell text that starts processes which do not want to end, and how many there are."""
    say = f"echo $$ >{roll}; exec sleep 1000"
    starts = [
        f"sh -c '{say}' &",
        f"""sh -c 'trap "" TERM; {say}' &""",
        f"""setsid sh -c 'trap "" TERM INT HUP; {say}' &""",
        f"""(setsid sh -c 'trap "" TERM; {say}' & ) &""",
        f"""(setsid sh -c '(trap "" TERM; sh -c "{say.replace("$$", chr(92) + "$$")}") & ' ) &""",
        f"env -i /bin/sh -c 'trap \"\" TERM; {say}' &",
        f"env -i setsid /bin/sh -c 'trap \"\" TERM; {say}' &",
    ]
    return f"trap '' TERM; {' '.join(starts)}", len(starts)
