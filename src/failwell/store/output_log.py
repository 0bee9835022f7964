"""What the steps of a run print: two private files in the run's folder, written as it comes.

`output.jsonl` is the current file. When it is full it becomes `output.old.jsonl` and replaces the one before, so
a run keeps a bounded amount, the newest. A stream that is longer than its step's `output_limit` is continued in
its own file, which a reader reads too. Each line is one JSON object.
"""

import codecs
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import fields
from json import loads
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal

from failwell.errors.frozen import frozen
from failwell.store.event import Event, to_json
from failwell.store.private_files import append_private
from failwell.store.status import as_mapping, as_text
from failwell.store.watch import Waker, Watch

CURRENT = "output.jsonl"
OLD = "output.old.jsonl"
SPILL = "spill"
"""The folder of streams that are longer than their limit, in the folder of the run."""
SEGMENT = 32 * 1024 * 1024
"""Bytes of one file. A run keeps two."""
_CHUNK = 65_536
JOIN_SECONDS = 0.05
"""Pieces of one stream that come within this time are one entry."""
_JOINED = 16_384
"""Characters of an entry that nothing is joined to any more."""
Stream = Literal["stdout", "stderr", ""]


@frozen
class LogEntry:
    """An entry of a run's output: a piece of what one step printed, or a remark about a gap."""

    at: float
    """Seconds since 1970."""
    path: str
    """The step, as events name it."""
    node: str
    stream: Stream
    text: str
    """May end anywhere, also within a line."""
    item: str | None = None
    """The key of the item, in a `for_each` with `key_by`."""
    visit: int = 1
    attempt: int = 1
    gap: str = ""
    """Why output is missing at this place; then `text` is empty."""

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON, without what is not set."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, "")}


class OutputLog:
    """Appends output to the log of one run. Nothing is created before something is printed."""

    def __init__(self, folder: Path, segment: int = SEGMENT) -> None:
        self._folder, self._segment = folder, segment
        self._waker = Waker(folder)
        self._descriptor: int | None = None
        self._size = 0
        self._number = 1
        self._lost = 0
        self._pending: dict[str, Any] | None = None
        self._written_at = float("-inf")

    def add(self, entry: Mapping[str, Any]) -> bool:
        """Append an entry, or hold it back to join it with what follows. Returns whether `flush` has to be called.

        A script that prints line by line would otherwise cost a write for each line.
        """
        pending = self._pending
        if pending is not None and "text" in entry and _stream_of(entry) == _stream_of(pending):
            pending["text"] += entry["text"]
            if len(pending["text"]) < _JOINED:
                return True
            self.flush()
            return False
        self.flush()
        if "text" in entry and 0 <= entry["at"] - self._written_at < JOIN_SECONDS:
            self._pending = dict(entry)
            return True
        self._written_at = entry["at"]
        self.write(entry)
        return False

    def flush(self) -> None:
        """Append what is held back."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._written_at = pending["at"]
            self.write(pending)

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append one entry and wake followers. A full disk loses output; it never fails the step."""
        line = f"{to_json(entry)}\n".encode("ascii")
        try:
            if self._descriptor is None:
                self._open()
            elif self._size + len(line) > self._segment:
                self._rotate()
            if self._lost:
                lost = f"{to_json({'lost': self._lost})}\n".encode("ascii")
                self._append(lost)
                self._lost = 0
            self._append(line)
        except OSError:
            # A line that was written in part is closed by the next one.
            self._lost += len(line)
            self._close_file()
            return
        self._waker.wake()

    def close(self) -> None:
        """Append what is held back, and close the file. Writing opens it again."""
        self.flush()
        self._close_file()

    def _close_file(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._waker.close()

    def _open(self) -> None:
        path = self._folder / CURRENT
        self._descriptor = descriptor = append_private(path)
        self._size = os.fstat(descriptor).st_size
        if not self._size:
            self._append(f"{to_json({'segment': self._number})}\n".encode("ascii"))
            return
        with path.open("rb") as file:
            match _entry(file.readline()):
                case {"segment": int(number)}:
                    self._number = number
                case _:
                    pass
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                # A process that was killed left half a line.
                self._append(b"\n")

    def _rotate(self) -> None:
        self._close_file()
        (self._folder / CURRENT).replace(self._folder / OLD)
        self._number += 1
        self._open()

    def _append(self, line: bytes) -> None:
        assert self._descriptor is not None
        count = os.write(self._descriptor, line)
        self._size += count
        if count < len(line):
            raise OSError("the line was not written as a whole")


class OutputReader:
    """Reads the log of one run from its beginning; each call of `read` returns what was added since."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None
        self._has_begun = False
        self._is_first = True
        self._rest = b""
        self._spills: dict[tuple[Any, ...], _Spill] = {}

    @property
    def exists(self) -> bool:
        """Whether the run has a log."""
        return (self._folder / CURRENT).exists() or (self._folder / OLD).exists()

    def read(self) -> Iterator[LogEntry]:
        """The entries that were added since the last call."""
        for line in self._lines():
            yield from self._entries(_entry(line))
        for spill in self._spills.values():
            yield from spill.read()

    def close(self) -> None:
        """Close the files."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        for spill in self._spills.values():
            spill.close()

    def _lines(self) -> Iterator[bytes]:
        if not self._has_begun:
            self._has_begun = True
            self._file = _open_file(self._folder / OLD)
        while True:
            if self._file is None:
                self._file = _open_file(self._folder / CURRENT)
                if self._file is None:
                    return
            # Asked first: what is added before the file is replaced is read in this round.
            is_current = _is_at(self._folder / CURRENT, self._file)
            while chunk := os.read(self._file, _CHUNK):
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                yield from lines
            if is_current:
                return
            os.close(self._file)
            self._file, self._rest = None, b""

    def _entries(self, entry: Mapping[str, Any]) -> Iterator[LogEntry]:
        match entry:
            case {"segment": int(number)}:
                if number > 1 and self._is_first:
                    yield _gap(entry, "earlier output was dropped; a run keeps the newest 64 MiB")
                self._is_first = False
            case {"lost": int(count)}:
                yield _gap(entry, f"{count} bytes were lost: the disk was full")
            case {"cut": int(count), "file": str(name)}:
                spill = self._spills[*_stream_of(entry), entry.get("at")] = _Spill(
                    self._folder / SPILL / Path(name).name, count, entry
                )
                yield from spill.read()
            case {"cut": int(), "reason": str(reason)}:
                yield _gap(entry, f"further output was cut: {reason}")
            case {"text": str()}:
                yield _output(entry)
            case _:
                # Half a line of a process that was killed.
                return


class _Spill:
    """The rest of one stream, in the file that holds all of it."""

    def __init__(self, path: Path, offset: int, entry: Mapping[str, Any]) -> None:
        self._path, self._offset, self._entry = path, min(max(0, offset), 2**62), entry
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self) -> Iterator[LogEntry]:
        file = _open_file(self._path)
        if file is None:
            return
        try:
            while chunk := os.pread(file, _CHUNK, self._offset):
                self._offset += len(chunk)
                yield _output({**self._entry, "text": self._decoder.decode(chunk)})
        finally:
            os.close(file)

    def close(self) -> None:
        self._decoder.reset()


