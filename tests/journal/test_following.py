"""Waking those who follow a run: at once, from any process, and never at the writer's cost."""

import asyncio
import socket
from contextlib import closing
from pathlib import Path

import pytest

from failwell.journal.follow import follow
from failwell.journal.sqlite.store import SqliteStore
from failwell.journal.watch import POLL_EVERY, Bell, Watch
from tests.journal.building import a_fact, a_run, completed


@pytest.fixture(params=["short", "x" * 200], ids=["short path", "path too long for a socket"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / request.param


def test_a_follower_is_woken_once_for_many_rings(folder: Path) -> None:
    with Watch(folder) as watch, closing(Bell(folder)) as bell:
        for _ in range(3):
            bell.ring()

        assert watch.wait(10)
        assert not watch.wait(0)


def test_every_follower_is_woken_however_late_it_came(folder: Path) -> None:
    with closing(Bell(folder)) as bell, Watch(folder) as first:
        bell.ring()
        with Watch(folder) as second:
            bell.ring()

            assert first.wait(10)
            assert second.wait(10)


def test_ringing_where_nobody_listens_does_nothing(folder: Path) -> None:
    with closing(Bell(folder)) as bell:
        bell.ring()

    assert not folder.exists()


def test_a_follower_that_never_looks_does_not_hold_up_the_writer(folder: Path) -> None:
    with Watch(folder) as watch, closing(Bell(folder)) as bell:
        for _ in range(5_000):
            bell.ring()

        assert watch.wait(10)


def test_what_a_dead_follower_left_is_cleared_away(tmp_path: Path) -> None:
    with Watch(tmp_path):
        pass
    left = tmp_path / "watch" / "dead"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(left))

    with closing(Bell(tmp_path)) as bell:
        bell.ring()

    assert not left.exists()


def test_without_sockets_a_follower_looks_more_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")

    with Watch(tmp_path) as watch, closing(Bell(tmp_path)) as bell:
        bell.ring()

        assert watch.fileno() is None
        assert watch.patience == POLL_EVERY
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


def test_an_event_loop_follows_without_blocking(tmp_path: Path) -> None:
    async def story() -> list[int]:
        with closing(SqliteStore(tmp_path)) as store, closing(SqliteStore(tmp_path)) as writer:
            a_run(store)
            caught_up = asyncio.Event()
            seen: list[int] = []

            async def listen() -> None:
                async for event in follow(store, tmp_path, "r1"):
                    seen.append(event.seq)
                    caught_up.set()

            listening = asyncio.create_task(listen())
            await caught_up.wait()
            for _ in range(20):
                writer.append("r1", [a_fact()])
                await asyncio.sleep(0)
            writer.append("r1", [completed()])
            await asyncio.wait_for(listening, 10)
            return seen

    assert asyncio.run(story()) == list(range(22))


def test_an_event_loop_can_stop_following(tmp_path: Path) -> None:
    async def story() -> list[int]:
        with closing(SqliteStore(tmp_path)) as store:
            a_run(store)
            return [event.seq async for event in follow(store, tmp_path, "r1", give_up=lambda: True)]

    assert asyncio.run(story()) == [0]
    assert list((tmp_path / "runs" / "r1" / "watch").iterdir()) == []
