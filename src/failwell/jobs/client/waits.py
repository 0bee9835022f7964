"""Waiting for what other processes store: in a client by one thread for all callers, in a host on its event loop."""

import asyncio
from collections.abc import Container, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

from failwell.adapters.describe import describe
from failwell.errors.fault import Fault
from failwell.errors.faults import Validation
from failwell.jobs.faults import UnknownJob
from failwell.jobs.job import Job
from failwell.jobs.store.sqlite import JobStore
from failwell.store.event import JOB_TERMINAL
from failwell.store.watch import Watch

_LINGER = 5.0
"""Seconds that the thread stays after the last wait, so that the next one finds it running."""
_QUICK = 0.002
"""Seconds. A look at the store that takes longer is followed by a pause of the same length."""
_FEW = 32
"""So many jobs are looked up after each commit. If there are more, the new events say which of them have ended."""


class ClientClosed(Validation, RuntimeError, kind="validation.input_invalid"):
    """A client of the queue was used after it was closed."""

    def summary(self) -> str:
        return "this client is closed; create another one"


class Waits:
    """The callers that wait for the end of a job, or for the next commit.

    Each caller gets its own future, and takes it back with `remove` when it stops waiting.
    """

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._lock = Lock()
        self._ends: dict[str, list[Future[Job]]] = {}
        self._commits: list[Future[None]] = []
        self._watch: Watch | None = None
        self._thread: Thread | None = None
        self._is_woken = False
        """Whether the thread will look again anyway."""
        self._closing = Event()
        self._last_event = 0
        self._known: set[str] = set()
        """Jobs that were looked up when `_last_event` was the latest event, or later."""

    def end_of(self, job: str) -> "Future[Job]":
        """A future for the job once it has ended. It fails with `UnknownJob` if there is no such job."""
        future: Future[Job] = _new_future()
        with self._lock:
            self._ends.setdefault(job, []).append(future)
            self._start(is_look_due=True)
        return future

    def next_commit(self) -> "Future[None]":
        """A future for the next commit of any process. It may complete without one."""
        future: Future[None] = _new_future()
        with self._lock:
            self._commits.append(future)
            self._start(is_look_due=False)
        return future

    def remove(self, future: "Future[Any]", job: str | None = None) -> None:
        """Forget a future that is no longer awaited; `job` is that of `end_of`."""
        with self._lock:
            futures: list[Any] = self._commits if job is None else self._ends.get(job, [])
            if future in futures:
                futures.remove(future)
            if job is not None and not futures:
                self._ends.pop(job, None)

    def close(self) -> None:
        """End the thread. Every wait that is left raises `ClientClosed`."""
        with self._lock:
            self._closing.set()
            thread = self._thread
            if self._watch is not None:
                self._watch.wake()
        if thread is not None:
            thread.join()

    def _start(self, *, is_look_due: bool) -> None:
        """Start the thread, or let it look at the store. The caller holds the lock."""
        if self._closing.is_set():
            raise ClientClosed
        if self._thread is None:
            self._thread = Thread(target=self._run, name="failwell-jobs-client", daemon=True)
            self._thread.start()
        elif is_look_due and self._watch is not None and not self._is_woken:
            self._is_woken = True
            self._watch.wake()

    # -------------------------------------------------------------- the thread

    def _run(self) -> None:
        with self._store.commit_watch() as watch:
            last_use, was_woken = monotonic(), False
            while True:
                with self._lock:
                    self._watch, self._is_woken = watch, False
                    jobs, is_used = list(self._ends), bool(self._ends or self._commits)
                    now = monotonic()
                    last_use = now if is_used else last_use
                    if self._closing.is_set() or now - last_use > _LINGER:
                        # From here on, a new wait starts another thread.
                        self._watch = self._thread = None
                        break
                # In this order: a commit after the look wakes the watch.
                self._look(jobs, is_complete=not was_woken)
                if monotonic() - now > _QUICK:
                    self._closing.wait(monotonic() - now)
                was_woken = watch.wait(watch.interval)
                self._tell_of_commit()
        if self._closing.is_set():
            self._fail(list(self._ends), ClientClosed())
            self._tell_of_commit()

    def _look(self, jobs: list[str], *, is_complete: bool) -> None:
        """Complete the futures of jobs that have ended."""
        try:
            if len(jobs) <= _FEW:
                self._known.clear()
            else:
                jobs = self._candidates(jobs, is_complete=is_complete or not self._known)
            states = self._store.states(jobs)
            ended = [job for job in jobs if job not in states or states[job].is_final]
            records = {job: self._store.find(job) for job in ended}
        except Fault as fault:
            # A store that is unavailable for a moment is read again within a second.
            self._known.clear()
            if not describe(fault).retryable:
                self._fail(jobs, fault)
            return
        except Exception as error:  # noqa: BLE001  (the callers that wait get it)
            self._fail(jobs, error)
            return
        for job, record in records.items():
            for future in self._take(job):
                if record is None:
                    future.set_exception(UnknownJob(job=job))
                else:
                    future.set_result(record)

    def _candidates(self, jobs: list[str], *, is_complete: bool) -> list[str]:
        """The jobs that may have ended: those with an event that says so, and those that were not looked up yet."""
        ended: set[str] = set()
        if is_complete:
            self._last_event = self._store.last_event()
            self._known.clear()
        else:
            for event in self._store.events(self._last_event):
                self._last_event = event.seq
                if event.type in JOB_TERMINAL:
                    ended.add(event.job)
        candidates = [job for job in jobs if job in ended or job not in self._known]
        self._known.update(candidates)
        return candidates

    def _take(self, job: str) -> "list[Future[Job]]":
        with self._lock:
            return self._ends.pop(job, [])

    def _fail(self, jobs: list[str], error: Exception) -> None:
        for job in jobs:
            for future in self._take(job):
                future.set_exception(error)

    def _tell_of_commit(self) -> None:
        with self._lock:
            commits, self._commits = self._commits, []
        for commit in commits:
            commit.set_result(None)


