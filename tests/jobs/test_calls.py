"""Calls into a worker: results, errors and words come back as they left."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.capability import (
    CapabilityError,
    CapabilityFatalError,
    CapabilityInputError,
    CapabilityResourceError,
    CapabilityTransientError,
    ResourceShortfall,
)
from failwell.errors.report import ErrorReport, TracebackPolicy
from failwell.jobs import Runtime
from failwell.jobs.job import JobState
from failwell.jobs.workers.protocol import FileHandle, Measured, OutputLine, Progress, Used
from tests.jobs.workers import SAMPLES, a_manifest, a_worker, failure, reported, run

CLASSES: dict[str, type[CapabilityError]] = {
    "user_input": CapabilityInputError,
    "transient": CapabilityTransientError,
    "resource": CapabilityResourceError,
    "fatal": CapabilityFatalError,
}


@pytest.fixture(params=["without failwell", "with failwell"])
def environment(request: pytest.FixtureRequest, bare_python: str) -> dict[str, Any]:
    """A worker's environment, with failwell in it and without."""
    if request.param == "without failwell":
        return {"python": bare_python}
    return {"python": bare_python, "path": (SAMPLES, str(Path(failwell.__file__).parents[1]))}


def test_a_result_comes_back_as_it_was_returned() -> None:
    given: dict[str, Any] = {
        "text": "häß \U0001f600 \x00",
        "nested": [1, 2.5, None, True, {"deep": []}],
        "big": 2**60,
    }

    async def work() -> Any:
        async with a_worker() as (worker, _):
            return await worker.call("one", {"value": given})

    assert run(work()) == given


def test_a_function_is_a_capability_too() -> None:
    async def work() -> Any:
        async with a_worker("sample:double") as (worker, _):
            return await worker.call("one", {"number": 21})

    assert run(work()) == 42


def test_a_coroutine_is_awaited() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            return await worker.call("one", {"value": 7}, action="soon")

    assert run(work()) == 7


@pytest.mark.acceptance("cjm-substrate 21")
def test_a_typed_error_is_the_same_through_a_call_a_job_and_a_stream(
    environment: dict[str, Any], tmp_path: Path
) -> None:
    async def work() -> list[tuple[str, str, ErrorReport]]:
        reports: list[tuple[str, str, ErrorReport]] = []
        manifest = a_manifest(**environment)
        once = {"max_attempts": 1}
        async with (
            a_worker(**environment) as (worker, _),
            Runtime(tmp_path / "state", registry=tmp_path / "registry") as jobs,
        ):
            instance = jobs.register(manifest)

            async def consume(items: AsyncIterator[Any]) -> None:
                async for _item in items:
                    pass

            for category, error_class in CLASSES.items():
                arguments = {"category": category}
                job = await jobs.submit(instance, arguments, action="typed", control=once)
                ended = await jobs.wait(job.id)
                assert ended.state is JobState.FAILED
                assert ended.error is not None
                stored = jobs.store.find(job.id)
                assert stored is not None
                assert stored.error == ended.error
                faults = {
                    "call of a worker": worker.call("one", arguments, action="typed"),
                    "stream of a worker": consume(worker.stream("two", arguments, action="typed_stream")),
                    "call": jobs.call(instance, arguments, action="typed", control=once),
                    "stream": consume(jobs.stream(instance, arguments, action="typed_stream", control=once)),
                }
                reports.append((category, "job", ended.error))
                for channel, call in faults.items():
                    fault = await failure(call)
                    if "worker" in channel:
                        assert isinstance(fault, error_class), channel
                    reports.append((category, channel, failwell.describe(fault)))
        return reports

    for category, channel, report in run(work()):
        place = f"{category} through the {channel}"
        short = report.resource_shortfall

        assert report.category.job == category, place
        assert report.error_type == CLASSES[category].__name__, place
        assert report.internal is not None, place
        assert "in typed" in (report.internal.traceback or ""), place
        assert report.scene.capability == "sample", place
        assert report.fields_invalid == (("a", "b") if category == "user_input" else None), place
        wait = None if report.not_before is None else report.not_before.after
        assert wait == (2.5 if category == "transient" else None), place
        numbers = None if short is None else (short.resource, short.needed, short.available)
        assert numbers == (("gpu_vram_mb", 16000, 8000) if category == "resource" else None), place


BARE = {
    "FileNotFoundError": "user_input",
    "ValueError": "user_input",
    "TimeoutError": "transient",
    "ConnectionResetError": "transient",
    "MemoryError": "resource",
    "RuntimeError": "fatal",
    "ZeroDivisionError": "fatal",
    "AssertionError": "fatal",
}


def test_a_bare_exception_is_classified_as_if_it_was_raised_here(environment: dict[str, Any]) -> None:
    async def work() -> Any:
        async with a_worker(traceback=TracebackPolicy.FULL, **environment) as (worker, _):
            return [await reported(worker.call(name, {"name": name}, action="bare")) for name in BARE]

    for report, (name, category) in zip(run(work()), BARE.items(), strict=True):
        assert (report.category.job, report.error_type, report.message) == (category, name, "it broke")
        assert report.scene.job == name


