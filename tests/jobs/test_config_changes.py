"""What the command line changes reaches the process that runs the jobs, for whatever is not begun yet."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from failwell.capability import CapabilityDisabledError
from failwell.jobs import JobState, Runtime
from failwell.jobs.capabilities import CapabilityRegistry
from tests.cli.running import failwell
from tests.jobs.workers import run, until

CODE = """
import os
import time
from dataclasses import dataclass


class Greeter:
    @dataclass
    class Config:
        language: str = "en"
        loudness: int = 3

    def initialize(self, config):
        self.config = config

    def execute(self):
        return [self.config.language, self.config.loudness, os.environ.get("TOKEN")]

    def slow(self, path):
        open(path + ".began", "w").close()
        while not os.path.exists(path):
            time.sleep(0.005)
        return self.execute()
"""
MANIFEST = """
name = "greeter"
object = "greeting:Greeter"
[env]
TOKEN = { secret = true }
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "greeting.py").write_text(CODE)
    (tmp_path / "greeter.toml").write_text(MANIFEST)
    CapabilityRegistry(tmp_path / "state").add(tmp_path / "greeter.toml")
    return tmp_path


async def command(home: Path, *arguments: str, given: str = "") -> None:
    done = await asyncio.to_thread(
        failwell, "capabilities", *arguments, "--store", str(home / "state"), given=given
    )
    assert done.code == 0, done.err


async def changed(jobs: Runtime, before: Any) -> None:
    """Wait until the capability answers something else."""
    async with asyncio.timeout(20):
        while await jobs.call("greeter") == before:
            continue


def is_enabled(jobs: Runtime) -> bool:
    [worker] = jobs.stats()["workers"]
    return worker["enabled"]


def test_a_running_host_begins_nothing_more_of_what_is_switched_off(home: Path) -> None:
    async def work() -> tuple[Any, ...]:
        async with Runtime(home / "state") as jobs:
            first = await jobs.submit("greeter", {"path": str(home / "go")}, action="slow")
            await until((home / "go.began").exists)
            second = await jobs.submit("greeter")
            await command(home, "disable", "greeter")

            await until(lambda: not is_enabled(jobs))
            (home / "go").touch()
            finished = await jobs.wait(first.id)
            refused = await asyncio.gather(jobs.submit("greeter"), return_exceptions=True)
            left = jobs.job(second.id).state
            await command(home, "enable", "greeter")
            return finished.state, refused, left, (await jobs.wait(second.id, timeout=20)).state

    finished, refused, left, at_last = run(work())

    assert (finished, left, at_last) == (JobState.COMPLETED, JobState.PENDING, JobState.COMPLETED)
    assert [type(one) for one in refused] == [CapabilityDisabledError]


def test_a_running_host_takes_settings_and_secrets_that_were_changed(home: Path) -> None:
    async def work() -> list[Any]:
        async with Runtime(home / "state") as jobs:
            seen = [await jobs.call("greeter")]
            for arguments, given in (
                (("config", "greeter", "language=de"), ""),
                (("secret", "greeter", "TOKEN"), "one\n"),
                (("secret", "greeter", "--unset", "TOKEN"), ""),
                (("config", "greeter", "--unset", "language"), ""),
            ):
                await command(home, *arguments, given=given)
                await changed(jobs, seen[-1])
                seen.append(await jobs.call("greeter"))
            return seen

    assert run(work()) == [
        ["en", 3, None],
        ["de", 3, None],
        ["de", 3, "one"],
        ["de", 3, None],
        ["en", 3, None],
    ]


def test_a_job_that_runs_finishes_where_it_is_when_a_secret_is_changed(home: Path) -> None:
    async def work() -> tuple[Any, Any]:
        async with Runtime(home / "state") as jobs:
            running = asyncio.ensure_future(jobs.call("greeter", {"path": str(home / "go")}, action="slow"))
            await until((home / "go.began").exists)
            await command(home, "secret", "greeter", "TOKEN", given="one\n")

            instance = jobs.queue.state.find_instance("greeter")
            assert instance is not None
            await until(lambda: instance.is_draining)
            waiting = asyncio.ensure_future(jobs.call("greeter"))
            (home / "go").touch()
            return await running, await waiting

    assert run(work()) == (["en", 3, None], ["en", 3, "one"])


def test_what_a_program_gave_an_instance_stays_beside_what_is_changed(home: Path) -> None:
    async def work() -> Any:
        async with Runtime(home / "state") as jobs:
            jobs.register(home / "greeter.toml", config={"language": "de", "loudness": 5})
            before = await jobs.call("greeter")
            await command(home, "config", "greeter", "loudness=7")
            await changed(jobs, before)
            return await jobs.call("greeter")

    assert run(work()) == ["de", 7, None]


def test_settings_that_were_broken_by_hand_change_nothing_until_they_are_mended(home: Path) -> None:
    file = home / "state" / "instances.json"

    async def work() -> list[Any]:
        async with Runtime(home / "state") as jobs:
            seen = [await jobs.call("greeter")]
            file.write_text("{")
            await asyncio.to_thread(failwell, "capabilities", "list", "--store", str(home / "state"))
            seen.append(await jobs.call("greeter"))
            file.write_text('{"greeter": {"capability": "greeter", "config": {"language": "de"}}}')
            await changed(jobs, seen[0])
            return seen

    assert run(work()) == [["en", 3, None], ["en", 3, None]]
