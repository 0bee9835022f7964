"""A small process that outlives its host for a moment, to end what the host had started.

Nobody can clean up after `kill -9` but somebody else. The guardian is a shell that reads from a
pipe: a word means that the run ended well; an end without a word means that the host is gone, and
then it turns into `trees.py`, which ends every process of the run. It costs a run a millisecond.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired

from failwell.workflow.local import trees

_SCRIPT = """\
trap '' HUP INT QUIT TERM
IFS= read -r word && exit 0
exec "$@"
"""
_SHELL = "/bin/sh"
"""Where there is none, an interpreter waits in its place; it takes longer to start and more memory."""
_PATIENCE = 5.0


class Guardian:
    """Watches over the processes of one run. `mark` stands in the environment of each of them."""

    def __init__(self, mark: str, folder: Path) -> None:
        self._table = folder / "running"
        self._slots = os.open(self._table, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._free: list[int] = []
        self._used = 0
        ear, self._pipe = os.pipe()
        end_all = [sys.executable, "-I", "-S", trees.__file__, mark, str(self._table)]
        has_shell = os.access(_SHELL, os.X_OK)
        call = [_SHELL, "-c", _SCRIPT, "guardian", *end_all] if has_shell else [*end_all, "guardian"]
        try:
            # A clean environment: a mark in it would make the guardian part of what it guards against.
            self._process = Popen(  # noqa: S603  (our own text, started by its full path)
                call, stdin=ear, stdout=DEVNULL, stderr=DEVNULL, cwd="/", env={}, start_new_session=True
            )
        except BaseException:
            # Whatever came between, no handle stays open for nobody.
            os.close(self._pipe)
            os.close(self._slots)
            raise
        finally:
            os.close(ear)
        _open_pipes[self._pipe] = None

    def add(self, pid: int, started: int | None = None) -> int:
        """Write down a process that must not outlive the host; the number is for `remove`."""
        slot = self._free.pop() if self._free else self._used
        self._used = max(self._used, slot + 1)
        entry = f"{pid}\n" if started is None else f"{pid} {started}\n"
        os.pwrite(self._slots, entry.encode().ljust(trees.SLOT, b"\0"), slot * trees.SLOT)
        return slot

    def remove(self, slot: int) -> None:
        """Strike out a process that has ended."""
        os.pwrite(self._slots, b"\0" * trees.SLOT, slot * trees.SLOT)
        self._free.append(slot)

    def entries(self) -> list[tuple[int, int | None]]:
        """Everything that is written down."""
        return trees.read_table(str(self._table))

    def dismiss(self) -> None:
        """The run is over and nothing of it is left: let the guardian go."""
        if _open_pipes.pop(self._pipe, 0) == 0:
            return
        try:
            os.write(self._pipe, b"done\n")
        except BrokenPipeError:
            # Somebody killed it; there is nobody to tell.
            pass
        finally:
            os.close(self._pipe)
            os.close(self._slots)
        try:
            self._process.wait(_PATIENCE)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._table.unlink(missing_ok=True)


_open_pipes: dict[int, None] = {}


def _close_in_child() -> None:
    # A fork of the host would keep the pipe open after the host's death, and nobody would notice it.
    for pipe in _pipes():
        os.close(pipe)


def _pipes() -> Iterator[int]:
    while _open_pipes:
        yield _open_pipes.popitem()[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
