"""Measures how far one fact travels through the code: `python -m tools.journeys`.

Eight journeys are taken, each once to warm up (imports, caches, lazily built tables) and once to measure:

* describing a rate limit of the `openai` SDK, and its panel and problem document,
* running a workflow of two scripts with one error route, and resuming it,
* running a workflow of one agent that calls one tool, with a scripted model,
* submitting a job, and hosting one whose worker is killed, until its failure is printed.

A journey is counted with `sys.setprofile` in every thread:

calls
    Python functions of the package that are entered. Comprehensions, generator expressions and lambdas belong to the function
    around them. A coroutine or generator counts each time it is resumed.
functions, files
    Distinct ones among those calls.
room changes
    Two consecutive calls whose top-level folders below `failwell` differ.
boxes
    Classes of the package that the fact is put into on its way. Each journey plants a mark in its fact: in the error's message
    and request id, in an argument of the job, in what the worker printed. A box is an object that is constructed after the
    fact came into being and holds the mark, the failure's kind or its message in a field when its constructor, or the function
    that fills it, returns: itself, inside plain containers, or inside another box. Plain dicts are no boxes.

Only entry points that outlast a reorganisation are driven (`failwell.describe`, the delivery functions, the command line), so
the same file measures other versions: `PYTHONPATH=OTHER/src python tools/journeys.py`.
"""

import argparse
import contextlib
import dataclasses
import gc
import importlib
import io
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

import failwell

LIMITS = {
    "describe(openai.RateLimitError)": (96, 25),
    "panel of it": (15, 6),
    "problem document of it": (11, 9),
    "run, two scripts, one error route": (545, 105),
    "resume of it": (465, 87),
    "agent turn with one tool call": (690, 137),
    "job submit": (157, 38),
    "host, SIGKILL, record, print": (800, 109),
}
"""Journey → functions and files at most. They may only fall, unless a commit says why they rise."""

SOURCE = f"{Path(failwell.__file__).parent}{os.sep}"
MARK = "journey-7f3a"
"""Planted in each fact, and looked for in everything that is constructed on its way."""

_INNER = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_CONSTRUCTORS = ("__init__", "__new__", "<lambda>")
"""The last is how a named tuple's `__new__` is called."""
_DEPTH = 6
"""How deep plain containers are searched for the mark."""

