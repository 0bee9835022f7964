"""`failwell runs tail` while another process writes."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from failwell.store.sqlite.run_store import SqliteStore
from tests.cli.running import environment
from tests.store.building import a_fact, a_run, completed


def test_tail_follows_a_run_to_its_end(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path)) as store, store.lock("r1"):
        a_run(store)
        follower = subprocess.Popen(
            [sys.executable, "-m", "failwell", "runs", "tail", "last", "--json", "--store", str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert follower.stdout is not None
        seen = [json.loads(follower.stdout.readline())["seq"]]

        for _ in range(3):
            store.append("r1", [a_fact()])
            seen.append(json.loads(follower.stdout.readline())["seq"])
        store.append("r1", [completed()])
        rest, _ = follower.communicate(timeout=30)

    assert seen == [0, 1, 2, 3]
    assert [json.loads(line)["type"] for line in rest.splitlines()] == ["run:completed"]
    assert follower.returncode == 0


def test_tail_gives_up_when_the_writer_is_gone(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path)) as store, store.lock("r1"):
        a_run(store)
        follower = subprocess.Popen(
            [sys.executable, "-m", "failwell", "runs", "tail", "r1", "--store", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert follower.stdout is not None
        follower.stdout.readline()

    _, told = follower.communicate(timeout=30)

    assert follower.returncode == 0
    assert "run r1 is interrupted" in told