def test_causes_cross_with_the_error_that_they_caused(environment: dict[str, Any]) -> None:
    async def work() -> Any:
        async with a_worker(traceback=TracebackPolicy.FULL, **environment) as (worker, _):
            return await reported(worker.call("one", action="chained"))

    report = run(work())

    assert report.error_type == "RuntimeError"
    assert [cause.type for cause in report.causes] == ["ConnectionResetError"]
    assert "peer went away" in ((report.internal and report.internal.traceback) or "")


def test_an_operating_system_error_keeps_its_number(environment: dict[str, Any]) -> None:
    async def work() -> Any:
        async with a_worker(**environment) as (worker, _):
            return await reported(worker.call("one", action="full_disk"))

    assert run(work()).kind == "resource.disk"


@pytest.mark.parametrize(
    ("module", "name", "text"),
    [
        (
            "torch",
            "OutOfMemoryError",
            "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has 23.00 GiB of which 8.00 GiB is free.",
        ),
        (
            "jaxlib.xla_extension",
            "XlaRuntimeError",
            "RESOURCE_EXHAUSTED: Out of memory trying to allocate 21474836480 bytes.",
        ),
        ("builtins", "RuntimeError", "MPS backend out of memory (MPS allocated: 9 GB, max allowed: 9 GB)."),
    ],
    ids=["cuda", "jax", "mps"],
)
def test_accelerator_memory_that_ran_out_is_a_resource_failure(
    module: str, name: str, text: str, environment: dict[str, Any]
) -> None:
    async def work() -> Any:
        async with a_worker(**environment) as (worker, _):
            if module == "builtins":
                return await reported(worker.call("one", {"name": name, "text": text}, action="bare"))
            call = worker.call("one", {"module": module, "name": name, "text": text}, action="foreign")
            return await reported(call)

    report = run(work())

    assert report.category.job == "resource"
    assert report.kind == "resource.gpu_memory"
    if module == "torch":
        assert report.resource_shortfall is not None
        assert (report.resource_shortfall.needed, report.resource_shortfall.available) == (20480, 8192)


def test_memory_that_jax_ran_out_of_is_reported_with_what_was_needed_and_what_was_free(
    environment: dict[str, Any],
) -> None:
    text = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 21474836480 bytes."

    async def work() -> Any:
        async with a_worker(**environment) as (worker, _):
            arguments = {"text": text, "used": 3 * 1024**3, "limit": 12 * 1024**3}
            return await reported(worker.call("one", arguments, action="exhausted"))

    report = run(work())

    assert report.kind == "resource.gpu_memory"
    assert report.resource_shortfall == ResourceShortfall("gpu_vram_mb", needed=20480, available=9216)


@pytest.mark.acceptance("cjm-substrate 27")
def test_a_result_that_cannot_be_sent_is_fatal_and_says_which_part() -> None:
    unsendable = {
        "not_a_number": "result['scores'][1] is nan",
        "endless": "result is inf",
        "an_object": "result['model'] is of type object",
        "a_set": "result is of type set",
        "half_a_character": "result is text with a lone surrogate",
        "count": "result is of type generator",
    }

    async def work() -> None:
        async with a_worker() as (worker, _):
            for action, words in unsendable.items():
                arguments = {"to": 3} if action == "count" else {}
                report = await reported(worker.call("one", arguments, action=action))
                assert await worker.call("two", {"value": 1}) == 1, action
                assert (report.category.job, report.retryable) == ("fatal", False), action
                assert words in report.message

    run(work())


def test_a_result_that_is_too_large_is_fatal_and_says_what_to_do() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            return await reported(worker.call("one", {"megabytes": 70}, action="huge"))

    report = run(work())

    assert report.category.job == "fatal"
    assert "return it as bytes" in report.message


def test_bytes_come_back_as_a_file_that_only_we_can_read(run_folder: str) -> None:
    async def work() -> Any:
        async with a_worker(folder=run_folder) as (worker, _):
            return await worker.call("one", action="binary")

    made = run(work())

    handle = made["audio"]
    assert isinstance(handle, FileHandle)
    assert made["rate"] == 16000
    assert Path(handle.path).read_bytes() == b"\x00\x01\x02" * 1000
    assert handle.size == 3000
    assert str(Path(handle.path).parent) == run_folder
    assert stat.S_IMODE(Path(handle.path).stat().st_mode) == 0o600


