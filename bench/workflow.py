"""What a workflow costs: a node, an item of a loop, a script, a whole process, a resume; journal on.

The cost of a node, an item and an event must not grow with their number: the program fails if one of ten thousand costs
more than 1.5 times one of a hundred. Loop time a node is the time that a run is driven, so that starting the interpreter and reading the file
do not count. Floors stand beside the figures: one SQLite commit, one bare process start. The figure is
the best of several rounds, because a shared machine only ever adds time.
"""

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from failwell.store.sqlite.run_store import SqliteStore
from failwell.workflows.check.workflow_tree import check_file
from failwell.workflows.machine.messages import Event
from failwell.workflows.running.launch import start
from failwell.workflows.running.restoring import restore
from failwell.workflows.running.script_executor import ScriptExecutor
from failwell.workflows.running.settings import DriveResult, RunDriver, Settings

SRC = Path(__file__).resolve().parents[1] / "src"


GROWTH = 1.5
"""A unit of the largest size may cost so many times what one of the smallest size but one costs."""


def numbers(count: int) -> str:
    """Sequential `set` nodes without an expression."""
    lines = ["workflow:", "  name: numbers", "  entry_point: n0", "agents:"]
    for index in range(count):
        lines += [f"  - name: n{index}", "    type: set", f"    value: {index}"]
        if index < count - 1:
            lines.append(f"    routes: [{{to: n{index + 1}}}]")
    return "\n".join(lines)


def sets(count: int) -> str:
    """Sequential `set` nodes, each of which uses the one before it."""
    lines = ["workflow:", "  name: sets", "  entry_point: n0", "agents:"]
    for index in range(count):
        value = f'"{{{{ n{index - 1}.output + 1 }}}}"' if index else "0"
        lines += [f"  - name: n{index}", "    type: set", f"    value: {value}"]
        if index < count - 1:
            lines.append(f"    routes: [{{to: n{index + 1}}}]")
    lines += ["output:", f'  x: "{{{{ n{count - 1}.output }}}}"']
    return "\n".join(lines)


def rounds_of(count: int) -> str:
    """One `set` node that leads back to itself so many times; a file of that many nodes would be too large."""
    return f"""
workflow: {{name: rounds, entry_point: n, limits: {{max_iterations: {count}}}}}
agents:
  - name: n
    type: set
    value: "{{{{ (n.output if n is defined else 0) + 1 }}}}"
    routes: [{{to: n, when: "{{{{ output < {count} }}}}"}}, {{to: $end}}]
output: {{x: "{{{{ n.output }}}}"}}
"""


def loop(count: int, wide: int) -> str:
    """A `for_each` whose body is a `set`."""
    items = ", ".join(str(index) for index in range(count))
    return f"""
workflow: {{name: loop, entry_point: items}}
agents:
  - {{name: items, type: set, values: {{list: [{items}]}}, routes: [{{to: fan}}]}}
for_each:
  - name: fan
    type: for_each
    source: items.output.list
    as: item
    max_concurrent: {wide}
    agent: {{name: each, type: set, value: "{{{{ item * 2 }}}}"}}
output: {{n: "{{{{ fan.count }}}}"}}
"""


def scripts(count: int) -> str:
    """Sequential scripts that do nothing."""
    lines = ["workflow:", "  name: scripts", "  entry_point: n0", "agents:"]
    for index in range(count):
        lines += [f"  - name: n{index}", "    type: script", "    command: /bin/true"]
        if index < count - 1:
            lines.append(f"    routes: [{{to: n{index + 1}}}]")
    return "\n".join(lines)


class _Clock:
    """How long a run was driven."""

    took = 0.0

    def started(self, driver: RunDriver, _run: str) -> None:
        """Measure the driver from here on."""
        drive = driver.drive

        async def timed_drive(event: Event) -> DriveResult:
            began = time.perf_counter()
            result = await drive(event)
            self.took = time.perf_counter() - began
            return result

        driver.drive = timed_drive


def run(folder: Path, text: str, rounds: int = 3) -> tuple[float, DriveResult]:
    """The best loop time of a workflow, and how it ended."""
    file = folder / "flow.yaml"
    file.write_text(text)
    best, ended = 1e9, None
    for number in range(rounds):
        store = SqliteStore(folder / f"store{number}-{time.monotonic_ns()}")
        clock = _Clock()
        settings = Settings(
            store=store,
            folder=Path(store.folder),
            executors={"script": ScriptExecutor()},
            environ=os.environ,
            started=clock.started,
        )
        ended = asyncio.run(start(str(file), {}, settings))
        best = min(best, clock.took)
        assert ended.status == "completed", ended.failure
        store.close()
    assert ended is not None
    return best, ended


def commit_floor(folder: Path) -> float:
    """One row and one commit, as plainly as it can be done."""
    plain = sqlite3.connect(folder / "floor.db", isolation_level=None)
    plain.execute("pragma journal_mode=wal")
    plain.execute("pragma synchronous=normal")
    plain.execute("create table t (a integer primary key, b text)")
    best = 1e9
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(500):
            plain.execute("begin")
            plain.execute("insert into t (b) values ('x')")
            plain.execute("commit")
        best = min(best, (time.perf_counter() - began) / 500)
    plain.close()
    return best


