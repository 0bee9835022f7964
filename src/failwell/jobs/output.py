"""Stores what capabilities print and log: the last lines of each job, in files that only their owner can read.

    lines/JOB.jsonl                the output of a job, over all its attempts
    lines/worker-INSTANCE.jsonl    output of a worker that belongs to no job, or to an unknown one

Each line is a JSON object with an increasing number `n`, so that a reader can continue after the file was
shortened. Secrets of the capability are masked before lines arrive here.
"""

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from json import loads
from pathlib import Path
from time import time
from typing import Any, cast

from failwell.errors.fault import Fault
from failwell.errors.json_walk import map_texts
from failwell.errors.redact import mask_known, register_secret
from failwell.jobs.workers.protocol import OutputLine
from failwell.jobs.workers.startup import SHORTEST_SECRET
from failwell.store.event import to_json
from failwell.store.folder import make_private
from failwell.store.private_files import append_private, replace_private

_ROOM = 1_000
"""Characters by which a text may grow when its secrets are masked."""


def mask_secrets(value: Any, secrets: Mapping[str, str]) -> Any:
    """A job's `value` with these secrets masked in every text of it."""
    for secret in secrets.values():
        if len(secret) >= SHORTEST_SECRET:
            register_secret(secret)
    return map_texts(value, lambda text: mask_known(text, len(text) + _ROOM))


LINES = "lines"
MOST_LINES = 200
MOST_BYTES = 65_536
_OVERHEAD = 64
"""Bytes of a line beside its text."""
_FLUSH_AFTER = 0.2
"""Seconds after which a line is written to its file at the latest."""
_MOST_TAILS = 64
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def read_lines(folder: Path, job: str, after: int = 0) -> list[OutputLine]:
    """The last lines of a job with a number above `after`; `folder` is the store's."""
    return _read(_file(folder, job), after)


class OutputFiles:
    """Writes the last lines of each job; used on the event loop of the host."""

    def __init__(self, folder: Path, wake: Callable[[], object]) -> None:
        """Nothing is written yet; `wake` wakes those who follow the store."""
        self._folder = folder
        self._wake = wake
        self._tails: OrderedDict[str, _Tail] = OrderedDict()
        self._dirty: dict[str, _Tail] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, event: OutputLine, job: str | None) -> None:
        """Add one line to the file of its job, or of its worker if `job` is `None`."""
        name = f"worker-{event.instance}" if job is None else job
        if _NAME.fullmatch(name) is None:
            return
        tail = self._tails.get(name)
        if tail is None:
            tail = self._tails[name] = _Tail(_file(self._folder, name))
        self._tails.move_to_end(name)
        tail.add(event)
        self._dirty[name] = tail
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_AFTER, self.flush)

    def close(self) -> None:
        """Write what is left."""
        self.flush()

    def flush(self, name: str | None = None) -> None:
        """Write new lines to the file of one job, or to all files."""
        if name is not None:
            tail = self._dirty.pop(name, None)
            if tail is not None:
                tail.save()
                self._wake()
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for tail in self._dirty.values():
            tail.save()
        if self._dirty:
            # Those who follow the store also follow what jobs print.
            self._wake()
        self._dirty.clear()
        while len(self._tails) > _MOST_TAILS:
            self._tails.popitem(last=False)


class _Tail:
    """The last lines that one job or worker printed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        # A new attempt, or a new host, continues the file of the job.
        before = _read(file, 0)
        self._lines: deque[OutputLine] = deque(before, MOST_LINES)
        self._bytes = sum(len(line.text) + _OVERHEAD for line in before)
        self._in_file = 2 * self._bytes
        """An estimate of the size of the file, which only decides when the file is rewritten."""
        self._number = before[-1].n if before else 0
        self._unsaved = 0

    def add(self, event: OutputLine) -> None:
        self._number += 1
        if len(self._lines) == MOST_LINES:
            self._forget()
        line = replace(event, n=self._number, at=round(time(), 3))
        self._lines.append(line)
        self._bytes += len(line.text) + _OVERHEAD
        self._unsaved += 1
        while self._bytes > MOST_BYTES and len(self._lines) > 1:
            self._forget()

    def _forget(self) -> None:
        self._bytes -= len(self._lines.popleft().text) + _OVERHEAD

    def save(self) -> None:
        """Append new lines to the file; a file that has grown too long is rewritten with the last lines."""
        new = list(self._lines)[-min(self._unsaved, len(self._lines)) :]
        is_whole = self._unsaved >= len(self._lines)
        self._unsaved = 0
        try:
            text = _text(new)
            if is_whole or self._in_file + len(text) > 2 * MOST_BYTES:
                text = text if is_whole else _text(self._lines)
                make_private(self._file.parent)
                replace_private(self._file, text)
                self._in_file = len(text)
            else:
                make_private(self._file.parent)
                with open(append_private(self._file), "a", encoding="ascii") as file:
                    file.write(text)
                self._in_file += len(text)
        except (OSError, Fault):
            # A job must not fail because its output cannot be stored.
            return


def _text(lines: Iterable[OutputLine]) -> str:
    """The lines as they are stored."""
    names = ("n", "at", "stream", "text"), ("level", "logger")
    pieces: list[str] = []
    for line in lines:
        values: dict[str, Any] = {name: getattr(line, name) for name in names[0]}
        values |= {name: value for name in names[1] if (value := getattr(line, name))}
        pieces.append(to_json(values))
    return "".join(f"{piece}\n" for piece in pieces)


def _file(folder: Path, name: str) -> Path:
    return folder / LINES / f"{name}.jsonl"


def _read(file: Path, after: int) -> list[OutputLine]:
    try:
        rows = file.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    lines: list[OutputLine] = []
    for row in rows:
        try:
            values = cast("dict[str, Any]", loads(row))
            line = OutputLine(**values)
        except (ValueError, TypeError):
            # An incomplete line: it is still being written, or its host died.
            continue
        if line.n > after:
            lines.append(line)
    return lines[-MOST_LINES:]
