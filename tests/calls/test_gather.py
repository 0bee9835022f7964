"""Many items, a few at a time: order, bounds, failures, resuming."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from threading import Barrier, Event, Lock
from typing import Any

import pytest

from failwell.calls.cancel import cancel_scope
from failwell.calls.gather import Partial, gather
from failwell.errors.faults import Cancellation
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock


class Floor:
    """Counts how many are at work at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.started: list[Any] = []
        self._lock = Lock()

    def enter(self, item: Any) -> None:
        with self._lock:
            self.started.append(item)
            self.now += 1
            self.most = max(self.most, self.now)

    def leave(self) -> None:
        with self._lock:
            self.now -= 1


@pytest.mark.acceptance("pipelex 51")
def test_a_hundred_items_run_eight_at_a_time_and_keep_their_order() -> None:
    floor, clock = Floor(), FakeClock()
    alive = {"now": 0, "most": 0}

    class Copy:
        def __init__(self, number: int) -> None:
            self.number = number
            alive["now"] += 1
            alive["most"] = max(alive["most"], alive["now"])

        def __del__(self) -> None:
            alive["now"] -= 1

    async def work(copy: Copy) -> int:
        floor.enter(copy.number)
        await clock.asleep((copy.number * 7) % 5 + 1)
        floor.leave()
        return copy.number * 2

    outcome = asyncio.run(gathered(work, (Copy(number) for number in range(100))))

    assert outcome.values() == [number * 2 for number in range(100)]
    assert floor.most == 8
    assert alive["most"] == 8


async def gathered(
    work: Callable[[Any], Awaitable[Any]], items: Iterable[Any], **wishes: Any
) -> Partial[Any]:
    return await gather(work, items, **wishes)


@pytest.mark.acceptance("pipelex 53")
def test_a_slow_item_holds_up_nobody_but_itself() -> None:
    clock = FakeClock()

    async def work(number: int) -> int:
        await clock.asleep(1.0 if number % 8 == 0 else 0.1)
        return number

    outcome = asyncio.run(gathered(work, range(64)))

    assert outcome.complete
    assert clock.monotonic() <= 3.0


@pytest.mark.acceptance("pipelex 52")
def test_the_first_item_that_failed_is_raised_whichever_failed_first() -> None:
    clock = FakeClock()
    floor = Floor()

    async def work(number: int) -> int:
        floor.enter(number)
        await clock.asleep(10 - number)
        if number in (2, 5):
            raise ValueError(f"item {number}")
        return number

    outcome = asyncio.run(gathered(work, range(100), stop="drain"))

    with pytest.raises(ValueError, match="item 2"):
        outcome.values()
    assert outcome.errors.keys() == {2, 5}
    assert len(floor.started) < 20
    assert outcome.results.keys() == set(floor.started) - {2, 5}
    assert outcome.not_started == list(range(len(floor.started), 100))


@pytest.mark.acceptance("pipelex 52")
@pytest.mark.parametrize("limit", [0, -1, "many"])
def test_a_bound_that_lets_nobody_in_is_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        gather(str, [1], limit=limit)


@pytest.mark.acceptance("pipelex 52")
def test_without_a_bound_all_start_at_once() -> None:
    floor, clock = Floor(), FakeClock()

    async def work(number: int) -> None:
        floor.enter(number)
        await clock.asleep(1)
        floor.leave()

    asyncio.run(gathered(work, range(50), limit="unbounded"))

    assert floor.most == 50


@pytest.mark.acceptance("pipelex 50")
def test_a_failing_item_is_done_once_because_nobody_asked_for_more() -> None:
    runs: list[int] = []

    def work(number: int) -> None:
        runs.append(number)
        raise make_fault(kind="provider.unavailable")

    outcome = gather(work, [1])

    assert runs == [1]
    assert outcome.errors[0].kind == "provider.unavailable"


def test_others_go_on_when_an_item_fails_and_each_failure_has_its_report() -> None:
    def work(number: int) -> int:
        if number % 2:
            raise make_fault(kind="provider.overloaded")
        return number

    outcome = gather(work, range(5))

    assert outcome.results == {0: 0, 2: 2, 4: 4}
    assert {place: report.scene.item for place, report in outcome.errors.items()} == {1: "1", 3: "3"}
    assert outcome.cursor == [1, 3]
    assert not outcome.complete


def test_failing_fast_cancels_the_tasks_that_run() -> None:
    clock = FakeClock()
    cancelled: list[int] = []

    async def work(number: int) -> int:
        if number == 3:
            await clock.asleep(1)
            raise ValueError("three")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(number)
            raise
        return number

    outcome = asyncio.run(gathered(work, range(100), stop="at_once"))

    assert outcome.errors.keys() == {3}
    assert sorted(cancelled) == [0, 1, 2, 4, 5, 6, 7]
    assert outcome.not_started == [0, 1, 2, *range(4, 100)]


def test_an_outcome_is_resumed_where_it_was_left() -> None:
    broken = {3, 7}
    runs: list[int] = []

    def work(number: int) -> int:
        runs.append(number)
        if number in broken:
            raise make_fault(kind="provider.overloaded")
        return number

    first = gather(work, range(10))
    cursor = json.loads(json.dumps(first.cursor))
    broken.clear()
    runs.clear()
    second = first.merged(gather(work, range(10), only=cursor))

    assert sorted(runs) == [3, 7]
    assert second.complete
    assert second.values() == list(range(10))


def test_an_outcome_as_json_has_no_errors_if_there_are_none() -> None:
    whole = gather(str, [1, 2]).to_dict()
    broken = gather(int, ["1", "x"]).to_dict()

    assert whole == {"total": 2, "items": [{"index": 0, "value": "1"}, {"index": 1, "value": "2"}]}
    assert broken["items"] == [{"index": 0, "value": 1}]
    assert broken["errors"][0]["index"] == 1
    assert broken["errors"][0]["error"]["error_type"] == "ValueError"
    assert broken["cursor"] == [1]


def test_threads_run_side_by_side_up_to_the_bound() -> None:
    together = Barrier(4)

    def work(number: int) -> int:
        together.wait(timeout=10)
        return number

    assert gather(work, range(8), limit=4).values() == list(range(8))


def test_no_items_are_no_failure() -> None:
    assert gather(str, []).values() == []
    assert asyncio.run(gathered(asyncio.sleep, [])).complete


def test_an_item_that_cannot_be_made_is_an_item_that_failed() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("no more")

    outcome = gather(str, items())

    assert outcome.results == {0: "1"}
    assert outcome.errors[1].error_type == "KeyError"


def test_tokens_of_all_items_are_added_up() -> None:
    def work(number: int) -> dict[str, Any]:
        if number == 2:
            raise make_fault(kind="provider.content_refused", details={"usage": {"input_tokens": 5}})
        return {"usage": {"prompt_tokens": 10, "completion_tokens": 1}}

    assert gather(work, range(3)).usage == {"input_tokens": 25, "output_tokens": 2}


def test_a_cancelled_scope_starts_no_further_item() -> None:
    started: list[int] = []
    stopped = Event()

    with cancel_scope("run") as scope:

        def work(number: int) -> None:
            started.append(number)
            scope.cancel()
            stopped.set()

        with pytest.raises(Cancellation):
            gather(work, range(1000), limit=1)

    assert stopped.is_set()
    assert started == [0]


def test_cancelling_the_batch_leaves_no_task_behind() -> None:
    async def forever(number: int) -> None:
        await asyncio.Event().wait()

    async def run() -> int:
        batch = asyncio.ensure_future(gather(forever, range(20)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
