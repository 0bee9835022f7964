"""Schedules: their times, what was missed, one firing among several hosts, and what survives a restart."""

import asyncio
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from failwell.errors.faults import (
    CapabilityConfigError,
    CapabilityInputError,
    CapabilityNotLoadedError,
)
from failwell.jobs import AsyncClient, Client, ScheduleSpec, read_manifest
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.faults import UnknownSchedule
from failwell.jobs.job import Job
from failwell.jobs.schedule_spec import due_times, next_time
from failwell.jobs.schedules import Scheduler
from failwell.jobs.store.job_filter import JobFilter
from failwell.jobs.store.sqlite import JobStore
from tests.cli.job_place import Place, wait_until
from tests.jobs.queues import a_capability, a_runtime
from tests.jobs.workers import run, until

MINUTE = 60.0
HOUR = 3_600.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


NOON = at("2026-05-04T12:00:00+00:00")


def _hourly(**fields: object) -> ScheduleSpec:
    return ScheduleSpec(**{"name": "hourly", "cron": "0 * * * *", **fields})  # pyright: ignore[reportArgumentType]


def test_what_was_missed_is_skipped_made_up_for_once_or_all() -> None:
    handled, now = NOON, NOON + 5 * HOUR + 30 * MINUTE
    newest = NOON + 5 * HOUR

    assert due_times(_hourly(missed="skip"), handled, now) == ([], newest)
    assert due_times(_hourly(missed="once"), handled, now) == ([newest], newest)
    assert due_times(_hourly(missed="all"), handled, now) == ([NOON + n * HOUR for n in range(1, 6)], newest)
    assert due_times(_hourly(missed="all", most_missed=2), handled, now) == ([newest - HOUR, newest], newest)
    # On time is not missed, and what was handled does not come again.
    assert due_times(_hourly(missed="skip"), handled, newest + 2) == ([newest], newest)
    assert due_times(_hourly(), newest, newest) == ([], newest)
    assert due_times(_hourly(), newest, newest + HOUR - 0.01) == ([], newest)


def test_a_time_that_the_clock_leaves_out_or_has_twice_comes_once_a_day() -> None:
    spec = ScheduleSpec(name="night", cron="30 2 * * *", timezone="Europe/Berlin", missed="all")

    spring, _ = due_times(spec, at("2026-03-28T12:00+01:00"), at("2026-03-30T12:00+02:00"))
    autumn, _ = due_times(spec, at("2026-10-24T12:00+02:00"), at("2026-10-26T12:00+01:00"))

    assert spring == [at("2026-03-29T03:00+02:00"), at("2026-03-30T02:30+02:00")]
    assert autumn == [at("2026-10-25T02:30+02:00"), at("2026-10-26T02:30+01:00")]
    assert next_time(spec, at("2026-03-28T12:00+01:00")) == spring[0]


MANIFEST = """name = "echo"
object = "tools:echo"
[[schedule]]
name = "hourly"
cron = "0 * * * *"
arguments = { value = 5 }
priority = 3
"""


@pytest.fixture
def registry(tmp_path: Path) -> CapabilityRegistry:
    (tmp_path / "echo.toml").write_text(MANIFEST)
    registry = CapabilityRegistry(tmp_path / "state")
    registry.add(tmp_path / "echo.toml")
    return registry


class _Host:
    """The scheduler of one host, with a clock of its own."""

    def __init__(self, registry: CapabilityRegistry) -> None:
        self.now = NOON + 1
        self.store = JobStore(registry.folder)
        self.scheduler = Scheduler(self.store, registry, lambda: self.now)

    def look(self, now: float) -> list[Job]:
        """The jobs that are stored after a look at this time."""

        async def work() -> None:
            self.scheduler.look()
            self.scheduler.close()

        self.now = now
        asyncio.run(work())
        return self.store.select(JobFilter())[::-1]


