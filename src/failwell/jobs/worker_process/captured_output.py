"""Sends what the capability prints and logs as frames that name the job.

Only Python's streams are replaced. What C code and other processes write to the descriptors goes to pipes that the host
reads, so it never mixes with frames. The host counts it to the call that runs; `waits_in_pipes` says whether it has to
read them before that call ends. What C code itself buffers is written when it flushes.
"""

import io
import logging
import re
import sys
import threading
from codecs import getincrementaldecoder
from collections.abc import Iterator
from fcntl import ioctl
from termios import FIONREAD
from typing import Any

from ...processes.wire import Line
from .author import current
from .failure_report import attempt, traceback_text

_LONGEST = 8000
"""Characters of one line."""
_LAST_GAP = re.compile(r".*[\s,;&]", re.DOTALL)


def _job() -> str | None:
    call = current.get()
    return None if call is None else call.job


def _visible(text: str) -> str:
    """What a terminal shows of a line, about: what follows the last carriage return."""
    return text.rstrip("\r").rpartition("\r")[2]


def _pieces(text: str) -> Iterator[str]:
    """A text that is too long for one line, cut between words where it has any: half a secret is not recognized."""
    at = 0
    while len(text) - at > _LONGEST:
        gap = _LAST_GAP.match(text, at + 1, at + _LONGEST)
        end = at + _LONGEST if gap is None else gap.end()
        yield text[at:end]
        at = end
    yield text[at:]


def waits_in_pipes() -> bool:
    """Whether text that was written past Python's streams has not been read by the host."""
    if sys.platform != "linux":
        # Elsewhere the writing end of a pipe cannot tell.
        return True
    count = bytearray(4)
    for descriptor in (1, 2):
        try:
            ioctl(descriptor, FIONREAD, count)
        except OSError:
            # The capability closed it, or replaced it by what has no such count.
            return True
        if any(count):
            return True
    return False


class Captured(io.TextIOBase):
    """Stdout or stderr inside a worker: a text stream that sends whole lines, and those that are too long in pieces.

    Of a line that is redrawn with carriage returns, it sends the last state.
    """

    def __init__(self, line: Line, name: str) -> None:
        super().__init__()
        self._line = line
        self._name = name
        self._unfinished: dict[str | None, str] = {}
        self._flushed: dict[str | None, str] = {}
        """What the host has of unfinished lines."""
        self.name = f"<{name}>"
        self.buffer = _Bytes(self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """The underlying descriptor, for code that passes it to another process."""
        return 1 if self._name == "stdout" else 2

    def write(self, text: str) -> int:
        job = _job()
        *whole, rest = (self._unfinished.pop(job, "") + text).split("\n")
        for text_line in whole:
            self._send(job, text_line)
        if rest:
            *ended, last = _pieces(_visible(rest))
            for piece in ended:
                self._send(job, piece)
            self._unfinished[job] = f"{last}\r" if rest.endswith("\r") else last
        return len(text)

    def reconfigure(self, **_options: object) -> None:
        """Do nothing: the stream is UTF-8 and line-buffered already, which is what programs ask for."""

    def flush(self) -> None:
        """Give the host the unfinished line, which counts if this process dies before the line is sent."""
        job = _job()
        text = _visible(self._unfinished.get(job, ""))
        if text and self._flushed.get(job) != text:
            self._flushed[job] = text
            self._line.send({"type": "unfinished", "job": job, "stream": self._name, "text": _sendable(text)})

    def finish(self, job: str | None) -> None:
        """Send the unfinished last line of a call that ended."""
        rest = self._unfinished.pop(job, "")
        if rest:
            self._send(job, rest)

    def _send(self, job: str | None, text: str) -> None:
        for piece in _pieces(_visible(text)):
            if piece:
                self._flushed.pop(job, None)
                self._line.send(
                    {
                        "type": "log",
                        "job": job,
                        "stream": self._name,
                        "level": "",
                        "logger": "",
                        "text": _sendable(piece),
                    }
                )


def _sendable(text: str) -> str:
    """A text without lone surrogates, which no frame can hold."""
    return text.encode("utf-8", "replace").decode()


class _Bytes(io.BufferedIOBase):
    """The stream for bytes inside a worker, which are decoded as text; a character may arrive in two pieces."""

    def __init__(self, text: Captured) -> None:
        super().__init__()
        self._text = text
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._text.fileno()

    def write(self, piece: Any) -> int:
        content = bytes(piece)
        self._text.write(self._decode(content))
        return len(content)

    def flush(self) -> None:
        self._text.flush()


class _Formatter(logging.Formatter):
    """Formats exceptions by the policy: the text of a foreign exception is not the capability's own output."""

    def format(self, record: logging.LogRecord) -> str:
        # Another handler may have left the whole traceback on the record.
        cached, record.exc_text = record.exc_text, None
        try:
            return super().format(record)
        finally:
            record.exc_text = cached

    def formatException(self, ei: Any) -> str:  # noqa: N802  (the name that logging calls)
        return traceback_text(ei[1])


class FrameLog(logging.Handler):
    """Sends log records with their level, their logger and the job they belong to."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line
        self.setFormatter(_Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        # A failure is reported by logging, and never reaches the caller.
        attempt(lambda: self._send(record), None, lambda _error: self.handleError(record))

    def _send(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        self._line.send(
            {
                "type": "log",
                "job": _job(),
                "stream": "log",
                "level": record.levelname,
                "logger": record.name,
                "text": _sendable(text)[:_LONGEST],
            }
        )


def _print_thread_failure(args: threading.ExceptHookArgs) -> None:
    """Print the exception that ended a thread, as Python does, by the policy."""
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        name = "" if args.thread is None else args.thread.name
        print(f"Exception in thread {name}:\n{traceback_text(args.exc_value)}", file=sys.stderr)


def capture(line: Line) -> tuple[Captured, Captured]:
    """Replace Python's streams and its report of failed threads, and add a handler to the root logger."""
    streams = (Captured(line, "stdout"), Captured(line, "stderr"))
    sys.stdout, sys.stderr = streams
    threading.excepthook = _print_thread_failure
    root = logging.getLogger()
    root.addHandler(FrameLog(line))
    if root.level == logging.WARNING:
        root.setLevel(logging.INFO)
    return streams


def release() -> None:
    """Restore Python's streams, which are pipes that the host reads."""
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    threading.excepthook = threading.__excepthook__
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, FrameLog):
            root.removeHandler(handler)
