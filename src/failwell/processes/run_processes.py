"""The processes of runs: what all scripts of one run share, and the guardian of all scripts of this process."""

import atexit
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from subprocess import DEVNULL, Popen
from threading import Lock

from failwell.processes import tree
from failwell.processes.guardian import IGNORED
from failwell.processes.script import ScriptProcess

_log = logging.getLogger("failwell.processes")
_FOLDER = str(Path(tree.__file__).parents[1])
_GUARDIAN = (
    "import sys; sys.path.append(sys.argv[1]); from processes.guardian import guard_scripts;"
    " guard_scripts(*sys.argv[2:])"
)
_UNGUARDED = "scripts will not be ended if this process is killed: %s"
_MOST_STARTS = 3
"""How often a guardian is started; one that ends again and again cannot run here."""


class Guardian:
    """Host side of the guardian that ends the scripts of this process if this process dies.

    It is started with the first script and serves all runs until the process ends. Orders are written without
    waiting for it, so it may still be starting while scripts run.
    """

    def __init__(self) -> None:
        """Start it.

        Raises:
            OSError: the system cannot start another process.
        """
        self.host = os.getpid()
        self.mark = os.urandom(8).hex()
        self._entries: dict[str, str] = {}
        self._runs = 0
        self._starts = 0
        self._socket: socket.socket | None = None
        self._lock = Lock()
        self._start()

    def next_mark(self) -> str:
        """The mark of the next run; the marks of its scripts begin with it and a dot."""
        self._runs += 1
        return f"{self.mark}.{self._runs}"

    def check(self) -> None:
        """Start it again if it was killed, before there is something that only it would end."""
        with self._lock:
            if self._socket is not None and self.host == os.getpid() and self._process.poll() is not None:
                self._restart()

    def watch(self, pid: int, started: int | None = None) -> None:
        """End a process if this one dies; without a start time it is the leader of a group."""
        self._add(str(pid), f"watch {pid}" if started is None else f"watch {pid} {started}")

    def remove(self, folder: Path) -> None:
        """Remove a folder if this process dies, after everything that uses it has ended."""
        name = os.fsencode(folder).hex()
        self._add(name, f"remove {name}")

    def forget(self, *subjects: int | Path) -> None:
        """Take back `watch` or `remove`: the process has ended, the folder is gone."""
        for subject in subjects:
            name = str(subject) if isinstance(subject, int) else os.fsencode(subject).hex()
            if self._entries.pop(name, None) is not None:
                self._send(f"forget {name}")

    async def end(self, mark: str, roots: Mapping[int, int | None], grace: float) -> set[int] | None:
        """Let it end what is left of a run. Returns the processes that did not end; `None` if it cannot tell."""
        import asyncio

        near, far = os.pipe()
        try:
            words = [f"{pid}:{started or 0}" for pid, started in roots.items()]
            self._send(" ".join(("end", mark, str(grace), *words)), far)
        finally:
            os.close(far)
        loop, answer, received = asyncio.get_running_loop(), bytearray(), asyncio.Event()

        def read() -> None:
            piece = os.read(near, 65_536)
            answer.extend(piece)
            # Without an answer it has ended, or never got the order.
            if not piece or answer.endswith(b"\n"):
                received.set()

        loop.add_reader(near, read)
        try:
            async with asyncio.timeout(grace + 2 * tree.CONFIRM):
                await received.wait()
        except TimeoutError:
            return None
        finally:
            loop.remove_reader(near)
            os.close(near)
        return set(map(int, answer.split())) if answer.endswith(b"\n") else None

    def close(self) -> None:
        """End it, unless something is left that it must end."""
        if self.host == os.getpid() and not self._entries:
            self._stop()

    def _add(self, name: str, order: str) -> None:
        self._entries[name] = order
        self._send(order)

    def _send(self, order: str, *pipes: int) -> None:
        with self._lock:
            if self._socket is None or self.host != os.getpid():
                return
            try:
                socket.send_fds(self._socket, [f"{order}\n".encode()], pipes)
            except OSError:
                # It was killed, or has been stopped for so long that there is no more room.
                self._restart()

    def _start(self) -> None:
        if self._starts >= _MOST_STARTS or not sys.executable or hasattr(sys, "frozen"):
            _log.warning(_UNGUARDED, "no guardian can run here")
            return
        self._starts += 1
        orders, own = socket.socketpair()
        own.settimeout(0.0)
        # A mark in its environment would make the guardian part of what it ends.
        env = {name: value for name, value in os.environ.items() if name != tree.MARKER}
        # Inherited by the guardian, so that none of these can end it before it ignores them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
        try:
            with ExitStack() as unused:
                # Whatever comes between, no descriptor stays open.
                unused.callback(own.close)
                for order in self._entries.values():
                    own.send(f"{order}\n".encode())
                self._process = Popen(  # noqa: S603  (our own text, started by its full path)
                    [sys.executable, "-I", "-S", "-c", _GUARDIAN, _FOLDER, f"{self.mark}.", str(self.host)],
                    stdin=orders.fileno(),
                    stdout=DEVNULL,
                    stderr=DEVNULL,
                    cwd="/",
                    env=env,
                    start_new_session=True,
                )
                unused.pop_all()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            orders.close()
        self._socket = own

    def _restart(self) -> None:
        self._stop()
        try:
            self._start()
        except OSError as error:
            # The scripts that run would end with an error; unguarded they can still succeed.
            _log.warning(_UNGUARDED, error.strerror or "no reason given")

    def _stop(self) -> None:
        # Killed and not asked: it may be stopped or still starting.
        if self._socket is not None:
            self._process.kill()
            self._process.wait()
            self._socket.close()
            self._socket = None


