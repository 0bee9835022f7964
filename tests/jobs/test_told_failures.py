"""Whatever a worker tells of a failure, the call that failed is answered with a report."""

from typing import Any

import pytest

from failwell.report.record import ErrorReport
from tests.jobs.workers import a_worker, reported, run


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
