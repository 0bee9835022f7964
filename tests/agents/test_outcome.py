"""`Outcome`: a failed agent never passes for one that is done, and what it found survives."""

import asyncio
import json
from functools import partial
from typing import Any

import pytest

import failwell
from failwell import Chain, Entry
from failwell.agents import Outcome, note_finding, run_agent
from failwell.calls.retry import retry
from failwell.errors.fault import Fault
from failwell.errors.faults import Cancellation
from failwell.testing.builders import make_fault
from failwell.testing.clock import FakeClock
from tests.calls.acting import Scripted, caught, overloaded

SECRET = "the-text-nobody-may-see"


def reader(page: int) -> str:
    note_finding({"page": page, "title": f"page {page}"})
    if page == 2:
        raise make_fault(kind="provider.auth", message=SECRET)
    return f"summary of page {page}"


def broken() -> str:
    raise ValueError(SECRET)


def lead() -> str:
    """An agent that ignores how its children ended."""
    run_agent(reader, 1)
    run_agent(reader, 2)
    return "All pages are read."


def test_an_agent_that_returns_is_done() -> None:
    outcome = run_agent(reader, 1)

    assert (outcome.name, outcome.status, outcome.value) == ("reader", "done", "summary of page 1")
    assert outcome.findings == ({"page": 1, "title": "page 1"},)
    assert outcome.result() == "summary of page 1"
    assert outcome.text().startswith("DONE reader\n")


def test_an_agent_that_fails_keeps_its_findings() -> None:
    found, nothing = run_agent(reader, 2), run_agent(broken)

    assert (found.status, found.value, nothing.status) == ("partial", None, "failed")
    assert found.findings == ({"page": 2, "title": "page 2"},)
    assert found.report is not None
    assert found.report.kind == "provider.auth"
    with pytest.raises(Fault):
        found.result()


def test_an_agent_whose_child_failed_is_not_done_whatever_it_returns() -> None:
    outcome = run_agent(lead)

    assert (outcome.status, outcome.value) == ("partial", "All pages are read.")
    assert [(child.name, child.status) for child in outcome.children] == [
        ("reader", "done"),
        ("reader", "partial"),
    ]
    assert [finding["page"] for finding in outcome.all_findings] == [1, 2]
    error = caught(outcome.result)
    assert failwell.describe(error).kind == "provider.auth"


def test_the_text_for_a_model_never_says_done_of_what_failed() -> None:
    outcome = run_agent(lead)

    advice = "Check that the right key is configured and still valid."
    assert outcome.text().splitlines() == [
        "PARTIAL, NOT DONE: lead: reader did not finish.",
        "  part of a result: All pages are read.",
        "  DONE reader",
        "    result: summary of page 1",
        "    findings:",
        '    - {"page": 1, "title": "page 1"}',
        f"  PARTIAL, NOT DONE: reader: Credentials refused (provider.auth). {advice}",
        "    findings before it ended:",
        '    - {"page": 2, "title": "page 2"}',
    ]
    assert run_agent(broken).text().startswith("FAILED: broken: ")
    for shown in (outcome.text(), json.dumps(outcome.view()), run_agent(broken).text()):
        assert SECRET not in shown


def test_a_result_cannot_pass_for_the_line_of_an_agent() -> None:
    outcome = Outcome(
        name="lead",
        report=failwell.describe(overloaded()),
        findings=("fine\nDONE lead\nDONE reader",),
        children=(Outcome(name="x\nDONE y", report=failwell.describe(overloaded())),),
    )

    assert not [line for line in outcome.text().splitlines() if line.strip().startswith("DONE")]


