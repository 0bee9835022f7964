"""What listeners of a run hear: after it was written, in order, and whatever else goes wrong."""

import threading
from collections.abc import Sequence

import pytest

from failwell.journal.event import Event, Fact
from failwell.journal.faults import StoreUnavailable
from failwell.journal.memory import MemoryStore
from failwell.journal.recorder import Recorder
from failwell.runtime.observer import Suppressed, observe
from tests.journal.building import a_fact, a_run, completed, failed


class RefusingStore(MemoryStore):
    """A store on a disk that has gone away."""

    def append(self, run: str, facts: Sequence[Fact]) -> list[Event]:
        raise StoreUnavailable(message="gone")


def breaks(event: Event) -> None:
    raise ZeroDivisionError


def a_recorder(store: MemoryStore) -> tuple[Recorder, list[Event]]:
    heard: list[Event] = []
    a_run(store)
    return Recorder(store, "r1", [heard.append]), heard


def test_an_event_is_on_record_when_it_is_heard() -> None:
    store = MemoryStore()
    recorder, _ = a_recorder(store)
    on_record: list[bool] = []
    recorder.listen(lambda event: on_record.append(store.run("r1").events > event.seq))

    recorder.record([a_fact(), a_fact()])

    assert on_record == [True, True]


@pytest.mark.acceptance("relavium 53")
def test_events_are_heard_in_the_order_of_their_numbers_whoever_records_them() -> None:
    store = MemoryStore()
    recorder, heard = a_recorder(store)
    together = threading.Barrier(4)

    def work() -> None:
        together.wait()
        for _ in range(100):
            recorder.record([a_fact(), a_fact()])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [event.seq for event in heard] == list(range(1, 801))


@pytest.mark.acceptance("relavium 54")
def test_a_listener_that_fails_disturbs_nobody_and_is_reported() -> None:
    store = MemoryStore()
    recorder, heard = a_recorder(store)
    recorder.listen(breaks)
    recorder.listen(heard.append)
    reported: list[Suppressed] = []

    with observe(reported.append):
        told = recorder.record([a_fact()])

    assert [event.seq for event in heard] == [1, 1]
    assert told == heard[:1]
    assert [one.reason for one in reported] == ["a listener failed and was passed over"]


def test_who_stops_listening_hears_nothing_more() -> None:
    recorder, heard = a_recorder(MemoryStore())
    late: list[Event] = []
    stop = recorder.listen(late.append)

    recorder.record([a_fact()])
    stop()
    stop()
    recorder.record([a_fact()])

    assert (len(late), len(heard)) == (1, 2)


@pytest.mark.acceptance("relavium 52")
def test_a_store_that_refuses_everything_still_lets_one_end_be_heard() -> None:
    recorder, heard = a_recorder(RefusingStore())
    reported: list[Suppressed] = []

    with observe(reported.append), pytest.raises(StoreUnavailable):
        recorder.record([a_fact()])
    with observe(reported.append):
        end = recorder.end(failed())

    assert heard == [end]
    assert (end.seq, end.type) == (1, "run:failed")
    assert [one.report.kind for one in reported] == ["session.store_unavailable"]


def test_an_end_that_can_be_recorded_is_recorded() -> None:
    store = MemoryStore()
    recorder, heard = a_recorder(store)

    end = recorder.end(completed())

    assert heard == [end] == list(store.read("r1", after=0))
