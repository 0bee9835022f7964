"""Where it happened: named once by a block, kept across awaits, taken along by what leaves it."""

import asyncio
import threading
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from inspect import iscoroutinefunction

import pytest

import failwell
from failwell import Fault
from failwell.errors import Scene, scene
from failwell.errors.context import current_scene, merge
from failwell.errors.report import NOWHERE
from failwell.testing.builders import make_fault


def leaving(*blocks: AbstractContextManager[object], error: BaseException | None = None) -> BaseException:
    """The error after it left every block, innermost last."""

    def enter(rest: tuple[AbstractContextManager[object], ...]) -> None:
        if not rest:
            raise error or ValueError("x")
        with rest[0]:
            enter(rest[1:])

    try:
        enter(blocks)
    except BaseException as left:
        return left
    raise AssertionError


def test_a_block_names_the_place_for_everything_inside() -> None:
    with scene(run="r1", workflow="daily"), scene(node="sum", attempt=2):
        report = failwell.describe(ValueError())

    assert report.scene == Scene(run="r1", workflow="daily", node="sum", attempt=2)
    assert current_scene() is NOWHERE


def test_an_inner_block_may_name_a_place_anew() -> None:
    with scene(node="outer", run="r1"):
        with scene(node="inner"):
            inside = current_scene()
        outside = current_scene()

    assert (inside.node, outside.node, inside.run) == ("inner", "outer", "r1")


def test_entering_a_block_gives_the_whole_scene() -> None:
    with scene(run="r1"), scene(node="sum") as here:
        assert here == Scene(run="r1", node="sum")


def test_an_error_takes_its_place_along() -> None:
    error = leaving(scene(run="r1"), scene(node="sum", item="7"))

    report = failwell.describe(error)

    assert report.scene == Scene(run="r1", node="sum", item="7")


def test_where_it_happened_beats_where_it_is_described() -> None:
    error = leaving(scene(node="inner"))

    with scene(run="r2", node="outer"):
        report = failwell.describe(error)

    assert report.scene == Scene(run="r2", node="inner")


def test_an_explicit_scene_beats_both() -> None:
    error = leaving(scene(node="inner", item="3"))

    with scene(run="r2"):
        report = failwell.describe(error, scene=Scene(node="told", job="j1"))

    assert report.scene == Scene(node="told", job="j1", item="3", run="r2")


def test_the_boundaries_crossed_are_listed_innermost_first() -> None:
    error = leaving(scene(run="r1"), scene(workflow="daily", node="sum", attempt=2), scene(tool="search"))

    frames = failwell.describe(error).frames

    assert [(f.boundary, f.name, f.workflow, f.iteration) for f in frames] == [
        ("tool", "search", "daily", 2),
        ("node", "sum", "daily", 2),
        ("run", "r1", None, None),
    ]


def test_a_frame_is_named_after_the_most_telling_place() -> None:
    error = leaving(scene(run="r1", node="sum", item="4", session="s"))

    [frame] = failwell.describe(error).frames

    assert (frame.boundary, frame.name, frame.item) == ("item", "4", "4")


def test_a_block_that_only_counts_attempts_is_no_boundary() -> None:
    report = failwell.describe(leaving(scene(attempt=3)))

    assert (report.frames, report.scene.attempt) == ((), 3)


def test_a_wrapper_raised_outside_still_knows_the_place_of_its_cause() -> None:
    leaf = leaving(scene(run="r1"), scene(node="sum"), error=make_fault())
    wrapper = leaving(scene(workflow="daily"), error=Fault.wrap(leaf, "stopped"))

    report = failwell.describe(wrapper)

    assert report.scene == Scene(run="r1", node="sum", workflow="daily")
    assert [f.name for f in report.frames] == ["sum", "r1", "daily"]


def test_a_foreign_cause_gives_its_place_to_the_fault_around_it() -> None:
    foreign = leaving(scene(tool="search"))

    assert failwell.describe(Fault.wrap(foreign, "stopped")).scene.tool == "search"


def test_frames_are_bounded() -> None:
    error = leaving(*(scene(node=f"n{number}") for number in range(100)))

    assert len(failwell.describe(error).frames) == 32


def test_nothing_of_a_place_changes_how_a_fault_compares_or_prints() -> None:
    fault = make_fault()

    left = leaving(scene(run="r1"), error=fault)

    assert left == make_fault()
    assert repr(left) == repr(make_fault())


def test_a_decorated_function_works_in_its_place() -> None:
    @scene(node="sum")
    def work(number: int) -> int:
        """Doubles."""
        assert current_scene().node == "sum"
        return number * 2

    assert (work(4), work.__name__, work.__doc__) == (8, "work", "Doubles.")
    assert current_scene() is NOWHERE


