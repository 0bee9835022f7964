"""Whatever a worker tells of a failure, the call that failed is answered with a report."""

from itertools import product
from json import loads
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.errors.report import ErrorReport
from failwell.jobs.manifest import Variable
from failwell.jobs.store.rows import read_result
from failwell.jobs.workers.death import death
from failwell.processes.worker import Ending
from tests.cli.running import failwell as command
from tests.jobs.workers import a_worker, reported, run

SOURCE = str(Path(failwell.__file__).parents[1])


def _told(python: str, name: str, *given: Any, **more: Any) -> ErrorReport:
    async def work() -> ErrorReport:
        async with a_worker("odd:Odd", python=python) as (worker, _):
            asked = {"name": name, "given": list(given), "more": more}
            return await reported(worker.call("one", asked, action="raise_typed"))

    return run(work())


@pytest.mark.parametrize(
    ("name", "given", "kind", "words"),
    [
        ("CapabilityDisabledError", ("other",), "worker.disabled", "capability 'other' is disabled"),
        ("CapabilityNotLoadedError", ("other",), "worker.not_loaded", "capability 'other' is not loaded"),
        ("CapabilityTimeoutError", ("other", 3.0), "worker.timeout", "did not finish within 3.0 s"),
        ("WorkerOOMError", ("other",), "worker.oom", "was killed"),
        ("CapabilityConfigError", ("wrong",), "validation.config_invalid", "wrong"),
        ("CapabilityError", ("plain",), "worker.fatal", "plain"),
    ],
)
def test_every_error_that_an_author_can_raise_arrives_as_what_it_is(
    name: str, given: tuple[Any, ...], kind: str, words: str, bare_python: str
) -> None:
    report = _told(bare_python, name, *given)

    assert report.kind == kind
    assert words in report.message


@pytest.mark.parametrize(
    ("name", "more", "kind"),
    [
        ("CapabilityTransientError", {"retry_after_seconds": "soon"}, "worker.transient"),
        ("CapabilityTransientError", {"retry_after_seconds": -5}, "worker.transient"),
        ("CapabilityInputError", {"fields_invalid": [3, None]}, "validation.input_invalid"),
        (
            "CapabilityResourceError",
            {"resource_shortfall": {"resource": "nonsense", "needed": "a", "available": None}},
            "resource.exhausted",
        ),
    ],
)
def test_fields_that_cannot_be_what_they_say_do_not_hide_the_error(
    name: str, more: dict[str, Any], kind: str, bare_python: str
) -> None:
    report = _told(bare_python, name, "it broke", **more)

    assert (report.kind, report.message) == (kind, "it broke")


@pytest.mark.parametrize(
    "error",
    [
        {"strange": 1},
        {"exception": None},
        {"exception": {"classes": [3]}},
        {"report": {"schema": "failwell.error/9", "kind": 3}},
    ],
)
def test_a_failure_told_in_words_that_nobody_knows_ends_its_call(error: dict[str, Any]) -> None:
    async def work() -> Any:
        async with a_worker("odd:Odd") as (worker, _):
            report = await reported(worker.call("one", {"frame": {"error": error}}, action="answer"))
            return report, await worker.call("two", {"value": 2})

    report, after = run(work())

    assert report.kind in ("worker.fatal", "internal.unknown")
    assert after == 2


def test_a_result_with_too_many_levels_is_refused_by_its_place() -> None:
    async def work() -> None:
        async with a_worker("odd:Odd") as (worker, _):
            for levels, kind in product([199, 400, 900, 5000], ["list", "dict"]):
                arguments = {"levels": levels, "kind": kind}
                report = await reported(worker.call("one", arguments, action="nested"))
                after = await worker.call("two", {"levels": 198, "kind": kind}, action="nested")

                assert report.kind == "worker.fatal", arguments
                assert report.message.startswith("result['found'][1]"), arguments
                assert "more than 200 levels deep" in report.message, arguments
                assert after["found"][0] == 0, arguments

    run(work())


@pytest.mark.parametrize("code", [1, -6, -11])
def test_a_neighbour_that_was_killed_for_memory_does_not_explain_another_end(code: int) -> None:
    ending = Ending(code=code, stderr=("ValueError: bad flag",), oom_kills=1)

    assert failwell.describe(death("sample", ending)).kind == "worker.crashed"