_WORKFLOW = """\
workflow:
  name: journey
  entry_point: load

kinds:
  external.orders.missing: {category: user_input, summary: The orders are missing.}

agents:
  - name: load
    type: script
    command: /bin/sh
    args: [-c, 'touch FOLDER/born; cat FOLDER/missing.json > "$FAILWELL_ERROR_OUT"']
    raises: [external.orders.missing]
    routes:
      - {to: $end}
      - {on_error: external.orders.missing, to: recover}

  - name: recover
    type: script
    command: /bin/sh
    args: [-c, 'test -e FOLDER/flag || cat FOLDER/missing.json > "$FAILWELL_ERROR_OUT"; echo "{\\"recovered\\": true}"']
    raises: [external.orders.missing]
    routes: [{to: $end}]

output:
  recovered: "{{ recover.output.recovered }}"
"""
_AGENT = """\
workflow:
  name: journey
  entry_point: ask
  runtime: {default_model: "scripted:replies.yaml"}
tools: {look: {python: "journey_tools:look", effect: read}}
agents:
  - {name: ask, prompt: Look it up., routes: [{to: $end}]}
"""
_REPLIES = """\
replies:
  - tool_calls: [{name: look, arguments: {word: journey-7f3a}}]
  - {text: done}
"""
_CAPABILITY = """
import os, signal, sys

def echo(value=None):
    return value

def die(value, path):
    print(value, file=sys.stderr, flush=True)
    open(path, "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@dataclass
class Count:
    """What one journey came to."""

    calls: int = 0
    functions: set[CodeType] = field(default_factory=set[CodeType])
    path: list[str] = field(default_factory=list[str])
    """Each call in order, as `room/file.py:function`."""
    boxes: dict[str, int] = field(default_factory=dict[str, int])
    """Class to the number of instances that held the fact, in order of first appearance."""

    @property
    def files(self) -> int:
        return len({code.co_filename for code in self.functions})

    @property
    def changes(self) -> list[tuple[str, str]]:
        """The call before and the call after each change of rooms, in order."""
        pairs = zip(self.path, self.path[1:], strict=False)
        return [(before, after) for before, after in pairs if _room(before) != _room(after)]

    @property
    def room_changes(self) -> int:
        return len(self.changes)

    @property
    def between(self) -> dict[str, int]:
        """Which rooms the changes are between, the most frequent first."""
        pairs = Counter((_room(before), _room(after)) for before, after in self.changes)
        return {f"{before} → {after}": number for (before, after), number in pairs.most_common()}

    def excess(self, journey: str) -> list[str]:
        """What there is too much of on this journey, one line each."""
        amounts = zip(("functions", "files"), (len(self.functions), self.files), LIMITS[journey], strict=True)
        return [
            f"{journey}: {amount} {noun}, at most {most} are allowed"
            for noun, amount, most in amounts
            if amount > most
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "functions": len(self.functions),
            "files": self.files,
            "room_changes": self.room_changes,
            "between": self.between,
            "boxes": len(self.boxes),
            "box_classes": dict(self.boxes),
        }


class Observer:
    """Counts what is called while it watches."""

    def __init__(self, marks: tuple[str, ...], birth: Path | None) -> None:
        self.count = Count()
        self._marks = marks
        self._birth = birth
        """A file that exists as soon as the fact does; without one, the fact is there from the beginning."""
        self._lock = threading.Lock()

    def __enter__(self) -> Count:
        gc.collect()
        gc.disable()
        threading.setprofile(self._observe)
        sys.setprofile(self._observe)
        return self.count

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.enable()

    def _observe(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "return" and code.co_name in _CONSTRUCTORS:
            self._constructed(frame, _argument)
        elif event == "return" and code.co_filename.startswith(SOURCE):
            self._filled(frame)
        if event != "call" or not code.co_filename.startswith(SOURCE) or code.co_name in _INNER:
            return
        if code.co_name == "<module>":
            return
        with self._lock:
            self.count.calls += 1
            self.count.functions.add(code)
            self.count.path.append(f"{code.co_filename.removeprefix(SOURCE)}:{code.co_qualname}")

    def _constructed(self, frame: FrameType, value: object) -> None:
        code = frame.f_code
        first = code.co_varnames[0] if code.co_varnames else ""
        if code.co_name == "<lambda>" and first != "_cls":
            return
        self._count(frame.f_locals.get(first) if code.co_name == "__init__" else value)

    def _filled(self, frame: FrameType) -> None:
        """Count the objects that a function made without a constructor, from a draft (`failwell.errors.frozen`)."""
        drafts = {
            draft
            for name in frame.f_code.co_names
            if getattr(draft := frame.f_globals.get(name), "__qualname__", "").startswith("_Draft")
        }
        if drafts:
            values: list[object] = list(frame.f_locals.values())
            for value in values:
                if getattr(type(value), "__draft__", None) in drafts:
                    self._count(value)

    def _count(self, made: object) -> None:
        if not _is_ours(made) or isinstance(made, Enum) or (self._birth and not self._birth.exists()):
            return
        if not _holds(_fields(made), self._marks, _DEPTH):
            return
        name = type(made).__name__
        with self._lock:
            self.count.boxes[name] = self.count.boxes.get(name, 0) + 1


def _room(call: str) -> str:
    """The top-level folder below `failwell`, or the name of a module that lies beside those."""
    return call.partition(":")[0].partition("/")[0].removesuffix(".py")


def _is_ours(value: object) -> bool:
    return type(value).__module__.startswith("failwell.")


def _is_record(value: object) -> bool:
    cls = type(value)
    return dataclasses.is_dataclass(cls) or issubclass(cls, BaseException) or hasattr(cls, "_fields")


def _fields(made: object) -> Iterator[object]:
    """The values of its fields, without running any code of its class."""
    if isinstance(made, tuple):
        yield from cast("tuple[object, ...]", made)
        return
    if isinstance(made, BaseException):
        yield from made.args
        yield getattr(type(made), "kind", None)
    yield from getattr(made, "__dict__", {}).values()
    for cls in type(made).__mro__:
        for descriptor in vars(cls).values():
            if type(descriptor).__name__ == "member_descriptor":
                with contextlib.suppress(AttributeError):
                    yield descriptor.__get__(made, cls)


def _holds(values: Iterable[Any], marks: tuple[str, ...], depth: int) -> bool:
    return any(_is_fact(value, marks, depth) for value in list(values))


def _is_fact(value: Any, marks: tuple[str, ...], depth: int) -> bool:
    if isinstance(value, bytes | bytearray):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return any(mark in value for mark in marks)
    if depth == 0:
        return False
    if isinstance(value, Mapping):
        return _holds(cast("Mapping[Any, Any]", value).values(), marks, depth - 1)
    if isinstance(value, tuple | list | set | frozenset):
        return _holds(cast("Iterable[Any]", value), marks, depth - 1)
    return _is_ours(value) and _is_record(value) and _holds(_fields(value), marks, depth - 1)


def rate_limit() -> Exception:
    """A rate limit as the `openai` SDK raises it, with the headers and body of a real reply."""
    import httpx
    import openai

    body = {
        "message": f"{MARK}: Rate limit reached for gpt-5 in organization org-1 on marks per min (TPM): "
        "Limit 30000, Used 29500, Requested 1200. Please try again in 1.4s.",
        "type": "marks",
        "param": None,
        "code": "rate_limit_exceeded",
    }
    reply: Any = httpx.Response(
        429,
        headers={
            "retry-after": "2",
            "retry-after-ms": "1400",
            "x-request-id": f"req_{MARK}",
            "x-ratelimit-limit-marks": "30000",
            "x-ratelimit-remaining-marks": "500",
            "x-ratelimit-reset-marks": "1.4s",
        },
        json={"error": body},
        request=httpx.Request("POST", "https://api.openai.com/v1/chat/completions"),
    )
    return _raised(openai.RateLimitError(f"Error code: 429 - {body}", response=reply, body=body))


def _raised(error: Exception) -> Exception:
    """The error with a traceback."""
    try:
        raise error
    except type(error) as caught:
        return caught


def _first(*names: str) -> Any:
    """The first of these that this version has, each written `module:name`."""
    for name in names:
        module, _, attribute = name.partition(":")
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(module), attribute)
    raise SystemExit(f"this version has none of {', '.join(names)}")


def _command(*argv: str) -> Callable[[], int]:
    """The command line in this process, with its output swallowed."""
    main = _first("failwell.cli.main:main", "failwell.cli:main")

    def run() -> int:
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            code = main(list(argv))
        run.printed = out.getvalue() + err.getvalue()  # type: ignore[attr-defined]
        return code

    return run


def _spelling(*names: str) -> str:
    """The first of these that this version has as a command."""
    return next((name for name in names if _command(name, "--help")() == 0), names[-1])


def _measured(
    work: Callable[[], Any],
    *marks: str,
    code: int | None = None,
    birth: Path | None = None,
) -> Count:
    with Observer((MARK, *marks), birth) as count:
        result = work()
    if code is not None and result != code:
        raise SystemExit(f"a journey ended with {result}, not {code}:\n{getattr(work, 'printed', '')}")
    return count


def delivered() -> dict[str, Count]:
    """Describe the rate limit and show it."""
    describe = failwell.describe
    panel = _first("failwell.delivery:panel")
    problem = _first("failwell.http:problem", "failwell.delivery.problem:problem")

    def show(report: Any) -> None:
        from rich.console import Console

        Console(file=io.StringIO(), width=100).print(panel(report))

    warm = describe(rate_limit())
    show(warm)
    problem(warm)
    error = rate_limit()
    described = _measured(lambda: describe(error), warm.kind)
    report = describe(error)
    fact = (report.kind, report.message)
    return {
        "describe(openai.RateLimitError)": described,
        "panel of it": _measured(lambda: show(report), *fact),
        "problem document of it": _measured(lambda: problem(report), *fact),
    }


def run_and_resumed(folder: Path) -> dict[str, Count]:
    """Run a workflow whose first step fails, and resume a run that failed."""
    run = resumed = Count()
    for name in ("warm", "measured"):
        place = folder / name
        place.mkdir()
        file, flag, store = place / "journey.yaml", place / "flag", str(place / "state")
        file.write_text(_WORKFLOW.replace("FOLDER", str(place)), encoding="utf-8")
        envelope = {"kind": "external.orders.missing", "message": f"{MARK}: the orders are missing"}
        (place / "missing.json").write_text(json.dumps(envelope), encoding="utf-8")
        flag.touch()
        run = _measured(
            _command("run", str(file), "--store", store, "--no-input"),
            envelope["kind"],
            code=0,
            birth=place / "born",
        )
        flag.unlink()
        _measured(_command("run", str(file), "--store", store, "--no-input"), code=3)
        flag.touch()
        resumed = _measured(_command("resume", "last", "--store", store, "--no-input"), code=0)
    return {"run, two scripts, one error route": run, "resume of it": resumed}


def agent_turn(folder: Path) -> dict[str, Count]:
    """Run an agent that calls one tool."""
    count = Count()
    for name in ("warm", "measured"):
        place = folder / name
        place.mkdir()
        (place / "journey.yaml").write_text(_AGENT, encoding="utf-8")
        (place / "replies.yaml").write_text(_REPLIES, encoding="utf-8")
        (place / "journey_tools.py").write_text(
            "def look(word: str) -> str:\n    return word\n", encoding="utf-8"
        )
        store = str(place / "state")
        count = _measured(
            _command("run", str(place / "journey.yaml"), "--store", store, "--no-input"), code=0
        )
    return {"agent turn with one tool call": count}


def jobs(folder: Path) -> dict[str, Count]:
    """Submit a job, and host one whose worker is killed."""
    (folder / "tools.py").write_text(_CAPABILITY, encoding="utf-8")
    store = ("--store", str(folder / "state"))
    job, capabilities = _spelling("jobs", "job"), _spelling("capabilities", "capability")
    for name in ("echo", "die"):
        (folder / f"{name}.toml").write_text(f'name = "{name}"\nobject = "tools:{name}"\n', encoding="utf-8")
        _measured(_command(capabilities, "add", str(folder / f"{name}.toml"), *store), code=0)
    submitted = killed = Count()
    for _ in range(2):
        submitted = _measured(_command(job, "submit", "echo", f"value={MARK}", *store), code=0)
    _measured(_command("workers", "run", "--until-empty", *store), code=0)
    for name in ("warm", "born"):
        values = (f"value={MARK}", f"path={folder / name}")
        killed = _measured(
            _command(job, "submit", "die", *values, "--attempts", "1", "--wait", *store),
            "worker.oom",
            "worker.crashed",
            code=1,
            birth=folder / name,
        )
    return {"job submit": submitted, "host, SIGKILL, record, print": killed}


def measure() -> dict[str, Count]:
    """Take every journey."""
    os.environ["NO_COLOR"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        (agent := Path(folder) / "agent").mkdir()
        (place := Path(folder) / "jobs").mkdir()
        return delivered() | run_and_resumed(Path(folder)) | agent_turn(agent) | jobs(place)


def _table(counts: Mapping[str, Count]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("journey", "calls", "functions", "files", "room changes", "boxes", "which")
    ]
    for name, count in counts.items():
        told = count.as_dict()
        rows.append(
            (
                name,
                *(f"{told[key]:,}" for key in ("calls", "functions", "files", "room_changes", "boxes")),
                " → ".join(told["box_classes"]),
            )
        )
    return rows


def main() -> None:
    """Measure, and print in the format that is wanted."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.journeys", description="Measure how far one fact travels."
    )
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    parser.add_argument(
        "--between", action="store_true", help="also list which rooms the changes are between"
    )
    parser.add_argument(
        "--changes",
        metavar="WORD",
        help="also list each room change of the journeys whose name has this word",
    )
    wanted = parser.parse_args()
    counts = measure()
    if wanted.format == "json":
        print(json.dumps({name: count.as_dict() for name, count in counts.items()}, indent=2))
        return
    rows = _table(counts)
    if wanted.format == "markdown":
        rows.insert(1, ("---", "--:", "--:", "--:", "--:", "--:", "---"))
        print("\n".join(f"| {' | '.join(row)} |" for row in rows))
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(
            "  ".join(
                cell.ljust(width) if at in (0, 6) else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
        )
    if wanted.between:
        for name, count in counts.items():
            print(f"\n{name}")
            print("\n".join(f"  {number:4}  {pair}" for pair, number in count.between.items()))
    if wanted.changes:
        for name, count in counts.items():
            if wanted.changes in name:
                print(f"\n{name}")
                print("\n".join(f"  {before}  →  {after}" for before, after in count.changes))


if __name__ == "__main__":
    main()
