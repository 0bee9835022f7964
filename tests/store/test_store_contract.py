"""What every store of events promises, tried on each of them."""

import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.store.event import Event
from failwell.store.faults import (
    BadRunId,
    Locked,
    NotRecordable,
    RunExists,
    StreamEnded,
    UnknownRun,
)
from failwell.store.run_store import Store
from failwell.testing.memory_store import MemoryStore
from tests.store.building import STORES, a_fact, a_run, completed, failed, started

ASKING = a_fact("run:paused", gates=["ask"])


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = STORES[request.param](tmp_path)
    yield made
    made.close()


@pytest.mark.acceptance("relavium 40")
def test_events_are_numbered_from_zero_without_gaps(store: Store) -> None:
    a_run(store)

    store.append("r1", [a_fact(), a_fact("node:completed")])
    store.append("r1", [completed()])

    read = list(store.read("r1"))
    assert [event.seq for event in read] == [0, 1, 2, 3]
    assert [event.is_terminal for event in read] == [False, False, False, True]


def test_what_is_appended_is_what_is_read(store: Store) -> None:
    data = {"path": "a/b[3]", "output": {"text": "zażółć \ud800 \x00 🙂", "n": [1, 2.5, None, True]}}
    a_run(store)

    told = store.append("r1", [("node:completed", 12.25, data)])

    assert list(store.read("r1", after=0)) == told == [Event(1, "node:completed", 12.25, data)]


def test_what_was_recorded_cannot_be_changed_from_outside(store: Store) -> None:
    data: dict[str, Any] = {"output": [1]}
    a_run(store)
    store.append("r1", [("node:completed", 1.0, data)])

    data["output"].append(2)
    next(iter(store.read("r1", after=0))).data["output"].append(3)

    assert next(iter(store.read("r1", after=0))).data == {"output": [1]}


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 600])
def test_batches_of_any_size_are_recorded_whole(store: Store, size: int) -> None:
    a_run(store)

    told = store.append("r1", [a_fact(number=n) for n in range(size)])

    assert [event.seq for event in told] == list(range(1, size + 1))
    assert [event.data["number"] for event in store.read("r1", after=0)] == list(range(size))


def test_an_empty_batch_records_nothing(store: Store) -> None:
    a_run(store)

    told = store.append("r1", [])

    assert told == []
    assert store.run("r1").events == 1


@pytest.mark.parametrize(("after", "limit"), [(-1, 3), (4, 300), (598, None), (599, None), (7, 0)])
def test_a_part_can_be_read(store: Store, after: int, limit: int | None) -> None:
    a_run(store)
    store.append("r1", [a_fact() for _ in range(599)])

    read = [event.seq for event in store.read("r1", after=after, limit=limit)]

    last = 600 if limit is None else min(600, after + 1 + limit)
    assert read == list(range(after + 1, last))


@pytest.mark.parametrize("end", [completed(), failed(), ("run:cancelled", 3.0, {"reason": "enough"})])
def test_nothing_follows_the_end_of_a_run(store: Store, end: Any) -> None:
    a_run(store, "r1", end)

    for late in (a_fact(), a_fact("run:resumed"), completed()):
        with pytest.raises(StreamEnded, match="r1"):
            store.append("r1", [late])

    assert [event.type for event in store.read("r1")] == ["run:started", end[0]]


@pytest.mark.parametrize("extra", [0, 20])
def test_a_batch_that_goes_on_after_the_end_is_refused_whole(store: Store, extra: int) -> None:
    a_run(store)

    with pytest.raises(StreamEnded) as refusal:
        store.append("r1", [completed(), a_fact(), *[a_fact()] * extra])

    assert refusal.value.kind == "session.illegal_transition"
    assert store.run("r1").events == 1
    assert store.append("r1", [a_fact()])[0].seq == 1


@pytest.mark.acceptance("relavium 55")
def test_an_event_belongs_to_exactly_one_run_or_session(store: Store) -> None:
    a_run(store, "r1")
    store.create("s1", at=1.0, subject="session")
    counted = [store.run(name).events for name in ("r1", "s1")]

    with pytest.raises(UnknownRun):
        store.append("neither", [a_fact()])
    for taken, other in (("r1", "session"), ("s1", "run")):
        with pytest.raises(RunExists):
            store.create(taken, at=2.0, subject=other)  # pyright: ignore[reportArgumentType]

    assert [store.run(name).subject for name in ("r1", "s1")] == ["run", "session"]
    assert [store.run(name).events for name in ("r1", "s1")] == counted