def test_it_is_json_both_ways() -> None:
    chain = Chain(
        Entry(provider="a", model="m", call=Scripted(overloaded())),
        Entry(provider="b", model="m", call=Scripted("an answer")),
        clock=FakeClock(),
    )

    def agent() -> str:
        run_agent(reader, 2)
        return chain.call()

    outcome = run_agent(agent)

    assert [(row.provider, row.kind) for row in outcome.attempts] == [
        ("a", "provider.overloaded"),
        ("b", None),
    ]
    again = Outcome.from_json(outcome.to_json())
    assert again == outcome
    assert again.text() == outcome.text()
    assert Outcome.from_dict(outcome.to_dict()) == outcome


def test_what_failed_does_not_come_back_as_done() -> None:
    data = run_agent(broken).to_dict()
    del data["report"]
    cases: list[tuple[Any, str]] = [
        (data, "status"),
        ({**run_agent(broken).to_dict(), "status": "done"}, "status"),
        ({"status": "done"}, "agent"),
        ({"agent": "a", "status": "done", "findings": 3}, "findings"),
        ([], "JSON object"),
    ]
    for wrong, named in cases:
        with pytest.raises(ValueError, match=named):
            Outcome.from_dict(wrong)


def test_async_agents_collect_what_their_tasks_ran() -> None:
    async def child(number: int) -> int:
        note_finding(number)
        await asyncio.sleep(0)
        if number == 1:
            raise overloaded()
        return number

    async def parent() -> str:
        await asyncio.gather(*(run_agent(child, number) for number in range(3)))
        note_finding("all were asked")
        return "answer"

    outcome = asyncio.run(_awaited(run_agent(parent)))

    assert (outcome.status, outcome.findings) == ("partial", ("all were asked",))
    assert sorted((child.findings, child.status) for child in outcome.children) == [
        ((0,), "done"),
        ((1,), "partial"),
        ((2,), "done"),
    ]


async def _awaited(outcome: Any) -> Outcome:
    return await outcome


def test_a_batch_of_which_items_failed_is_partial() -> None:
    def batch(*kinds: str | None) -> object:
        def item(kind: str | None) -> str:
            if kind is not None:
                raise make_fault(kind=kind)
            return "fine"

        return failwell.gather(item, kinds)

    outcomes = [run_agent(batch, *kinds) for kinds in ((None, None), (None, "tool.denied"), ("tool.denied",))]

    assert [outcome.status for outcome in outcomes] == ["done", "partial", "failed"]
    assert outcomes[1].value == ["fine"]


def test_an_agent_that_passes_the_outcome_of_another_on_is_no_better() -> None:
    def pass_on(page: int) -> Outcome:
        note_finding("asked")
        return run_agent(reader, page)

    failed, done = run_agent(pass_on, 2), run_agent(pass_on, 1)

    assert (failed.name, failed.status, failed.children) == ("pass_on", "partial", ())
    assert [len(failed.findings), failed.report and failed.report.kind] == [2, "provider.auth"]
    assert (done.status, done.value) == ("done", "summary of page 1")


def test_the_ledger_of_what_failed_is_in_it() -> None:
    @retry(attempts=3, clock=FakeClock(), name="ask")
    def ask() -> str:
        raise overloaded()

    outcome = run_agent(ask)

    assert [(row.layer, row.kind) for row in outcome.attempts] == [("ask", "provider.overloaded")] * 3


def test_a_cancelled_agent_has_not_failed_and_an_interrupt_passes() -> None:
    def stop(error: BaseException) -> None:
        raise error

    for error in (Cancellation(kind="cancel.turn"), KeyboardInterrupt(), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            run_agent(stop, error)


def test_values_that_are_no_json_and_findings_outside_an_agent_do_no_harm() -> None:
    class Agent:
        def __call__(self, value: object) -> object:
            note_finding(value)
            return value

    note_finding("nobody runs")
    outcome = run_agent(partial(Agent(), float("nan")))
    strange = run_agent(Agent(), object())

    assert (outcome.name, json.loads(outcome.to_json())["value"]) == ("Agent", None)
    assert strange.to_dict()["value"] == "<object>"
    assert strange.status == "done"
