"""Many items, a few at a time, in order.

A slow item does not delay the others: the next item starts as soon as one ends. Items are taken from their iterable
when they start, so no more of them exist at once than are being worked on.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sized
from contextvars import copy_context
from typing import Any, Generic, Literal, TypeVar, overload

from failwell.adapters.describe import describe
from failwell.adapters.replies import read_usage
from failwell.calls.argument_checks import check_count
from failwell.calls.cancel import current_scope
from failwell.calls.cost import usage_in
from failwell.calls.suppress import call_hook, catch
from failwell.errors.context import scene
from failwell.errors.report import ErrorReport

T = TypeVar("T")


class Partial(Generic[T]):
    """The outcome of a batch, item by item. Errors never pass for results.

    Results and errors are stored by the position of their item. An item with neither was not started.
    """

    __slots__ = ("errors", "raised", "results", "total", "usage")

    def __init__(
        self,
        total: int,
        results: Mapping[int, T],
        errors: Mapping[int, ErrorReport],
        raised: Mapping[int, Exception] | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> None:
        self.total = total
        self.results: dict[int, T] = dict(sorted(results.items()))
        self.errors: dict[int, ErrorReport] = dict(sorted(errors.items()))
        self.raised: dict[int, Exception] = dict(raised or {})
        """The exceptions behind the errors, in this process only."""
        self.usage: dict[str, int] = dict(usage or {})
        """Tokens of all items that reported some, failed ones included."""

    @property
    def complete(self) -> bool:
        """Whether every item worked."""
        return len(self.results) == self.total

    @property
    def cursor(self) -> list[int]:
        """The places still to be done: failed or not started. Hand it to `gather(only=...)` to resume."""
        return [place for place in range(self.total) if place not in self.results]

    @property
    def not_started(self) -> list[int]:
        """The places that were not started."""
        return [place for place in self.cursor if place not in self.errors]

    def values(self) -> list[T]:
        """Every result in the order of the items.

        Raises:
            Exception: an item failed. It is the error of the first such item, in the order of the
                items and not of the failures, so the same input always raises the same.
        """
        for place in self.errors:
            raise self._error(place)
        return list(self.results.values())

    def merged(self, later: "Partial[T]") -> "Partial[T]":
        """This outcome with what a resumed run added."""
        results = {**self.results, **later.results}
        errors = {
            place: report for place, report in {**self.errors, **later.errors}.items() if place not in results
        }
        raised = {place: error for place, error in {**self.raised, **later.raised}.items() if place in errors}
        usage = dict(self.usage)
        for name, count in later.usage.items():
            usage[name] = usage.get(name, 0) + count
        return Partial(max(self.total, later.total), results, errors, raised, usage)

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON-safe values, as far as the results are; no `errors` if nothing failed."""
        data: dict[str, Any] = {
            "total": self.total,
            "items": [{"index": place, "value": value} for place, value in self.results.items()],
        }
        if self.errors:
            data["errors"] = [
                {"index": place, "error": report.to_dict()} for place, report in self.errors.items()
            ]
        if self.cursor:
            data["cursor"] = self.cursor
        if self.usage:
            data["usage"] = self.usage
        return data

    def __iter__(self) -> Iterator[T]:
        return iter(self.results.values())

    def __len__(self) -> int:
        return self.total

    def __repr__(self) -> str:
        return f"Partial({len(self.results)} of {self.total} done, {len(self.errors)} failed)"

    def _error(self, place: int) -> Exception:
        if place in self.raised:
            return self.raised[place]
        from failwell.adapters.revival import revive

        return revive(self.errors[place])


Item = TypeVar("Item")
R = TypeVar("R")

Stop = Literal["never", "drain", "at_once"]
"""What a failure does to the others: nothing; those that run end and no more begin; all stop."""
WINDOW = 8
_END: Any = object()


@overload
def gather(
    function: Callable[[Item], Awaitable[R]],
    items: Iterable[Item],
    *,
    limit: int | Literal["unbounded"] = WINDOW,
    stop: Stop = "never",
    only: Iterable[int] | None = None,
) -> Awaitable[Partial[R]]: ...


@overload
def gather(
    function: Callable[[Item], R],
    items: Iterable[Item],
    *,
    limit: int | Literal["unbounded"] = WINDOW,
    stop: Stop = "never",
    only: Iterable[int] | None = None,
) -> Partial[R]: ...


def gather(
    function: Callable[[Item], Any],
    items: Iterable[Item],
    *,
    limit: int | Literal["unbounded"] = WINDOW,
    stop: Stop = "never",
    only: Iterable[int] | None = None,
) -> Any:
    """Do `function` for every item: in tasks if it is async (await the result), in threads if not.

    Args:
        function: What is done with each item.
        items: The items; an iterator is read as the window moves.
        limit: How many run at once, or "unbounded".
        stop: What happens after a failure. "never" goes on; "drain" lets those that run finish and
            starts no more; "at_once" cancels the tasks that run (threads can only be drained).
        only: The places to do, such as the `cursor` of an earlier outcome.

    Raises:
        ValueError: the limit or `stop` makes no sense.
        Cancellation: the scope around this was stopped.
    """
    if limit != "unbounded":
        check_count("limit", limit, alternative=" or 'unbounded'")
    if stop not in ("never", "drain", "at_once"):
        raise ValueError(f"`stop` must be 'never', 'drain' or 'at_once', not {stop!r}")
    from inspect import iscoroutinefunction

    batch = _Batch(items, None if only is None else frozenset(only), stop)
    is_async = iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
    if is_async:
        return _in_tasks(function, batch, None if limit == "unbounded" else limit)
    return _in_threads(function, batch, None if limit == "unbounded" else limit)