def test_a_killing_stays_for_memory_with_what_the_kernel_counted() -> None:
    report = failwell.describe(death("sample", Ending(code=-9, oom_kills=1)))

    assert (report.kind, report.details["oom_kills"]) == ("worker.oom", 1)
    assert report.details["out_of_memory"] == "confirmed"
    assert report.user_action.detail.startswith("Free memory")


@pytest.mark.parametrize("kills", [None, 0])
@pytest.mark.parametrize("code", [-9, 137])
def test_a_killing_that_no_counter_explains_is_assumed_and_the_advice_says_where_to_look(
    code: int, kills: int | None
) -> None:
    report = failwell.describe(death("sample", Ending(code=code, oom_kills=kills)))

    assert (report.kind, report.details["out_of_memory"]) == ("worker.oom", "assumed")
    assert "kernel log" in report.user_action.detail
    assert "somebody else killed" in report.user_action.detail
    shown = loads(command("describe", "--format", "json", given=report.to_json()).out)
    assert shown["details"]["out_of_memory"] == "assumed"
    text = command("describe", given=report.to_json()).out
    assert "details.out_of_memory: assumed" in text
    assert "kernel log" in text


@pytest.mark.parametrize("text", ['{"$file": "x"}', '{"$file": {"path": 3, "size": "x"}}', '{"$file": null}'])
def test_a_row_that_somebody_else_wrote_is_read_as_it_is(text: str) -> None:
    assert read_result(text) == loads(text)


@pytest.mark.parametrize(
    "name",
    [
        "KeyError",
        "FileNotFoundError",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("RuntimeError", "AttributeError", "ValueError")
        ),
    ],
)
@pytest.mark.parametrize("installed", [False, True], ids=["without failwell", "with failwell"])
def test_a_start_that_broke_in_initialize_says_so_and_keeps_what_was_raised(
    name: str, bare_python: str, *, installed: bool
) -> None:
    env = (Variable(name="PYTHONPATH", value=SOURCE),) if installed else ()

    async def work() -> Any:
        config = {"raise": [name, "model.bin"]}
        async with a_worker("odd:Odd", config=config, python=bare_python, env=env) as (worker, _):
            return await reported(worker.start())

    report = run(work())

    assert report.kind == "worker.start_failed"
    assert report.message.startswith(f"capability 'sample' could not be initialised: {name}")
    assert report.causes[0].type == name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CapabilityInputError", "validation.input_invalid"),
        pytest.param("CapabilityTransientError", "worker.transient", marks=pytest.mark.slow),
        pytest.param("CapabilityResourceError", "resource.exhausted", marks=pytest.mark.slow),
        pytest.param("CapabilityFatalError", "worker.fatal", marks=pytest.mark.slow),
        ("MemoryError", "resource.system_memory"),
    ],
)
@pytest.mark.parametrize("installed", [False, True], ids=["without failwell", "with failwell"])
def test_what_initialize_says_itself_keeps_its_kind(
    name: str, kind: str, bare_python: str, *, installed: bool
) -> None:
    env = (Variable(name="PYTHONPATH", value=SOURCE),) if installed else ()

    async def work() -> Any:
        config = {"raise": [name, "it broke"]}
        async with a_worker("odd:Odd", config=config, python=bare_python, env=env) as (worker, _):
            return await reported(worker.call("one"))

    assert run(work()).kind == kind


@pytest.mark.parametrize(
    ("name", "module"),
    [("Half\ud800", "mine"), ("Mine", "half\ud800"), ("Mine", "mine")],
    ids=["name", "module", "words"],
)
def test_names_and_words_that_nobody_can_send_do_not_end_the_worker(
    name: str, module: str, bare_python: str
) -> None:
    async def work() -> Any:
        async with a_worker("odd:Odd", python=bare_python) as (worker, _):
            asked = {"name": ascii(name), "module": ascii(module)}
            report = await reported(worker.call("one", asked, action="raise_named"))
            return report, await worker.call("two", {"value": 2}), worker.generation

    report, after, generation = run(work())

    assert report.kind in ("internal.unknown", "internal.bug")
    assert (after, generation) == (2, 1)
