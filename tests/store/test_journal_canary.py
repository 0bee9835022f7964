"""A secret goes through a whole run, and nothing on disk remembers it."""

import asyncio
import os
from contextlib import closing
from pathlib import Path

import pytest

from failwell.cli.main import main
from failwell.store.sqlite.run_store import SqliteStore
from failwell.workflows.running.launch import start
from failwell.workflows.running.script_executor import ScriptExecutor
from failwell.workflows.running.settings import Settings

CANARY = "canary-7f3a91-value"
WORKFLOW = """
workflow:
  name: nightly
  entry_point: fetch
  input:
    token: {type: string, secret: true}
agents:
  - name: fetch
    type: script
    command: sh
    args: ["-c", "echo out $TOKEN; echo err $TOKEN >&2; exit %(code)s"]
    env_from: {TOKEN: workflow.input.token}
    raises: [external.git.drift]
    routes: [{to: $end}]
"""


def run_it(folder: Path, code: int) -> str:
    file = folder / "nightly.yaml"
    file.write_text(WORKFLOW % {"code": code})
    with closing(SqliteStore(folder / "state")) as store:
        settings = Settings(
            store=store,
            folder=folder / "state",
            executors={"script": ScriptExecutor()},
            environ={"PATH": os.environ["PATH"]},
        )
        asyncio.run(start(str(file), {"token": CANARY}, settings, run="r1"))
        return store.run("r1").status


@pytest.mark.parametrize(("code", "status"), [(0, "completed"), (3, "failed")])
def test_no_file_of_the_store_holds_a_secret_that_a_script_printed(
    tmp_path: Path, code: int, status: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run_it(tmp_path, code)

    holding = [
        path.name
        for path in (tmp_path / "state").rglob("*")
        if path.is_file() and CANARY.encode() in path.read_bytes()
    ]
    for action in ("show", "tail", "export"):
        main(["runs", action, "r1", "--store", str(tmp_path / "state")])
    shown = capsys.readouterr()
    assert ended == status
    assert holding == []
    assert "fetch" in shown.out
    assert CANARY not in shown.out + shown.err