_guardians: dict[int, Guardian] = {}


def _guardian() -> Guardian:
    """The guardian of this process; one that a fork inherited serves another host."""
    guardian = _guardians.get(os.getpid())
    if guardian is None:
        guardian = _guardians[os.getpid()] = Guardian()
        atexit.register(guardian.close)
    return guardian


_SCRATCH = "scratch-"


class RunProcesses:
    """The processes of one run. Created with its first script, closed when the run ends.

    What a script leaves running in the background may be used by the next one; all of it ends
    with the run.
    """

    def __init__(self, run_folder: Path) -> None:
        self.run_folder = run_folder
        _end_leftovers(run_folder)
        self._guardian = _guardian()
        self._mark = self._guardian.next_mark()
        self.scratch = run_folder / f"{_SCRATCH}{self._mark}-{_host(os.getpid())}"
        self.scratch.mkdir(mode=0o700, parents=True)
        self._guardian.remove(self.scratch)
        self._count = 0
        self._leftovers: dict[int, int | None] = {}
        self._unfinished_output: list[ScriptProcess] = []

    def next_name(self) -> str:
        """A unique name and mark for the next script."""
        self._guardian.check()
        self._count += 1
        return f"{self._mark}.{self._count}"

    def watch(self, process: ScriptProcess) -> None:
        """Let the guardian end the process if the host dies."""
        self._guardian.watch(process.pid)

    def watch_group(self, leader: int) -> None:
        """Let the guardian end a process group that somebody else started, if the host dies."""
        self._guardian.watch(leader)

    def forget_group(self, leader: int) -> None:
        """Take `watch_group` back: the group has ended."""
        self._guardian.forget(leader)

    def ended(self, process: ScriptProcess, name: str) -> int:
        """Record the end of a process. Returns its exit code; what it left running is ended with the run."""
        code = process.reap()
        try:
            os.killpg(process.pid, 0)
        except (ProcessLookupError, PermissionError):
            pass
        else:
            self._remember(process.pid, name)
        if process.is_heard:
            process.leave()
            self._unfinished_output.append(process)
        self._guardian.forget(process.pid)
        return code

    def stopped(self, process: ScriptProcess) -> None:
        """Record that a process and its tree were stopped."""
        self._guardian.forget(process.pid)
        process.reap()

    async def close(self, grace: float) -> set[int]:
        """Stop what is left of the run and remove its files. Returns the processes that did not end.

        The guardian looks for them: only a scan of all processes finds those that left their group and their parent.
        """
        try:
            left = await self._guardian.end(f"{self._mark}.", self._leftovers, grace)
            if left is None:
                left = await tree.stop(f"{self._mark}.", roots=[*self._leftovers.items()], grace=grace)
            return left
        finally:
            self._clean()

    def clean(self, name: str) -> None:
        """Remove the files of one script."""
        for entry in os.scandir(self.scratch):
            if entry.name.startswith(f"{name}."):
                Path(entry.path).unlink(missing_ok=True)

    def _remember(self, group: int, name: str) -> None:
        if not tree.has_proc():
            self._add_leftover(group, None)
            return
        for pid in tree.tree(name, groups=[group]):
            process = tree.look(pid)
            if process is not None:
                self._add_leftover(pid, process.started)

    def _add_leftover(self, pid: int, started: int | None) -> None:
        self._leftovers[pid] = started
        self._guardian.watch(pid, started)

    def _clean(self) -> None:
        for process in self._unfinished_output:
            process.release()
        self._unfinished_output.clear()
        _remove(self.scratch)
        self._guardian.forget(*self._leftovers, self.scratch)


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
        # A script created folders in it. The module is slow to import and rarely needed.
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)


def _host(pid: int) -> str:
    """A name for a process that no later process with the same number has."""
    process = tree.look(pid)
    return f"{pid}-{0 if process is None else process.started}"