def test_a_schedule_of_a_manifest_submits_its_job_and_remembers_it(
    registry: CapabilityRegistry, tmp_path: Path
) -> None:
    host = _Host(registry)
    with closing(host.store):
        first = host.look(NOON + 1)
        second = host.look(NOON + HOUR)
        again = host.look(NOON + HOUR + 1)
        (stored,) = host.store.schedules()
        # A clock that is set back does not repeat a time.
        back = host.look(NOON + HOUR - 10), host.look(NOON + HOUR + 10)
        registry.add(_changed(tmp_path, MANIFEST.partition("[[")[0]), replace=True)
        host.look(NOON + 2 * HOUR)
        gone = host.store.schedules()

    assert first == []
    assert [job.request.key for job in second] == ["schedule/echo/hourly/2026-05-04T13:00:00Z"]
    assert (second[0].request.arguments, second[0].request.priority) == ({"value": 5}, 3)
    assert again == second == back[0] == back[1]
    assert (stored.last_at, stored.last_job) == (NOON + HOUR, second[0].id)
    assert gone == []


def _changed(folder: Path, text: str) -> Path:
    file = folder / "changed.toml"
    file.write_text(text)
    return file


def test_the_next_host_makes_up_for_what_was_missed(registry: CapabilityRegistry, tmp_path: Path) -> None:
    for now in (NOON + 1, NOON + 5 * HOUR + 1):
        host = _Host(registry)
        with closing(host.store):
            jobs = host.look(now)
    assert [job.request.key for job in jobs] == ["schedule/echo/hourly/2026-05-04T17:00:00Z"]

    registry.add(_changed(tmp_path, MANIFEST.replace("0 * * * *", "30 * * * *")), replace=True)
    host = _Host(registry)
    with closing(host.store):
        # A time that the schedule did not have then was not missed.
        assert host.look(NOON + 6 * HOUR) == jobs
        assert len(host.look(NOON + 6 * HOUR + 30 * MINUTE)) == 2