def test_arguments_that_do_not_fit_are_the_callers_and_each_is_named() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            unknown = await reported(worker.call("one", {"valeu": 1, "also": 2}))
            missing = await reported(worker.call("two", action="typed"))
            action = await reported(worker.call("three", action="nothing_like_it"))
            private = await reported(worker.call("four", action="__init__"))
            hook = await reported(worker.call("five", action="cleanup"))
            unsendable = await failure(worker.call("six", {"value": float("nan")}))
            return unknown, missing, action, private, hook, unsendable

    unknown, missing, action, private, hook, unsendable = run(work())

    assert (unknown.category.job, unknown.fields_invalid) == ("user_input", ("valeu", "also"))
    assert missing.fields_invalid == ("category",)
    assert [one.fields_invalid for one in (action, private, hook)] == [("action",)] * 3
    assert "`execute`" in action.message
    assert isinstance(unsendable, CapabilityInputError)


def test_a_capability_that_calls_exit_fails_its_job_and_keeps_its_worker() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            before = await worker.call("one", action="pid")
            report = await reported(worker.call("two", action="leaves"))
            return report, before, await worker.call("three", action="pid")

    report, before, after = run(work())

    assert (report.category.job, report.error_type) == ("fatal", "SystemExit")
    assert before == after


def test_what_a_call_prints_and_logs_is_told_with_its_job_and_never_mistaken_for_a_frame() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            await worker.call("one", action="talk")
            await worker.call("two", {"lines": 2000}, action="shout")
        return told.of(OutputLine)

    lines = run(work())

    ours = [(one.stream, one.text, one.level) for one in lines if one.job == "one"]
    assert ours == [
        ("stdout", "to stdout", ""),
        ("stderr", "to stderr", ""),
        ("log", "to the log", "WARNING"),
        ("stdout", "100%", ""),
        ("stdout", "no newline at the end", ""),
    ]
    assert [one.text for one in lines if one.job is None] == ["past python"]
    assert [one.text for one in lines if one.job == "two"] == [f"line {n}" for n in range(2000)]
    assert len({one.session for one in lines}) == 1


@pytest.mark.acceptance("cjm-substrate 37")
def test_progress_and_usage_belong_to_their_call(tmp_path: Path) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            await worker.call("one", action="halfway")
            await worker.call("two", {"seconds": 0.02}, action="patient")
        return told.of(Progress), told.of(Used)

    progress, used = run(work())

    assert [(one.job, one.fraction, one.message) for one in progress if one.job == "one"] == [
        ("one", 0.5, "halfway")
    ]
    second = [one.fraction for one in progress if one.job == "two"]
    assert second[0] < 0.5
    assert [dict(one.amounts) for one in used] == [{"tokens": 3}, {"tokens": 4}]


def test_only_a_file_of_the_runs_own_folder_becomes_a_handle(run_folder: str) -> None:
    async def work() -> Any:
        async with a_worker(folder=run_folder) as (worker, _):
            return (
                await worker.call("one", {"path": "/etc/passwd"}, action="forge"),
                await worker.call("two", {"path": f"{run_folder}/../x"}, action="forge"),
                await worker.call("three", action="forge_badly"),
            )

    outside, above, odd = run(work())

    assert outside == {"$file": {"path": "/etc/passwd", "size": 1}}
    assert not isinstance(above, FileHandle)
    assert odd == [{"$file": None}, {"$file": {"path": 3}}, {"$file": {"size": "x"}}]


def test_what_a_capability_forks_may_print_and_cannot_disturb_its_answers() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            made = await worker.call("one", {"times": 20}, action="fork")
            after = await worker.call("two", {"value": 2})
        return made, after, told

    made, after, told = run(work())

    assert made == [0] * 20
    assert after == 2
    lines = [one.text for one in told.of(OutputLine)]
    assert sorted(one for one in lines if one.startswith("forked ") and one != "forked too") == sorted(
        f"forked {n}" for n in range(20)
    )
    assert [one.text for one in told.of(OutputLine) if one.job == "one"] == [f"parent {n}" for n in range(20)]
    assert told.of(Progress) == []


def test_a_worker_that_writes_nonsense_on_the_channel_is_ended_and_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            report = await reported(worker.call("one", action="babble"))
            return report, await worker.call("two", {"value": 2})

    report, after = run(work())

    assert report.kind == "worker.crashed"
    assert after == 2
    assert "no frame of ours" in caplog.text


def test_what_a_call_needed_at_most_is_told_with_its_answer_if_it_is_more_than_before() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, told):
            await worker.call("small", {"value": 1})
            await worker.call("large", {"megabytes": 64}, action="eat")
            await failure(worker.call("failing", {"name": "ValueError"}, action="bare"))
        return told.of(Measured)

    measured = run(work())

    assert [one.job for one in measured] == ["small", "large"]
    assert measured[1].ram_peak_mb >= measured[0].ram_peak_mb + 60
    assert measured[0].gpu_peak_mb is None


def test_a_listener_that_raises_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_event: object) -> None:
        raise RuntimeError("listeners may fail")

    async def work() -> Any:
        async with a_worker() as (worker, _):
            worker.listen(broken)
            return await worker.call("one", {"value": 1})

    assert run(work()) == 1
    assert "a listener of worker sample failed" in caplog.text