def follow_output(
    folder: Path, is_over: Callable[[], bool], other_entries: Callable[[], Iterable[LogEntry]] = tuple
) -> Generator[LogEntry]:
    """The output of a run up to now and as it is printed, until `is_over`.

    Args:
        folder: The folder of the run.
        is_over: Whether nothing more will be printed.
        other_entries: What was added since the last call to output that is stored elsewhere.
    """
    reader = OutputReader(folder)
    try:
        with Watch(folder) as watch:
            while True:
                # Asked first: what is printed after the answer is read in the next round.
                has_ended = is_over()
                yield from reader.read()
                yield from other_entries()
                if has_ended:
                    return
                watch.wait(watch.interval)
    finally:
        reader.close()


def recorded_output(events: Iterator[Event]) -> Iterator[LogEntry]:
    """The output that the events of a run hold: for a run without a log, which an earlier version recorded."""
    started: dict[str, Mapping[str, Any]] = {}
    for event in events:
        data = event.data
        path = str(data.get("path", ""))
        if event.type == "node:started":
            started[path] = data
        output = as_mapping(data.get("output"))
        if (
            event.type not in ("node:completed", "node:failed")
            or started.get(path, {}).get("type") != "script"
        ):
            continue
        for stream in ("stdout", "stderr"):
            text = as_text(output.get(stream))
            if text:
                yield _output({**started[path], "at": event.at, "stream": stream, "text": text})


def entry_of(
    about: Mapping[str, Any], at: float, *, stream: str = "", text: str = "", gap: str = ""
) -> LogEntry:
    """An entry of the step that `about` names, which is the data of its last start."""
    return LogEntry(**_facts({**about, "at": at, "stream": stream}), text=text, gap=gap)


def _output(entry: Mapping[str, Any]) -> LogEntry:
    return LogEntry(**_facts(entry), text=str(entry.get("text", "")))


def _gap(entry: Mapping[str, Any], reason: str) -> LogEntry:
    return LogEntry(**_facts(entry), text="", gap=reason)


def _facts(entry: Mapping[str, Any]) -> dict[str, Any]:
    stream, at = entry.get("stream"), entry.get("at")
    visit, attempt = entry.get("visit"), entry.get("attempt")
    return {
        "at": float(at) if isinstance(at, int | float) else 0.0,
        "path": str(entry.get("path", "")),
        "node": str(entry.get("node", "")),
        "stream": stream if stream in ("stdout", "stderr") else "",
        "item": as_text(entry.get("item")),
        "visit": visit if isinstance(visit, int) else 1,
        "attempt": attempt if isinstance(attempt, int) else 1,
    }


def _stream_of(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in ("path", "visit", "attempt", "stream"))


def _entry(line: bytes) -> Mapping[str, Any]:
    try:
        value: object = loads(line)
    except (ValueError, RecursionError):
        return {}
    return as_mapping(value)


def _open_file(path: Path) -> int | None:
    """A descriptor for reading; `None` if there is no such file, or a link, a folder or a pipe in its place."""
    flags = (
        os.O_RDONLY
        | getattr(os, "O_CLOEXEC", 0)
        | getattr(os, "O_NOFOLLOW", 0)
        | getattr(os, "O_NONBLOCK", 0)
    )
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return None
    if S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _is_at(path: Path, file: int) -> bool:
    """Whether the open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))  # noqa: PTH116
    except FileNotFoundError:
        # Between two steps of a replacement.
        return False