def test_several_hosts_fire_once(registry: CapabilityRegistry) -> None:
    hosts = [_Host(registry) for _ in range(4)]
    for host in hosts:
        host.look(NOON + 1)
    begin = threading.Barrier(len(hosts))

    def race(host: _Host) -> None:
        for hour in range(1, 6):
            begin.wait()
            host.look(NOON + hour * HOUR)

    threads = [threading.Thread(target=race, args=(host,)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    jobs = hosts[0].store.select(JobFilter())[::-1]
    for host in hosts:
        host.store.close()
    assert [job.request.key for job in jobs] == [
        f"schedule/echo/hourly/2026-05-04T{12 + hour}:00:00Z" for hour in range(1, 6)
    ]


def test_a_paused_schedule_misses_nothing(registry: CapabilityRegistry) -> None:
    host = _Host(registry)
    with closing(host.store):
        host.look(NOON + 1)
        assert host.store.pause_schedule("echo/hourly", NOON + 2, on=True)
        assert not host.store.pause_schedule("echo/hourly", NOON + 2, on=True)
        paused = host.look(NOON + 3 * HOUR)
        host.store.pause_schedule("echo/hourly", NOON + 3 * HOUR + 1, on=False)
        resumed = host.look(NOON + 3 * HOUR + 2)
        later = host.look(NOON + 4 * HOUR)

    assert paused == resumed == []
    assert len(later) == 1


def test_a_program_adds_changes_and_removes_a_schedule(registry: CapabilityRegistry) -> None:
    with Client(registry.folder) as client:
        added = client.with_options(priority=2).schedule(
            "echo", "*/5 * * * *", name="often", timezone="Asia/Tokyo", arguments={"value": 1}, missed="all"
        )
        changed = client.schedule("echo", "*/10 * * * *", name="often")
        ids = [schedule.id for schedule in client.schedules()]
        with pytest.raises(CapabilityInputError, match=r"`cron`: bad minute.*`timezone`: `Mars`") as refusal:
            client.schedule("echo", "99 * * * *", name="bad", timezone="Mars")
        with pytest.raises(CapabilityInputError, match="is in a manifest"):
            client.schedule("echo", "* * * * *", name="hourly")
        with pytest.raises(CapabilityInputError, match="is in a manifest"):
            client.unschedule("echo/hourly")
        with pytest.raises(CapabilityNotLoadedError):
            client.schedule("unknown", "* * * * *", name="n")
        client.unschedule("echo/often")
        with pytest.raises(UnknownSchedule):
            client.unschedule("echo/often")

    assert (added.id, added.spec.priority, added.spec.missed) == ("echo/often", 2, "all")
    assert changed.spec.cron == "*/10 * * * *"
    assert ids == ["echo/hourly", "echo/often"]
    assert refusal.value.fields_invalid is not None

    async def work() -> list[str]:
        async with AsyncClient(registry.folder) as client:
            await client.schedule("echo", "0 0 * * *", name="daily")
            names = [schedule.id for schedule in await client.schedules()]
            await client.unschedule("echo/daily")
            return names

    assert asyncio.run(work()) == ["echo/daily", "echo/hourly"]


def test_a_runtime_stores_the_schedules_of_what_it_registers(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path) as jobs:
            jobs.register(a_capability(schedule=(_hourly(arguments={"value": 1}),)))
            await until(lambda: jobs.store.schedules() != [])
            (stored,) = jobs.store.schedules()
            assert (stored.id, stored.source, stored.spec.arguments) == (
                "worker/hourly",
                "program",
                {"value": 1},
            )
            assert jobs.store.remove_schedule("worker/hourly")

    run(work())


def test_a_bad_schedule_is_an_error_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    cases = {
        'cron = "61 * * * *"': r"m\.toml:5:8: .*bad minute",
        'cron = "0 3 * * *"\ntimezone = "Mars/Olympus"': r"m\.toml:6:12: `Mars/Olympus` is no time zone",
        'cron = "0 3 * * *"\nmissed = "never"': r"m\.toml:6:10: .*missed",
        'cron = "0 3 * * *"\n[[schedule]]\nname = "n"\ncron = "1 1 * * *"': "two schedules are called `n`",
    }
    for text, words in cases.items():
        file.write_text(f'name = "a"\nobject = "a:b"\n[[schedule]]\nname = "n"\n{text}\n')
        with pytest.raises(CapabilityConfigError, match=words):
            read_manifest(file)


@pytest.mark.slow
def test_the_commands_show_pause_run_and_remove_schedules(tmp_path: Path) -> None:
    place = Place(tmp_path, "echo")
    empty = place("schedules", "list")
    (tmp_path / "echo.toml").write_text(
        MANIFEST.replace("0 * * * *", "* * * * *").replace("hourly", "minutely")
    )
    assert place("capabilities", "add", str(tmp_path / "echo.toml"), "--force").code == 0
    began = datetime.now(UTC)
    (listed,) = place("schedules", "list", "--json").data
    # As if no host had run for a while: the missed time is made up for at once.
    with closing(JobStore(tmp_path / "state")) as store:
        store.pause_schedule("echo/minutely", 0.0, on=True)
        store._database.connection.execute("UPDATE job_schedules SET paused = 0, handled = handled - 600")  # pyright: ignore[reportPrivateUsage]
    with place.start("workers", "run"), place.start("workers", "run"), place.start("workers", "run"):
        wait_until(lambda: place("jobs", "list", "--status", "completed", "--json").data != [])
        place.until_hosted(tmp_path / "state", 3)
        jobs = place("jobs", "list", "--json").data
        (fired,) = place("schedules", "list", "--json").data
        job = place("jobs", "show", fired["last_job"], "--json").data
        paused = place("schedules", "pause", "echo/minutely", "--json").data
    by_hand = place("schedules", "run", "echo/minutely", "--wait", "--json").data
    resumed = place("schedules", "resume", "echo/minutely")
    kept = place("schedules", "remove", "echo/minutely")
    unknown = place("schedules", "pause", "echo/none")

    assert "`[[schedule]]`" in empty.err
    # One for what was missed, and one more if a minute has begun since; each time once, whichever host was first.
    assert len({job["key"] for job in jobs}) == len(jobs) <= 2
    assert (listed["id"], listed["cron"], listed["status"]) == ("echo/minutely", "* * * * *", "active")
    assert datetime.fromisoformat(listed["next"]) > began
    assert job["key"].startswith("schedule/echo/minutely/")
    assert (job["actor"], job["result"]) == ("schedule/echo/minutely", 5)
    assert (paused["status"], paused["changed"], paused["next"]) == ("paused", True, None)
    assert by_hand["result"] == 5
    assert "is active; its next time is" in resumed.out
    assert (kept.code, unknown.code) == (2, 2)
