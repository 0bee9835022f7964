"""Kills the host of a run with `kill -9` at random moments, resumes it, and looks at what is on record.

The workflow has twelve nodes, two groups and a child. Each script writes its idempotency key down when
it begins and when it is done, so the record can be compared with what really happened.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

_STEP = """
  - name: {name}
    type: script
    command: sh
    args: ["-c", "echo begin $FAILWELL_IDEMPOTENCY_KEY >> '{log}'; sleep {pause}; echo done $FAILWELL_IDEMPOTENCY_KEY >> '{log}'; echo '{{\\"v\\": \\"{name}\\"}}'"]
"""
_ROUTE = "    routes: [{{to: {to}}}]\n"


def write_workflow(folder: Path, pause: float = 0.015) -> Path:
    """The workflow and its child, in `folder`."""
    log = folder / "log"
    child = "workflow: {name: child, entry_point: fetch}\nagents:"
    child += _STEP.format(name="fetch", log=log, pause=pause) + _ROUTE.format(to="parse")
    child += _STEP.format(name="parse", log=log, pause=pause)
    child += 'output:\n  v: "{{ parse.output.v }}"\n'
    (folder / "child.yaml").write_text(child)

    def step(name: str, to: str | None = None) -> str:
        return _STEP.format(name=name, log=log, pause=pause) + ("" if to is None else _ROUTE.format(to=to))

    flaky = f"""
  - name: flaky
    type: script
    command: sh
    args: ["-c", "echo begin $FAILWELL_IDEMPOTENCY_KEY >> '{log}'; if [ $FAILWELL_RETRY_ATTEMPT = 0 ]; then exit 3; fi; echo done $FAILWELL_IDEMPOTENCY_KEY >> '{log}'; echo '{{\\"v\\": \\"flaky\\"}}'"]
    routes:
      - on_error: internal.script_error
        retry: {{max: 2, initial_seconds: 0.02, jitter: 0}}
      - to: last
"""
    root = """workflow:
  name: twelve
  entry_point: start
agents:"""
    root += step("start", "items")
    root += "  - name: items\n    type: set\n    values: {list: [a, b, c, d]}\n    routes: [{to: fan}]\n"
    root += step("left") + step("right") + flaky + step("last")
    root += """parallel:
  - name: pair
    agents: [left, right]
    routes: [{to: flaky}]
for_each:
  - name: fan
    type: for_each
    source: items.output.list
    as: item
    max_concurrent: 2
    agent: {name: each, type: workflow, workflow: child.yaml, input_mapping: {}}
    routes: [{to: pair}]
output:
  last: "{{ last.output.v }}"
  fan: "{{ fan.outputs | json }}"
  flaky: "{{ flaky.output.v }}"
"""
    file = folder / "twelve.yaml"
    file.write_text(root)
    return file


def host(*arguments: str, store: Path) -> subprocess.Popen[bytes]:
    """The shipped program, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "failwell", *arguments, "--store", str(store), "--quiet"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def round_of(seed: int, folder: Path) -> dict[str, Any]:
    """One run, killed once or more, then resumed to its end. Raises if anything is not as it must be."""
    rng = random.Random(seed)
    file = write_workflow(folder)
    store = folder / "store"
    kills = 0
    process = host("run", str(file), "--run-id", "r1", store=store)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if _has_ended_before(process, folder / "log", rng):
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        process = _again(file, store)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    events = _events(store)
    check(events, json.loads(out), (folder / "log").read_text().splitlines())
    survivors = _alive(str(folder))
    assert not survivors, survivors
    return {"kills": kills, "reruns": sum(1 for event in events if event["data"].get("rerun"))}


def _has_ended_before(process: subprocess.Popen[bytes], log: Path, rng: random.Random) -> bool:
    """Wait until the run has come some way, and a moment longer; whether it was over before that."""
    lines = rng.randrange(30)
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        if not lines or (log.exists() and log.read_bytes().count(b"\n") >= lines):
            break
        time.sleep(0.002)
    time.sleep(rng.choice((0.0, rng.uniform(0.0, 0.05))))
    return process.poll() is not None


def _again(file: Path, store: Path) -> subprocess.Popen[bytes]:
    """Resume the run, or start it if it was killed before it was created."""
    known = _run("runs", "list", "--json", "--store", str(store))
    listed: list[dict[str, Any]] = json.loads(known) if known.strip() else []
    if not listed or listed[0]["events"] == 0:
        name = "r1" if not listed else "r2"
        return host("run", str(file), "--run-id", name, store=store)
    if listed[0]["status"] == "completed":
        return subprocess.Popen(
            ["cat", str(_saved(store, listed[0]["id"]))], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    return host("resume", listed[0]["id"], store=store)


def _saved(store: Path, run: str) -> Path:
    """The result of a run that ended before its host was killed, from the journal."""
    last = _events(store)[-1]
    path = store / f"{run}.result.json"
    path.write_text(json.dumps(last["data"]["outputs"]))
    return path


def _run(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "failwell", *arguments], capture_output=True, text=True, check=False
    ).stdout


def _events(store: Path) -> list[dict[str, Any]]:
    exported = _run("runs", "export", "last", "--store", str(store))
    return [json.loads(line) for line in exported.splitlines()]


def check(events: list[dict[str, Any]], result: Any, log: list[str]) -> None:
    """The record is whole, nothing that had ended ran again, and the end is that of an undisturbed run."""
    assert [event["seq"] for event in events] == list(range(len(events)))
    ends = [
        event["type"] for event in events if event["type"] in ("run:completed", "run:failed", "run:cancelled")
    ]
    assert ends == ["run:completed"]
    assert events[-1]["type"] == "run:completed"
    completed: Counter[str] = Counter()
    keys: dict[str, str] = {}
    reruns: Counter[str] = Counter()
    for event in events:
        data = event["data"]
        if event["type"] == "node:started":
            assert not completed[data["path"]], f"{data['path']} ran again after it had ended"
            mark = f"{data['path']}/{data['visit']}.{data['attempt']}"
            assert keys.setdefault(mark, data["key"]) == data["key"]
            if data.get("rerun"):
                reruns[data["key"]] += 1
        elif event["type"] == "node:completed":
            completed[data["path"]] += 1
    assert set(completed.values()) == {1}
    begun = Counter(line.removeprefix("begin ") for line in log if line.startswith("begin "))
    for key, times in begun.items():
        assert times <= 1 + reruns[key], f"{key} began {times} times and {reruns[key]} repeats are on record"
    assert result == {"last": "last", "fan": [{"v": "parse"}] * 4, "flaky": "flaky"}


def _alive(mark: str, patience: float = 5.0) -> list[str]:
    """Processes that still carry the round's folder in their command line after five seconds."""
    until = time.monotonic() + patience
    while True:
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if mark in line:
                found.append(f"{entry.name}: {line[:120]}")
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.05)


def main() -> None:
    """`python -m tests.workflows.durability.campaign 300`: as many rounds as that, and what came of them."""
    import tempfile

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    told: Counter[str] = Counter()
    for seed in range(first, first + rounds):
        with tempfile.TemporaryDirectory() as folder:
            told.update(round_of(seed, Path(folder)))
        sys.stdout.write(
            f"\r{seed + 1 - first}/{rounds} rounds, {told['kills']} kills, {told['reruns']} nodes run again"
        )
        sys.stdout.flush()
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
