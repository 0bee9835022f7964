"""Sends what the capability prints and logs as frames that name the job.

Only Python's streams are replaced. What C code writes to the descriptors goes to pipes that the host reads, so
it is never lost and never mixes with frames.
"""

import io
import logging
import sys
import threading
from codecs import getincrementaldecoder
from typing import Any

from ...processes.wire import Line
from .author import current
from .failure_report import attempt, traceback_text

_LONGEST = 8000


def _job() -> str | None:
    call = current.get()
    return None if call is None else call.job


class Captured(io.TextIOBase):
    """Stdout or stderr inside a worker: a text stream that sends whole lines. Of a line that is redrawn with carriage returns, it sends the last state."""

    def __init__(self, line: Line, name: str) -> None:
        super().__init__()
        self._line = line
        self._name = name
        self._unfinished: dict[str | None, str] = {}
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
        if len(rest) > _LONGEST:
            self._send(job, rest)
        elif rest:
            # Only the text after the last carriage return is visible on a terminal.
            head, cr, tail = rest.rpartition("\r")
            self._unfinished[job] = (
                tail if cr and tail else rest if not cr else head.rpartition("\r")[2] + "\r"
            )
        return len(text)

    def reconfigure(self, **_options: object) -> None:
        """Do nothing: the stream is UTF-8 and line-buffered already, which is what programs ask for."""

    def flush(self) -> None:
        """Do nothing: an unfinished line is sent by `finish`."""

    def finish(self, job: str | None) -> None:
        """Send the unfinished last line of a call that ended."""
        rest = self._unfinished.pop(job, "")
        if rest:
            self._send(job, rest)

    def _send(self, job: str | None, text: str) -> None:
        visible = text.rstrip("\r").rpartition("\r")[2]
        if visible:
            self._line.send(
                {
                    "type": "log",
                    "job": job,
                    "stream": self._name,
                    "level": "",
                    "logger": "",
                    "text": visible.encode("utf-8", "replace").decode()[:_LONGEST],
                }
            )


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
                "text": text.encode("utf-8", "replace").decode()[:_LONGEST],
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
