"""What all scripts of one run share: a private folder, a mark, and a guardian over their processes."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired

from failwell.processes import tree
from failwell.processes.script import ScriptProcess, end_tree

_SCRIPT = """\
trap '' HUP INT QUIT TERM
IFS= read -r word && exit 0
exec "$@"
"""
_SHELL = "/bin/sh"
"""Where there is none, an interpreter waits in its place; it takes longer to start and more memory."""
_PATIENCE = 5.0


class RunGuardian:
    """Watches over the processes of one run. `mark` stands in the environment of each of them."""

    def __init__(self, mark: str, folder: Path) -> None:
        self._table = folder / "running"
        self._slots = os.open(self._table, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._free: list[int] = []
        self._used = 0
        ear, self._pipe = os.pipe()
        end_all = [sys.executable, "-I", "-S", tree.__file__, mark, str(self._table)]
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
        os.pwrite(self._slots, entry.encode().ljust(tree.SLOT, b"\0"), slot * tree.SLOT)
        return slot

    def remove(self, slot: int) -> None:
        """Strike out a process that has ended."""
        os.pwrite(self._slots, b"\0" * tree.SLOT, slot * tree.SLOT)
        self._free.append(slot)

    def entries(self) -> list[tuple[int, int | None]]:
        """Everything that is written down."""
        return tree.read_table(str(self._table))

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


_SCRATCH = "scratch-"


class RunProcesses:
    """The processes of one run. Made with its first script, closed when the run is over.

    What a script leaves running in the background may be used by the next one; all of it ends
    with the run.
    """

    def __init__(self, run_folder: Path) -> None:
        self.run_folder = run_folder
        _end_leftovers(run_folder)
        self._mark = os.urandom(8).hex()
        self.scratch = run_folder / f"{_SCRATCH}{self._mark}-{_host(os.getpid())}"
        self.scratch.mkdir(mode=0o700, parents=True)
        self._count = 0
        self._guardian = RunGuardian(f"{self._mark}.", self.scratch)
        self._slots: dict[int, int] = {}
        self._left: list[ScriptProcess] = []

    def next_name(self) -> str:
        """A name and mark for the next script, used by no other."""
        self._count += 1
        return f"{self._mark}.{self._count}"

    def watch(self, process: ScriptProcess) -> None:
        """From now on the process dies with its host."""
        self._slots[process.pid] = self._guardian.add(process.pid)

    def ended(self, process: ScriptProcess, name: str) -> int:
        """The process is over by itself: its exit code. Whatever it left behind is remembered."""
        code = process.reap()
        try:
            os.killpg(process.pid, 0)
        except (ProcessLookupError, PermissionError):
            pass
        else:
            self._remember(process.pid, name)
        if process.is_heard:
            process.leave()
            self._left.append(process)
        self._guardian.remove(self._slots.pop(process.pid))
        return code

    def stopped(self, process: ScriptProcess) -> None:
        """The process and its tree were ended."""
        self._guardian.remove(self._slots.pop(process.pid))
        process.reap()

    async def close(self, grace: float) -> set[int]:
        """End what is left of the run and remove its files; processes that would not end come back."""
        try:
            return await end_tree(f"{self._mark}.", roots=self._guardian.entries(), grace=grace)
        finally:
            self._clean()

    def clean(self, name: str) -> None:
        """Remove the files of one script, unfinished ones too."""
        for entry in os.scandir(self.scratch):
            if entry.name.startswith(f"{name}."):
                Path(entry.path).unlink(missing_ok=True)

    def _remember(self, group: int, name: str) -> None:
        if not tree.has_proc():
            self._guardian.add(group)
            return
        for pid in tree.tree(name, groups=[group]):
            seen = tree.look(pid)
            if seen is not None:
                self._guardian.add(pid, seen.started)

    def _clean(self) -> None:
        for process in self._left:
            process.release()
        self._left.clear()
        self._guardian.dismiss()
        _remove(self.scratch)


def _end_leftovers(run_folder: Path) -> None:
    """End processes that an earlier host of this run left running, if its guardian died with it.

    Processes are found by their mark alone: after a restart of the machine, recorded process ids belong to
    other processes. Processes of a host that is alive are not touched.
    """
    for old in run_folder.glob(f"{_SCRATCH}*"):
        mark, _, host = old.name.removeprefix(_SCRATCH).partition("-")
        if not tree.has_proc() or host == _host(int(host.partition("-")[0])):
            continue
        tree.sweep(f"{mark}.", patience=5.0)
        _remove(old)


def _remove(folder: Path) -> None:
    try:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    except OSError:
        # A script made more than files in it. The module is slow to load, and hardly ever needed.
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)


def _host(pid: int) -> str:
    """A name for a process that no later one with the same number has."""
    seen = tree.look(pid)
    return f"{pid}-{0 if seen is None else seen.started}"
