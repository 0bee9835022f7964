"""What the steps of a recorded run printed, whichever process drives it."""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from failwell.journal.folder import run_folder
from failwell.journal.output_log import LogEntry, OutputReader, follow_output, recorded_output

if TYPE_CHECKING:
    from failwell.journal.sqlite.run_store import SqliteStore


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

    def is_over() -> bool:
        return store.run(run).ended is not None or not store.is_locked(run)

    if follow and not is_over():
        yield from follow_output(folder, is_over)
        return
    reader = OutputReader(folder)
    try:
        yield from reader.read() if reader.exists else recorded_output(store.read(run))
    finally:
        reader.close()
