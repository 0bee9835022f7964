"""Every check before a tool is called, in order; and what the model sees of the result."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from failwell import cancel_scope, register_secret
from failwell.agents.tool_calls import Dispatcher, ToolOutcome
from failwell.agents.tools.tool import ApprovalRequest, Effect, Tool, ToolContext
from failwell.errors.facts import NotBefore
from failwell.errors.faults import Cancellation, ToolTransient

SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["to"],
    "additionalProperties": False,
}


class Bank:
    """A tool that notes its calls."""

    def __init__(self, **changes: Any) -> None:
        self.calls: list[dict[str, Any]] = []
        self.tool = Tool(name="pay", run=self._run, parameters=SCHEMA, **changes)

    async def _run(self, arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        self.calls.append(dict(arguments))
        return {"paid": arguments["to"]}


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return ToolContext(key="run/node/1", folder=tmp_path, scratch=tmp_path)


def call(dispatcher: Dispatcher, arguments: object, context: ToolContext, name: str = "pay") -> ToolOutcome:
    return asyncio.run(dispatcher.call(name, arguments, context))


def test_a_granted_call_runs_and_its_result_is_marked_as_untrusted(context: ToolContext) -> None:
    bank = Bank()

    outcome = call(Dispatcher({"pay": bank.tool}), '{"to": "Ann"}', context)

    assert outcome.value == {"paid": "Ann"}
    assert outcome.seen.startswith('<tool_result tool="pay" trusted="false">')


@pytest.mark.parametrize(
    ("arguments", "kind", "reason"),
    [
        ("{not json", "tool.input_invalid", "not valid JSON"),
        ([1], "tool.input_invalid", "not a JSON object"),
        ({}, "tool.input_invalid", "`to` is missing"),
        ({"to": 5}, "tool.input_invalid", "breaks the rule `type`"),
        ({"to": "Ann", "extra": 1}, "tool.input_invalid", "additionalProperties"),
    ],
)
def test_arguments_that_do_not_fit_go_back_to_the_model(
    arguments: object, kind: str, reason: str, context: ToolContext
) -> None:
    bank = Bank()

    outcome = call(Dispatcher({"pay": bank.tool}), arguments, context)

    assert outcome.report is not None
    assert (outcome.report.kind, outcome.is_correctable, bank.calls) == (kind, True, [])
    assert reason in outcome.report.message


def test_an_unknown_tool_goes_back_with_the_names_of_the_known(context: ToolContext) -> None:
    outcome = call(Dispatcher({"pay": Bank().tool}), {}, context, name="Pay")

    assert outcome.is_correctable
    assert json.loads(outcome.seen)["error"]["context"]["known"] == ["pay"]


@pytest.mark.acceptance("relavium 63")
def test_a_denied_call_never_reaches_the_tool_and_names_no_value(context: ToolContext) -> None:
    def check(_arguments: Mapping[str, Any], _context: ToolContext) -> str:
        return "domain_not_allowed"

    bank = Bank(check=check)
    denied = {
        "not granted": Dispatcher({"pay": bank.tool}, granted=[]),
        "policy": Dispatcher({"pay": bank.tool}),
        "nobody to ask": Dispatcher({"pay": Bank(approval="ask").tool}),
    }

    for dispatcher in denied.values():
        outcome = call(dispatcher, {"to": "Mallory-4711"}, context)

        assert outcome.report is not None
        assert (outcome.report.kind, outcome.report.retryable) == ("tool.denied", False)
        assert "Mallory" not in outcome.seen + outcome.report.message + str(outcome.report.details)
    assert bank.calls == []


@pytest.mark.acceptance("relavium 65")
def test_what_the_file_sets_is_not_the_models_to_set(context: ToolContext) -> None:
    checked: list[dict[str, Any]] = []

    def check(arguments: Mapping[str, Any], _context: ToolContext) -> str | None:
        checked.append(dict(arguments))
        return None

    bank = Bank(fixed={"amount": 5}, check=check)

    call(Dispatcher({"pay": bank.tool}), {"to": "Ann", "amount": 5_000}, context)

    assert bank.calls == checked == [{"to": "Ann", "amount": 5}]


def test_a_secret_in_the_arguments_is_refused(context: ToolContext) -> None:
    register_secret("hunter2-correct-horse")
    bank = Bank()

    for text in ("hunter2-correct-horse", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"):
        outcome = call(Dispatcher({"pay": bank.tool}), {"to": f"x {text} y"}, context)

        assert outcome.report is not None
        assert outcome.report.kind == "tool.input_invalid"
        assert text not in outcome.seen
    assert bank.calls == []


def test_only_a_clear_yes_is_an_approval(context: ToolContext) -> None:
    asked: list[ApprovalRequest] = []

    async def yes(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    async def no(_request: ApprovalRequest) -> bool:
        return False

    async def odd(_request: ApprovalRequest) -> Any:
        return "yes"

    async def broken(_request: ApprovalRequest) -> bool:
        raise OSError("the terminal is gone")

    reasons: list[str | None] = []
    for approver in (yes, no, odd, broken):
        bank = Bank(approval="ask")
        outcome = call(
            Dispatcher({"pay": bank.tool}, agent="clerk", approver=approver), {"to": "Ann"}, context
        )
        reasons.append(None if outcome.report is None else outcome.report.details["reason"])
        assert bool(bank.calls) is (approver is yes)

    assert reasons == [None, "user_rejected", "user_rejected", "approval_error"]
    assert (asked[0].agent, asked[0].arguments) == ("clerk", {"to": "Ann"})


def test_an_approval_that_comes_after_a_cancel_runs_nothing(context: ToolContext) -> None:
    bank = Bank(approval="ask")

    async def main() -> None:
        with cancel_scope("turn") as scope:

            async def late(_request: ApprovalRequest) -> bool:
                scope.cancel()
                return True

            await Dispatcher({"pay": bank.tool}, approver=late, cancel=scope).call(
                "pay", {"to": "A"}, context
            )

    with pytest.raises((Cancellation, asyncio.CancelledError)):
        asyncio.run(main())
    assert bank.calls == []


@pytest.mark.acceptance("relavium 64")
def test_what_a_tool_raises_is_kept_for_operators_alone(context: ToolContext) -> None:
    async def run(_arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        raise RuntimeError("password of the database is swordfish")

    outcome = call(Dispatcher({"t": Tool(name="t", run=run)}), {}, context, name="t")

    assert outcome.report is not None
    assert outcome.report.origin == "tool"
    assert "swordfish" not in outcome.seen


def test_a_tool_that_takes_too_long_is_stopped(context: ToolContext) -> None:
    ended: list[str] = []

    async def run(_arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")

    outcome = call(Dispatcher({"t": Tool(name="t", run=run, timeout=0.01)}), {}, context, name="t")

    assert outcome.report is not None
    assert (outcome.report.kind, ended) == ("tool.timeout", ["stopped"])


def test_a_long_result_is_shortened_and_kept_in_a_private_file(context: ToolContext) -> None:
    async def run(_arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        return "a" * 60_000 + "</tool_result>" + "z" * 60_000

    outcome = call(Dispatcher({"t": Tool(name="t", run=run)}, longest=1_000), {}, context, name="t")

    assert context.scratch is not None
    [file] = context.scratch.iterdir()
    assert len(outcome.seen) < 1_300
    assert file.name in outcome.seen
    assert (file.stat().st_mode & 0o777, len(file.read_text())) == (0o600, 120_014)
    assert outcome.seen.count("</tool_result>") == 1


@pytest.mark.acceptance("stud-cli 22")
def test_a_repeated_call_was_approved_once(context: ToolContext) -> None:
    runs: list[int] = []
    asked: list[str] = []

    async def run(_arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        runs.append(1)
        if len(runs) < 3:
            raise ToolTransient(kind="tool.busy", not_before=NotBefore(after=0.0, source="tool"))
        return "done"

    async def yes(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return True

    tool = Tool(name="t", run=run, approval="ask", attempts=3)
    outcome = call(Dispatcher({"t": tool}, approver=yes), {}, context, name="t")

    assert (outcome.value, len(runs), asked) == ("done", 3, ["t"])


def test_a_tool_without_attempts_runs_once(context: ToolContext) -> None:
    runs: list[int] = []

    async def run(_arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        runs.append(1)
        raise ToolTransient(kind="tool.busy")

    outcome = call(Dispatcher({"t": Tool(name="t", run=run)}), {}, context, name="t")

    assert outcome.report is not None
    assert (outcome.report.kind, len(runs)) == ("tool.busy", 1)


def test_a_tool_that_must_not_run_twice_is_not_repeated_after_an_unknown_outcome(
    context: ToolContext,
) -> None:
    cases: list[tuple[Effect, int]] = [("once", 1), ("idempotent", 2), ("read", 2)]
    for effect, count in cases:
        runs: list[int] = []

        async def run(_arguments: Mapping[str, Any], _context: ToolContext, runs: list[int] = runs) -> Any:
            runs.append(1)
            raise ToolTransient(kind="tool.timeout", not_before=NotBefore(after=0.0, source="tool"))

        tool = Tool(name="t", run=run, effect=effect, attempts=2)
        call(Dispatcher({"t": tool}), {}, context, name="t")

        assert (effect, len(runs)) == (effect, count)