class _Batch:
    """The state of a batch: results, errors, and what is left."""

    def __init__(self, items: Iterable[Any], only: frozenset[int] | None, stop: Stop) -> None:
        self._source = items
        self._items = iter(items)
        self._only = only
        self._stop = stop
        self.total = 0
        self.halted = False
        self.results: dict[int, Any] = {}
        self.errors: dict[int, ErrorReport] = {}
        self.raised: dict[int, Exception] = {}
        self.usage: dict[str, int] = {}

    def waiting(self) -> Iterator[tuple[int, list[Any]]]:
        """The items to start, one by one, until something halts them.

        Each comes in a list, out of which it is popped: a name that still held it would be one copy too many.
        """
        while not self.halted:
            item, error = catch(next, self._items, _END)
            if item is _END:
                return
            if error is not None:
                # An item that could not be produced is an item that failed.
                self.total += 1
                self.failed(self.total - 1, error)
                self.halted = True
                return
            place = self.total
            self.total += 1
            slot = [item]
            del item
            if self._only is None or place in self._only:
                yield place, slot

    def done(self, place: int, value: Any) -> None:
        """Keep a result."""
        self.results[place] = value
        self._count(read_usage(value))

    def failed(self, place: int, error: Exception) -> None:
        """Keep a failure."""
        with scene(item=str(place)):
            report = describe(error, origin="call")
        self.errors[place] = report
        self.raised[place] = error
        self._count(usage_in(report))
        self.halted = self.halted or self._stop != "never"

    @property
    def stops_at_once(self) -> bool:
        """Whether those that run are to be stopped."""
        return self.halted and self._stop == "at_once"

    def outcome(self) -> Partial[Any]:
        """The outcome. Items that were never read count as not started."""
        # What was done must not be lost to what cannot be counted.
        total = call_hook(self._count_items, reason="the items that were not started could not be counted")
        self.total = self.total if total is None else total
        return Partial(self.total, self.results, self.errors, self.raised, self.usage)

    def _count_items(self) -> int:
        if isinstance(self._source, Sized):
            return len(self._source)
        return self.total + sum(1 for _ in self._items)

    def _count(self, usage: dict[str, int]) -> None:
        for name, count in usage.items():
            self.usage[name] = self.usage.get(name, 0) + count


def _in_threads(function: Callable[[Any], Any], batch: _Batch, limit: int | None) -> Partial[Any]:
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    scope = current_scope()
    running: dict[Future[Any], int] = {}

    def settle(finished: Iterable[Future[Any]]) -> None:
        for future in finished:
            place = running.pop(future)
            error = future.exception()
            if error is None:
                batch.done(place, future.result())
            elif isinstance(error, Exception):
                batch.failed(place, error)
            else:
                raise error

    # Threads are started as they are needed, so a generous bound costs nothing.
    with ThreadPoolExecutor(max_workers=limit or 1_000, thread_name_prefix="failwell-gather") as pool:
        for place, slot in batch.waiting():
            if scope is not None:
                scope.check()
            running[pool.submit(copy_context().run, function, slot.pop())] = place
            if limit is not None and len(running) >= limit:
                settle(wait(running, return_when=FIRST_COMPLETED).done)
            else:
                settle([future for future in running if future.done()])
        while running:
            settle(wait(running, return_when=FIRST_COMPLETED).done)
    if scope is not None:
        scope.check()
    return batch.outcome()


async def _in_tasks(
    function: Callable[[Any], Awaitable[Any]], batch: _Batch, limit: int | None
) -> Partial[Any]:
    scope = current_scope()
    window = _Tasks(batch)
    try:
        for place, slot in batch.waiting():
            if scope is not None:
                scope.check()
            window.start(place, function(slot.pop()))
            while limit is not None and len(window.running) >= limit:
                await window.settle()
        while window.running:
            await window.settle()
    finally:
        await window.close()
    if scope is not None:
        scope.check()
    return batch.outcome()


class _Tasks:
    """The calls that run at once, each with the place of its item."""

    def __init__(self, batch: _Batch) -> None:
        self._batch = batch
        self._stopped: set[Any] = set()
        self.running: dict[Any, int] = {}

    def start(self, place: int, work: Awaitable[Any]) -> None:
        """Begin with one item."""
        from asyncio import ensure_future

        self.running[ensure_future(work)] = place

    async def settle(self) -> None:
        """Wait until an item ends, and keep its outcome."""
        from asyncio import FIRST_COMPLETED, CancelledError, wait

        for task in (await wait(self.running, return_when=FIRST_COMPLETED))[0]:
            place = self.running.pop(task)
            error: BaseException | None = CancelledError() if task.cancelled() else task.exception()
            if error is None:
                self._batch.done(place, task.result())
            elif isinstance(error, Exception):
                self._batch.failed(place, error)
            elif task not in self._stopped:
                # It was not stopped here: an interrupt or a cancel from outside applies to all items.
                raise error
        if self._batch.stops_at_once:
            self._stop()

    async def close(self) -> None:
        """Leave no task behind."""
        from asyncio import wait

        if self.running:
            self._stop()
            await wait(self.running)

    def _stop(self) -> None:
        for task in self.running:
            self._stopped.add(task)
            task.cancel()
