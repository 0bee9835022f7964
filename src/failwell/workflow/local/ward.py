"""What all scripts of one run share: a private folder, a mark, and a guardian over their processes."""

import os
from pathlib import Path

from failwell.workflow.local import trees
from failwell.workflow.local.guardian import Guardian
from failwell.workflow.local.process import Process, end_tree

_SCRATCH = "scratch-"


class RunProcesses:
    """The processes of one run. Made with its first script, closed when the run is over.

    What a script leaves running in the background may be used by the next one; all of it ends
    with the run.
    """

    def __init__(self, run_folder: Path) -> None:
        self.run_folder = run_folder
        _bury(run_folder)
        self._mark = os.urandom(8).hex()
        self.scratch = run_folder / f"{_SCRATCH}{self._mark}-{_host(os.getpid())}"
        self.scratch.mkdir(mode=0o700, parents=True)
        self._count = 0
        self._guardian = Guardian(f"{self._mark}.", self.scratch)
        self._slots: dict[int, int] = {}
        self._left: list[Process] = []

    def next_name(self) -> str:
        """A name and mark for the next script, used by no other."""
        self._count += 1
        return f"{self._mark}.{self._count}"

    def watch(self, process: Process) -> None:
        """From now on the process dies with its host."""
        self._slots[process.pid] = self._guardian.add(process.pid)

    def ended(self, process: Process, name: str) -> int:
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

    def stopped(self, process: Process) -> None:
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
        if not trees.has_proc():
            self._guardian.add(group)
            return
        for pid in trees.tree(name, groups=[group]):
            seen = trees.look(pid)
            if seen is not None:
                self._guardian.add(pid, seen.started)

    def _clean(self) -> None:
        for process in self._left:
            process.release()
        self._left.clear()
        self._guardian.dismiss()
        _remove(self.scratch)


def _bury(run_folder: Path) -> None:
    """End what an earlier host of this run left behind, if its guardian died with it.

    By their mark alone: numbers that were written down before a restart of the machine are others' now.
    A host that is alive is left in peace; it looks after its own.
    """
    for old in run_folder.glob(f"{_SCRATCH}*"):
        mark, _, host = old.name.removeprefix(_SCRATCH).partition("-")
        if not trees.has_proc() or host == _host(int(host.partition("-")[0])):
            continue
        trees.sweep(f"{mark}.", (), patience=5.0)
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
    seen = trees.look(pid)
    return f"{pid}-{0 if seen is None else seen.started}"