def _new_future() -> "Future[Any]":
    """A future that cannot be cancelled, so that completing it never fails."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


_REST = 0.01
"""Seconds between two reads of the store, however often other processes write to it."""


class StoreChanges:
    """The commits of all processes. The store is watched only while a task waits for them."""

    def __init__(self, store: JobStore, here: Container[str]) -> None:
        """Watch nothing yet; `here` are the jobs of this host."""
        self._store = store
        self._here = here
        self._loop = asyncio.get_running_loop()
        self._watch: Watch | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = 0
        self._next: asyncio.Future[None] = self._loop.create_future()
        self._ends: dict[str, asyncio.Future[None]] = {}
        """Job of another host, or of none → done when it has ended or this host has it."""

    async def end_of(self, job: str) -> None:
        """Wait until a job that this host does not have has ended or is deleted, or this host has it."""
        with self._watched():
            if job not in self._ends:
                self._ends[job] = self._loop.create_future()
            end = self._ends[job]
            self._check([job])
            await asyncio.wait([end])

    async def next(self) -> None:
        """Wait for the next commit of any process, for about a second at most."""
        with self._watched():
            await asyncio.wait([self._next])

    def end(self) -> None:
        """Let all tasks look again."""
        self._look([*self._ends])
        for job in [*self._ends]:
            self._ends.pop(job).set_result(None)

    @contextmanager
    def _watched(self) -> Generator[None]:
        self._tasks += 1
        if self._watch is None:
            self._watch = self._store.commit_watch().__enter__()
            number = self._watch.fileno()
            if number is not None:
                self._loop.add_reader(number, self._changed)
            self._timer = self._loop.call_later(self._watch.interval, self._rang)
        try:
            yield
        finally:
            self._tasks -= 1
            if not self._tasks:
                self._close()

    def _close(self) -> None:
        assert self._watch is not None
        assert self._timer is not None
        number = self._watch.fileno()
        if number is not None:
            self._loop.remove_reader(number)
        self._watch.__exit__()
        self._timer.cancel()
        self._watch = self._timer = None
        self._ends.clear()

    def _changed(self) -> None:
        assert self._watch is not None
        assert self._timer is not None
        self._watch.drain()
        soon = self._loop.time() + _REST
        if self._timer.when() > soon:
            self._timer.cancel()
            self._timer = self._loop.call_at(soon, self._rang)

    def _rang(self) -> None:
        assert self._watch is not None
        # A wake-up may be lost.
        self._timer = self._loop.call_later(self._watch.interval, self._rang)
        self._look([*self._ends])

    def _look(self, jobs: list[str]) -> None:
        self._check(jobs)
        self._next.set_result(None)
        self._next = self._loop.create_future()

    def _check(self, jobs: list[str]) -> None:
        if not jobs:
            return
        try:
            states = self._store.states(jobs)
        except Fault:
            # The store is unavailable for a moment.
            return
        for job in jobs:
            state = states.get(job)
            if state is None or state.is_final or job in self._here:
                self._ends.pop(job).set_result(None)
