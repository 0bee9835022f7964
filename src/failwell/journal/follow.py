"""Following a run inside an event loop: what is recorded, and what comes, without a thread that waits."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

from failwell.journal.event import Event
from failwell.journal.folder import run_folder
from failwell.journal.store import Store
from failwell.journal.watch import Watch


async def follow(
    store: Store, state: Path, run: str, after: int = -1, give_up: Callable[[], bool] | None = None
) -> AsyncIterator[Event]:
    """The events above `after`, and those to come, up to the terminal one.

    As `Store.tail`, for stores whose runs have folders under `state`.
    """
    with Watch(run_folder(state, run)) as watch:
        while True:
            ended = store.run(run).ended is not None
            for event in store.read(run, after):
                after = event.seq
                yield event
            if ended:
                return
            if not await _woken(watch) and give_up is not None and give_up():
                return


async def _woken(watch: Watch) -> bool:
    from asyncio import Future, get_running_loop, sleep, wait

    descriptor = watch.fileno()
    if descriptor is None:
        await sleep(watch.patience)
        return False
    loop = get_running_loop()
    bell: Future[None] = loop.create_future()

    def ring() -> None:
        if not bell.done():
            bell.set_result(None)

    loop.add_reader(descriptor, ring)
    try:
        done, _ = await wait([bell], timeout=watch.patience)
    finally:
        loop.remove_reader(descriptor)
    watch.drain()
    return bool(done)
