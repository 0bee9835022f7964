"""What the steps of a run printed, for Python callers and commands, whichever process drives the run."""

from collections.abc import Generator, Iterator, Mapping
from heapq import merge
from typing import TYPE_CHECKING, Any

from failwell.store.folder import run_folder
from failwell.store.output_log import LogEntry, OutputReader, entry_of, follow_output, recorded_output

if TYPE_CHECKING:
    from failwell.jobs.store.sqlite import SqliteJobs
    from failwell.store.sqlite.run_store import SqliteStore


def run_output(
    store: "SqliteStore", run: str, *, step: str | None = None, follow: bool = False
) -> Iterator[LogEntry]:
    """What the steps of a run printed, in order.

    Args:
        store: The journal.
        run: The run.
        step: Only this step, with everything below it: a name, or a path as `runs show` prints it.
        follow: Whether to go on until the run ends or no process drives it.
    """
    for output in _output(store, run, follow=follow):
        if step is None or is_step(output, step):
            yield output


def is_step(output: LogEntry, step: str) -> bool:
    """Whether `step` names the step that printed this, a step above it, or its item."""
    path = output.path
    return not path or step in (path, output.node) or path.startswith((f"{step}/", f"{step}["))


def _output(store: "SqliteStore", run: str, *, follow: bool) -> Generator[LogEntry]:
    folder = run_folder(store.folder, run)
    jobs = _JobLines(store, run)

    def is_over() -> bool:
        return store.run(run).ended is not None or not store.is_locked(run)

    try:
        if follow and not is_over():
            yield from follow_output(folder, is_over, jobs.read)
            return
        reader = OutputReader(folder)
        try:
            entries = reader.read() if reader.exists else recorded_output(store.read(run))
            yield from merge(entries, jobs.read(), key=lambda entry: entry.at)
        finally:
            reader.close()
    finally:
        jobs.close()


class _JobLines:
    """What the `job` steps of a run printed: the queue stores the last lines of each job."""

    def __init__(self, store: "SqliteStore", run: str) -> None:
        self._store, self._run = store, run
        self._after = -1
        self._steps: dict[str, Mapping[str, Any]] = {}
        self._last: dict[str, int] = {}
        self._jobs: SqliteJobs | None = None

    def read(self) -> list[LogEntry]:
        """The lines that were added since the last call, the oldest first."""
        for event in self._store.read(self._run, self._after):
            self._after = event.seq
            if event.type == "node:started" and event.data.get("type") == "job":
                self._steps[str(event.data.get("key"))] = event.data
        entries = [entry for key, step in self._steps.items() for entry in self._lines(key, step)]
        return sorted(entries, key=lambda entry: entry.at)

    def close(self) -> None:
        """Close the queue's store."""
        if self._jobs is not None:
            self._jobs.close()

    def _lines(self, key: str, step: Mapping[str, Any]) -> Iterator[LogEntry]:
        from failwell.jobs.output import read_lines
        from failwell.jobs.store.sqlite import SqliteJobs

        self._jobs = self._jobs or SqliteJobs(self._store.folder)
        job = self._jobs.find_by_key(key)
        if job is None:
            return
        last = self._last.get(job.id, 0)
        for line in read_lines(self._jobs.folder, job.id, last):
            if line.n > last + 1:
                yield entry_of(step, line.at, gap=f"{line.n - last - 1} earlier lines were not kept")
            last = line.n
            level = f"{line.level.lower()}: " if line.stream == "log" else ""
            stream = "stdout" if line.stream == "stdout" else "stderr"
            yield entry_of(step, line.at, stream=stream, text=f"{level}{line.text}\n")
        self._last[job.id] = last