def test_a_session_has_numbers_of_its_own(store: Store) -> None:
    a_run(store)
    store.create("s1", at=1.0, subject="session")

    events = store.append("s1", [("session:started", 1.0, {})])

    assert [event.seq for event in events] == [0]
    assert [run.id for run in store.runs()] == ["r1"]
    assert [run.id for run in store.runs(subject="session")] == ["s1"]


def _itself() -> list[Any]:
    held: list[Any] = []
    held.append(held)
    return held


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, {1, 2}, object(), _itself(), b"x"], ids=lambda value: type(value).__name__
)
@pytest.mark.parametrize("beside", [1, 20])
def test_what_json_cannot_say_is_refused_and_uses_up_no_number(store: Store, value: Any, beside: int) -> None:
    a_run(store)

    with pytest.raises(NotRecordable):
        store.append("r1", [*[a_fact()] * beside, a_fact(value=value)])

    assert store.append("r1", [a_fact()])[0].seq == 1


def test_the_refusal_of_a_value_does_not_quote_it(store: Store) -> None:
    a_run(store)

    with pytest.raises(NotRecordable) as refusal:
        store.append("r1", [a_fact(value={"hunter2"})])

    assert "hunter2" not in str(refusal.value)


@pytest.mark.acceptance("relavium 60")
def test_a_run_that_was_never_created_is_unknown_to_every_question(store: Store) -> None:
    questions: list[Any] = [
        lambda: store.append("nobody", [a_fact()]),
        lambda: store.read("nobody"),
        lambda: store.tail("nobody"),
        lambda: store.run("nobody"),
        lambda: store.snapshot("nobody", 0, "{}"),
        lambda: store.latest_snapshot("nobody"),
        lambda: store.sources("nobody"),
    ]

    for ask in questions:
        with pytest.raises(UnknownRun, match="nobody") as refusal:
            ask()
        assert refusal.value.kind == "session.no_snapshot"


def test_a_run_is_created_once(store: Store) -> None:
    a_run(store, "r1", a_fact())

    with pytest.raises(RunExists, match="r1"):
        a_run(store)

    assert store.run("r1").events == 2


def test_a_run_whose_first_facts_are_refused_does_not_exist(store: Store) -> None:
    with pytest.raises(NotRecordable):
        store.create("r1", at=1.0, facts=[a_fact(value=math.nan)])

    with pytest.raises(UnknownRun):
        store.run("r1")