async def _starts(count: int) -> None:
    for _ in range(count):
        process = await asyncio.create_subprocess_exec(
            "/bin/true",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        await process.communicate()


def process_floor(count: int = 100) -> float:
    """One process started and read to its end by bare asyncio."""
    best = 1e9
    for _ in range(3):
        began = time.perf_counter()
        asyncio.run(_starts(count))
        best = min(best, (time.perf_counter() - began) / count)
    return best


def whole_process(folder: Path) -> tuple[float, float]:
    """`failwell run` of a file with one script: seconds, and megabytes at its largest."""
    file = folder / "one.yaml"
    file.write_text(scripts(1))
    command = [sys.executable, "-m", "failwell", "run", "--quiet", str(file), "--store", str(folder / "one")]
    env = {**os.environ, "PYTHONPATH": str(SRC), "PYTHONPYCACHEPREFIX": str(folder / "cache")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    # A child's largest size counts that of the process it was forked from, so a small one starts it.
    small = (
        "import os, sys, time\n"
        "began = time.perf_counter()\n"
        "pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)\n"
        "_, status, used = os.wait4(pid, 0)\n"
        "print(status, time.perf_counter() - began, used.ru_maxrss / 1024, file=sys.stderr)\n"
    )
    best, peak = 1e9, 0.0
    for _ in range(6):
        told = subprocess.run(
            [sys.executable, "-S", "-c", small, *command], env=env, capture_output=True, text=True, check=True
        )
        status, seconds, size = told.stderr.split()[-3:]
        assert status == "0", told.stderr
        best, peak = min(best, float(seconds)), float(size)
    return best, peak


def resume_time(folder: Path, nodes: int) -> tuple[float, int]:
    """How long it takes to fold a run of so many nodes, each with three events, from its journal."""
    file = folder / "long.yaml"
    file.write_text(sets(nodes))
    store = SqliteStore(folder / f"long{nodes}")
    settings = Settings(
        store=store, folder=Path(store.folder), executors={"script": ScriptExecutor()}, environ=os.environ
    )
    ended = asyncio.run(start(str(file), {}, settings))
    run_id = ended.state.run
    best, events = 1e9, 0
    for _ in range(3):
        began = time.perf_counter()
        events = restore(store, run_id).seq
        best = min(best, time.perf_counter() - began)
    store.close()
    return best, events


def show(what: str, figure: str, aim: str = "", floor: str = "") -> None:
    print(f"{what:<46} {figure:>16}   {aim:<22} {floor}")


def timed(work: Callable[[], object]) -> float:
    best = 1e9
    for _ in range(3):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def grows(what: str, cost: Callable[[int], float]) -> bool:
    """Show the cost of one unit by their number, in ms, and whether that of the largest is beyond the limit."""
    sizes = (10, 100, 1_000, 10_000)
    each = [cost(size) for size in sizes]
    ratio = each[-1] / each[1]
    costs = ", ".join(f"{size}: {seconds * 1000:.3f}" for size, seconds in zip(sizes, each, strict=True))
    show(f"growth of {what}", f"{ratio:.2f} times", f"at most {GROWTH}", costs)
    return ratio > GROWTH


def growing(folder: Path) -> list[str]:
    """What costs more the more there is of it."""

    def run_of(text: Callable[[int], str]) -> Callable[[int], float]:
        return lambda count: run(folder, text(count))[0] / count

    def new_expressions(count: int) -> float:
        # Compiled expressions are kept, and each of a long run is new.
        return run(folder, sets(count).replace("output + 1", f"output + {count}"), rounds=1)[0] / count

    def event(count: int) -> float:
        took, events = resume_time(folder, count // 3 + 1)
        return took / events

    costs: dict[str, Callable[[int], float]] = {
        "sequential nodes": run_of(numbers),
        "nodes with an expression": new_expressions,
        "items of a for_each": run_of(lambda count: loop(count, 100)),
        "events at a resume": event,
    }
    return [what for what, cost in costs.items() if grows(what, cost)]


def main() -> None:
    quick = "--quick" in sys.argv
    grown: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commit = commit_floor(folder)
        show("one SQLite commit", f"{commit * 1000:.3f} ms", "", "the floor")
        for count in (100, 1_000, 10_000, 100_000):
            if quick and count > 1_000:
                continue
            took, _ = run(folder, rounds_of(count), rounds=3 if count < 100_000 else 1)
            show(f"{count} rounds of one set node", f"{took / count * 1000:.3f} ms", "aim: linear")
        for count in (100, 1_000, 10_000):
            if quick and count > 1_000:
                continue
            took, _ = run(folder, sets(count))
            show(
                f"{count} set nodes, one after the other",
                f"{took / count * 1000:.3f} ms",
                "aim 0.12 ms a node",
            )
        for count, wide in ((100, 100), (1_000, 1_000), (10_000, 100)):
            if quick and count > 1_000:
                continue
            took, _ = run(folder, loop(count, wide))
            show(f"for_each of {count}, {wide} wide", f"{took / count * 1000:.3f} ms", "aim 0.15 ms an item")
        floor = process_floor()
        took, _ = run(folder, scripts(200))
        each = took / 200
        show(
            "a script node",
            f"{each * 1000:.2f} ms",
            "aim +15 %",
            f"bare asyncio {floor * 1000:.2f} ms: {each / floor - 1:+.0%}",
        )
        wall, peak = whole_process(folder)
        show("failwell run, one script, whole process", f"{wall * 1000:.0f} ms", "aim 250 ms")
        show("  at its largest", f"{peak:.0f} MB", "aim 60 MB")
        took, events = resume_time(folder, 3_334)
        show(f"resuming a run of {events} events", f"{took * 1000:.0f} ms", "aim 500 ms")
        if not quick:
            grown = growing(folder)
            file = folder / "wide.yaml"
            file.write_text(sets(10_000))
            took = timed(lambda: check_file(str(file), environ={}))
            show("validating 10,000 nodes", f"{took:.2f} s", "aim 2 s")
        show(
            "this process at its largest",
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB",
        )
    if grown:
        sys.exit(f"the cost of one grows with their number: {', '.join(grown)}")


if __name__ == "__main__":
    main()
