"""Waking those who follow a run: at once, from any process, and never at the writer's cost."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from failwell.store.sqlite.run_store import SqliteStore
from failwell.store.watch import POLL_WITHOUT_SOCKET, Waker, Watch
from tests.store.building import a_fact, a_run, completed


@pytest.fixture(params=["short", "x" * 200], ids=["short path", "path too long for a socket"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / request.param


def test_a_follower_is_woken_once_for_many_rings(folder: Path) -> None:
    with Watch(folder) as watch, closing(Waker(folder)) as waker:
        for _ in range(3):
            waker.wake()

        assert watch.wait(10)
        assert not watch.wait(0)


def test_every_follower_is_woken_however_late_it_came(folder: Path) -> None:
    with closing(Waker(folder)) as waker, Watch(folder) as first:
        waker.wake()
        with Watch(folder) as second:
            waker.wake()

            assert first.wait(10)
            assert second.wait(10)


def test_ringing_where_nobody_listens_does_nothing(folder: Path) -> None:
    with closing(Waker(folder)) as waker:
        waker.wake()

    assert not folder.exists()


def test_a_follower_that_never_looks_does_not_hold_up_the_writer(folder: Path) -> None:
    with Watch(folder) as watch, closing(Waker(folder)) as waker:
        for _ in range(5_000):
            waker.wake()

        assert watch.wait(10)


def test_what_a_dead_follower_left_is_cleared_away(tmp_path: Path) -> None:
    with Watch(tmp_path):
        pass
    left = tmp_path / "watch" / "dead"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(left))

    with closing(Waker(tmp_path)) as waker:
        waker.wake()

    assert not left.exists()


def test_without_sockets_a_follower_looks_more_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")

    with Watch(tmp_path) as watch, closing(Waker(tmp_path)) as waker:
        waker.wake()

        assert watch.fileno() is None
        assert watch.interval == POLL_WITHOUT_SOCKET
        assert not watch.wait(0)


def test_a_follower_without_sockets_still_gets_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with closing(SqliteStore(tmp_path)) as store, closing(SqliteStore(tmp_path)) as writer:
        a_run(store)
        tail = store.tail("r1")
        seen = [next(tail).seq]

        writer.append("r1", [a_fact(), completed()])
        seen += [event.seq for event in tail]

    assert seen == [0, 1, 2]