@pytest.mark.parametrize("run", ["", "a/b", "..", "a b", "x" * 65, "zażółć", "a\n"])
def test_an_id_that_could_lead_astray_is_refused(store: Store, run: str) -> None:
    with pytest.raises(BadRunId):
        store.create(run, at=1.0)
    with pytest.raises(BadRunId), store.lock(run):
        pass


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ([a_fact()], "running"),
        ([ASKING], "waiting"),
        ([a_fact("run:paused", gates=[], blocked_until=90.0)], "parked"),
        ([ASKING, a_fact("human_gate:resumed")], "waiting"),
        ([ASKING, a_fact("route:taken")], "running"),
        ([ASKING, a_fact("run:resumed")], "running"),
        ([completed()], "completed"),
        ([failed()], "failed"),
        ([a_fact("run:cancelled")], "cancelled"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_the_status_follows_the_facts(store: Store, facts: list[Any], status: str, at_once: bool) -> None:
    a_run(store)

    with store.lock("r1"):
        for batch in [facts] if at_once else [[fact] for fact in facts]:
            store.append("r1", batch)

        assert store.run("r1").status == status
        assert [run.id for run in store.runs(statuses=[status])] == ["r1"]


def test_a_listing_says_how_a_run_failed_and_when(store: Store) -> None:
    a_run(store, "r1", failed(at=250.0), file="flows/nightly.yaml", digest="d1", metadata={"team": "data"})

    run = store.run("r1")

    assert (run.kind, run.message, run.node) == ("external.git.drift", "the tree has moved", "build")
    assert (run.started, run.ended, run.updated, run.events) == (100.0, 250.0, 250.0, 2)
    assert (run.workflow, run.file, run.digest, run.metadata) == (
        "nightly",
        "flows/nightly.yaml",
        "d1",
        {"team": "data"},
    )


def test_a_parked_run_says_until_when_and_a_waiting_one_for_how_many(store: Store) -> None:
    a_run(store, "r1", ("run:paused", 2.0, {"gates": ["a", "b"], "blocked_until": 90}))

    run = store.run("r1")

    assert (run.gates, run.blocked_until, run.ended) == (2, 90.0, None)


def test_answers_that_are_kept_are_counted_off(store: Store) -> None:
    a_run(store, "r1", a_fact("run:paused", gates=["a", "b"]))
    counts: list[int] = []

    for _ in range(3):
        store.append("r1", [a_fact("human_gate:answered")])
        counts.append(store.run("r1").gates)

    assert counts == [1, 0, 0]
    assert store.run("r1").status == "waiting"


def test_runs_are_listed_newest_first_and_filtered_by_everything_at_once(store: Store) -> None:
    a_run(store, "a_1", at=10.0)
    a_run(store, "a_2", completed(), at=30.0)
    a_run(store, "ax3", at=20.0)
    a_run(store, "b_4", at=40.0, workflow="hourly")

    assert [run.id for run in store.runs()] == ["b_4", "a_2", "ax3", "a_1"]
    assert [run.id for run in store.runs(limit=2)] == ["b_4", "a_2"]
    assert [run.id for run in store.runs(prefix="a_")] == ["a_2", "a_1"]
    assert [run.id for run in store.runs(workflow="hourly")] == ["b_4"]
    assert [run.id for run in store.runs(since=20.0)] == ["b_4", "a_2", "ax3"]
    assert [run.id for run in store.runs(since=20.0, statuses=["interrupted"], prefix="a")] == ["ax3"]
    assert [run.id for run in store.runs(before="a_2")] == ["ax3", "a_1"]
    assert [run.id for run in store.runs(before="a_2", prefix="a_", limit=1)] == ["a_1"]


def test_the_latest_two_snapshots_are_kept(store: Store) -> None:
    a_run(store)
    before = store.latest_snapshot("r1")

    for seq in (3, 9, 6):
        store.snapshot("r1", seq, f'{{"at":{seq}}}')

    assert before is None
    assert store.latest_snapshot("r1") == (9, '{"at":9}')


def test_sources_come_back_as_they_were(store: Store) -> None:
    texts = {"main.yaml": "a: 1\r\n", "lib/child.yaml": "ß"}
    a_run(store, "r1", sources=texts)
    a_run(store, "r2", sources={"main.yaml": "a: 2\n"})

    assert store.sources("r1") == texts
    assert store.sources("r2") == {"main.yaml": "a: 2\n"}


def test_sources_are_replaced_where_changes_were_accepted(store: Store) -> None:
    a_run(store, "r1", sources={"main.yaml": "a: 1\n", "gone.yaml": "b"})
    a_run(store, "r2", sources={"main.yaml": "a: 1\n"})

    store.replace_sources("r1", {"main.yaml": "a: 2\n", "new.yaml": "c"})

    assert store.sources("r1") == {"main.yaml": "a: 2\n", "new.yaml": "c"}
    assert store.sources("r2") == {"main.yaml": "a: 1\n"}


@pytest.mark.acceptance("relavium 60")
def test_a_run_has_one_writer_at_a_time(store: Store) -> None:
    a_run(store)

    with store.lock("r1"):
        with pytest.raises(Locked) as refusal, store.lock("r1"):
            pass
        inside = store.is_locked("r1")
        with store.lock("r2"):
            pass

    assert refusal.value.kind == "session.locked"
    assert refusal.value.user_action is not None
    folder = getattr(store, "folder", None)
    store_option = f" --store {folder}" if folder else ""
    assert f"`failwell runs tail r1{store_option}`" in refusal.value.user_action.detail
    assert inside
    assert not store.is_locked("r1")
    with store.lock("r1"):
        assert store.is_locked("r1")


def test_pruning_takes_old_ended_runs_and_leaves_the_rest(store: Store) -> None:
    a_run(store, "old", completed(at=20.0), at=10.0)
    a_run(store, "old-but-running", at=11.0)
    a_run(store, "new", completed(at=90.0), at=80.0)

    would = store.prune(before=50.0, dry_run=True)
    listed = len(store.runs())
    done = store.prune(before=50.0)

    assert would == done
    assert (done.runs, done.events, done.kept_live) == (("old",), 2, ())
    assert listed == 3
    assert [run.id for run in store.runs()] == ["new", "old-but-running"]


def test_pruning_keeps_the_newest_and_asks_for_the_status(store: Store) -> None:
    for number in range(4):
        a_run(store, f"c{number}", completed(), at=float(number))
    a_run(store, "f", failed(), at=9.0)

    kept = store.prune(keep=2, statuses=["completed"])

    assert kept.runs == ("c1", "c0")
    assert [run.id for run in store.runs()] == ["f", "c3", "c2"]


def test_pruning_never_takes_a_run_that_somebody_writes_to(store: Store) -> None:
    a_run(store, "r1", completed())

    with store.lock("r1"):
        would = store.prune(dry_run=True)
        done = store.prune()

    assert would == done
    assert (done.runs, done.kept_live) == ((), ("r1",))
    assert store.run("r1").events == 2


def test_a_pruned_run_is_gone_and_its_id_free(store: Store) -> None:
    a_run(store, "r1", a_fact(), completed(), sources={"a": "text"})
    a_run(store, "r2", completed(), sources={"b": "text"})
    store.prune(keep=1)

    a_run(store)

    assert [event.seq for event in store.read("r1")] == [0]
    assert store.sources("r1") == {}
    assert store.sources("r2") == {"b": "text"}


def test_a_follower_gets_what_was_and_what_comes_up_to_the_end(store: Store) -> None:
    a_run(store, "r1", a_fact())
    seen: list[int] = []
    caught_up = threading.Event()

    def follow() -> None:
        for event in store.tail("r1"):
            seen.append(event.seq)
            if event.seq == 1:
                caught_up.set()

    follower = threading.Thread(target=follow)
    follower.start()
    assert caught_up.wait(10)
    store.append("r1", [a_fact()])
    store.append("r1", [a_fact(), completed()])
    follower.join(10)

    assert not follower.is_alive()
    assert seen == [0, 1, 2, 3, 4]


def test_following_from_the_middle_starts_in_the_middle(store: Store) -> None:
    a_run(store, "r1", a_fact(), completed())

    assert [event.seq for event in store.tail("r1", after=1)] == [2]


def test_a_follower_may_give_up_when_nothing_comes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failwell.store.watch.POLL_WITH_SOCKET", 0.01)
    monkeypatch.setattr("failwell.testing.memory_store._LOOK_EVERY", 0.01)
    a_run(store)
    asked: list[bool] = []

    seen = [event.seq for event in store.tail("r1", give_up=lambda: asked.append(True) is None)]

    assert seen == [0]
    assert asked == [True]


@pytest.mark.acceptance("relavium 40")
@given(
    kind=st.sampled_from(sorted(STORES)),
    appends=st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from(["r1", "r2", "r3"]), st.integers(0, 12)), max_size=40
    ),
)
def test_any_interleaving_of_appends_keeps_every_run_without_gaps(
    kind: str, appends: list[tuple[int, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    first = STORES[kind](folder)
    # A second connection to the same file is what another process has; memory has no second door.
    doors = [first, first if isinstance(first, MemoryStore) else STORES[kind](folder)]
    expected: dict[str, int] = {"r1": 1, "r2": 1, "r3": 1}
    for run in expected:
        first.create(run, at=1.0, facts=[started()])

    for door, run, size in appends:
        told = doors[door].append(run, [a_fact(run=run, number=expected[run] + n) for n in range(size)])
        assert [event.seq for event in told] == list(range(expected[run], expected[run] + size))
        expected[run] += size

    for run, count in expected.items():
        events = list(doors[1].read(run))
        assert [event.seq for event in events] == list(range(count))
        assert all(event.data["number"] == event.seq for event in events[1:])
    for door in set(doors):
        door.close()