def test_a_decorated_coroutine_works_in_its_place() -> None:
    @scene(node="sum")
    async def work() -> str | None:
        await asyncio.sleep(0)
        return current_scene().node

    assert asyncio.run(work()) == "sum"


def test_a_decorated_coroutine_is_one() -> None:
    @scene(node="sum")
    async def work() -> None:
        raise ValueError("x")

    assert iscoroutinefunction(work)
    with pytest.raises(ValueError) as caught:
        asyncio.run(work())
    assert failwell.describe(caught.value).scene.node == "sum"


def test_a_recursive_decorated_function_leaves_every_place_it_entered() -> None:
    @scene(node="deep")
    def dive(depth: int) -> None:
        if depth:
            dive(depth - 1)
        else:
            raise ValueError("bottom")

    with pytest.raises(ValueError) as caught:
        dive(4)

    assert current_scene() is NOWHERE
    assert [f.name for f in failwell.describe(caught.value).frames] == ["deep"]


def test_tasks_keep_to_their_own_places() -> None:
    async def one(name: str) -> str | None:
        with scene(node=name):
            for _ in range(3):
                await asyncio.sleep(0)
            return failwell.describe(ValueError()).scene.node

    async def work() -> list[str | None]:
        with scene(run="r1"):
            return list(await asyncio.gather(one("a"), one("b"), one("c")))

    assert asyncio.run(work()) == ["a", "b", "c"]


def test_a_task_starts_in_the_place_where_it_was_made() -> None:
    async def where() -> str | None:
        return current_scene().run

    async def work() -> str | None:
        with scene(run="r1"):
            task = asyncio.create_task(where())
        return await task

    assert asyncio.run(work()) == "r1"


def test_tasks_may_share_one_block() -> None:
    block = scene(run="shared")

    async def one(steps: int) -> str | None:
        with block:
            for _ in range(steps):
                await asyncio.sleep(0)
            return current_scene().run

    async def work() -> list[str | None]:
        return list(await asyncio.gather(one(3), one(1), one(2)))

    assert asyncio.run(work()) == ["shared"] * 3
    assert current_scene() is NOWHERE


def test_one_block_may_be_entered_again_and_inside_itself() -> None:
    block = scene(run="again")

    with block, block:
        assert current_scene().run == "again"
    with block:
        assert current_scene().run == "again"

    assert current_scene() is NOWHERE


def test_a_generator_that_stops_inside_a_block_does_not_fail() -> None:
    def work() -> Iterator[str | None]:
        with scene(node="inside"):
            yield current_scene().node

    assert list(work()) == ["inside"]
    assert current_scene() is NOWHERE


def test_threads_keep_to_their_own_places() -> None:
    seen: dict[str, Scene] = {}

    def work(name: str) -> None:
        seen[f"{name} before"] = current_scene()
        with scene(job=name):
            seen[name] = current_scene()

    with scene(run="r1"):
        threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert seen == {"a before": NOWHERE, "b before": NOWHERE, "a": Scene(job="a"), "b": Scene(job="b")}


def test_an_error_from_a_thread_brings_its_place_with_it() -> None:
    caught: list[BaseException] = []

    def work() -> None:
        caught.append(leaving(scene(job="j1")))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert failwell.describe(caught[0]).scene.job == "j1"


def test_places_that_are_not_texts_become_texts() -> None:
    run = uuid.uuid4()

    with scene(run=run, item=3):  # pyright: ignore[reportArgumentType]
        report = failwell.describe(ValueError())

    assert report.scene == Scene(run=str(run), item="3")
    assert failwell.ErrorReport.from_json(report.to_json()) == report


def test_a_place_with_an_endless_name_is_cut() -> None:
    with scene(node="n" * 100_000) as here:
        assert here.node == "n" * 200


def test_an_error_that_cannot_be_stamped_still_leaves_its_block() -> None:
    class Sealed(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    error = leaving(scene(node="sum"), error=Sealed())

    assert failwell.describe(error).scene.node == "sum"


def test_the_nearer_scene_is_completed_by_the_farther() -> None:
    near, far = Scene(node="near"), Scene(node="far", run="r1")

    assert merge(near, far) == Scene(node="near", run="r1")
    assert (merge(near, NOWHERE), merge(NOWHERE, far), merge(near, near)) == (near, far, near)


def test_a_capability_names_its_place() -> None:
    from failwell.capability import CapabilityDisabledError

    report = failwell.describe(CapabilityDisabledError("whisper"))

    assert report.scene == Scene(capability="whisper")
