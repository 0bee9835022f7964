"""The tools of real MCP servers under the plugin, called by a real client through one session."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from failwell.calls.attempt_loop import AttemptFailed
from failwell.calls.guard import Guard
from failwell.errors.report import ErrorReport
from failwell.integrations.mcp import from_tool_result, is_repeatable, reliability
from failwell.store import SqliteClaims
from failwell.testing import FakeClock
from failwell.testing.builders import make_fault
from tests.calls.acting import even, told
from tests.installed import need

# What belongs to mcp is imported by the tests: every process that runs tests would load it otherwise.
need("mcp_types")

SECRET = "the-text-nobody-may-see"
READS = {"read_only_hint": True}
PAYS = {"idempotent_hint": False}
REPEATS = {"idempotent_hint": True}


@pytest.fixture(autouse=True)
def _no_log() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Tool:
    """A tool with one outcome after the other, the last one for ever."""

    def __init__(self, *outcomes: Exception | str) -> None:
        self.outcomes = outcomes
        self.calls = 0

    def __call__(self) -> str:
        outcome = self.outcomes[min(self.calls, len(self.outcomes) - 1)]
        self.calls += 1
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def annotations(hints: dict[str, bool] | None) -> Any:
    from mcp_types import ToolAnnotations

    return None if hints is None else ToolAnnotations(**cast("Any", hints))


def an_mcp_server(tool: Tool, hints: dict[str, bool] | None) -> Any:
    from mcp.server.mcpserver import MCPServer

    server: Any = MCPServer("tests")

    @server.tool(annotations=annotations(hints))
    def act(count: int = 1) -> str:
        return tool()

    return server


def a_low_level_server(tool: Tool, hints: dict[str, bool] | None) -> Any:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    listed = types.Tool(name="act", input_schema={"type": "object"}, annotations=annotations(hints))

    async def list_tools(_ctx: Any, _params: Any) -> Any:
        return types.ListToolsResult(tools=[listed])

    async def call_tool(_ctx: Any, _params: Any) -> Any:
        return types.CallToolResult(content=[types.TextContent(type="text", text=tool())])

    return Server("tests", on_list_tools=list_tools, on_call_tool=call_tool)


SERVERS = [an_mcp_server, a_low_level_server]


def call(server: Any, *arguments: dict[str, Any]) -> list[Any]:
    """The results of one call after the other, in one session."""
    from mcp.client import Client

    async def run() -> list[Any]:
        async with Client(server) as client:
            return [await client.call_tool("act", each) for each in arguments or ({},)]

    return asyncio.run(run())


def report_of(result: Any) -> ErrorReport:
    report = from_tool_result(result)
    assert report is not None
    return report


@pytest.mark.parametrize("make", SERVERS)
def test_a_tool_that_raises_answers_with_a_type_and_the_session_goes_on(make: Callable[..., Any]) -> None:
    tool = Tool(ValueError(SECRET), "fine")
    reports: list[ErrorReport] = []
    server = reliability(make(tool, None), on_tool_error=reports.append)

    failed, answered = call(server, {}, {})

    assert SECRET not in failed.model_dump_json()
    assert (failed.is_error, report_of(failed).kind) == (True, "tool.failed")
    assert (answered.is_error, answered.content[0].text) == (False, "fine")
    assert [(report.kind, report.scene.tool) for report in reports] == [("tool.failed", "act")]


@pytest.mark.parametrize("make", SERVERS)
@pytest.mark.parametrize(
    ("hints", "failure", "calls", "retryable"),
    [
        (READS, make_fault(kind="provider.unavailable"), 3, True),
        (READS, TimeoutError("the read operation timed out"), 3, True),
        (REPEATS, make_fault(kind="provider.unavailable"), 3, True),
        (None, make_fault(kind="provider.unavailable"), 1, True),
        (PAYS, make_fault(kind="provider.unavailable"), 1, True),
        (PAYS, TimeoutError("the read operation timed out"), 1, False),
        (READS, make_fault(kind="provider.auth"), 1, False),
    ],
)
def test_only_a_tool_that_says_a_repeat_is_harmless_is_repeated(
    make: Callable[..., Any], hints: Any, failure: Exception, calls: int, retryable: bool
) -> None:
    tool, clock = Tool(failure), FakeClock()

    (result,) = call(reliability(make(tool, hints), clock=clock, jitter=even))

    assert (tool.calls, clock.slept) == (calls, [1.0, 2.0][: calls - 1])
    assert result.structured_content["retryable"] is retryable
    assert result.structured_content.get("attempts", 1) == calls


def test_a_requested_delay_is_kept_and_a_long_one_is_told_to_the_client() -> None:
    clock = FakeClock()
    short, long = Tool(make_fault(not_before=told(7.5)), "fine"), Tool(make_fault(not_before=told(3600)))

    (kept,) = call(reliability(an_mcp_server(short, READS), clock=clock))
    (parked,) = call(reliability(an_mcp_server(long, READS), clock=clock))

    assert (kept.content[0].text, clock.slept) == ("fine", [7.5])
    assert (long.calls, parked.structured_content["wait_seconds"]) == (1, 3600)


def test_wrong_arguments_are_named_and_the_tools_own_word_reaches_the_model() -> None:
    from mcp.server.mcpserver.exceptions import ToolError

    word = ToolError("Ask for a city in Europe.")

    def wraps_another() -> Exception:
        try:
            raise ValueError(SECRET)
        except ValueError as error:
            try:
                raise ToolError(f"failed: {error}")
            except ToolError as raised:
                return raised

    (wrong,) = call(reliability(an_mcp_server(Tool("fine"), None)), {"count": "many"})
    (spoken,) = call(reliability(an_mcp_server(Tool(word), None)))
    (hidden,) = call(reliability(an_mcp_server(Tool(wraps_another()), None)))

    assert report_of(wrong).kind == "tool.input_invalid"
    assert wrong.structured_content["fields_invalid"] == ["count"]
    assert spoken.structured_content["message"] == "Ask for a city in Europe."
    assert SECRET not in hidden.model_dump_json()


def test_a_guard_that_closed_a_service_off_answers_without_a_call() -> None:
    tool, events = Tool(make_fault(kind="provider.unavailable")), list[Any]()
    server = reliability(
        an_mcp_server(tool, READS), guard=Guard(), clock=FakeClock(), watcher=events.append, attempts=20
    )

    first, second = call(server, {}, {})

    calls = tool.calls
    assert calls < 20
    assert (report_of(first).kind, report_of(second).kind) == ("provider.unavailable",) * 2
    assert sum(isinstance(event, AttemptFailed) for event in events) == calls


def test_what_is_no_server_of_mcp_2_is_refused() -> None:
    from mcp.server.mcpserver import MCPServer

    with pytest.raises(TypeError, match="`MCPServer` or a `Server` of mcp 2"):
        reliability(object())
    with pytest.raises(TypeError, match="no parameter `tries`"):
        reliability(MCPServer("tests"), tries=3)  # type: ignore[call-arg]  # ty: ignore


@pytest.mark.parametrize(
    ("hints", "repeatable"),
    [
        (None, None),
        (READS, True),
        (PAYS, False),
        ({"readOnlyHint": True, "idempotentHint": False}, True),
        ({"readOnlyHint": False, "idempotentHint": True}, True),
        ({"readOnlyHint": False}, None),
        ({"readOnlyHint": "yes"}, None),
    ],
)
def test_hints_say_whether_a_tool_may_be_called_again(hints: Any, repeatable: bool | None) -> None:
    assert is_repeatable(annotations(hints) if hints in (READS, PAYS) else hints) is repeatable


# ---------------------------------------------------------------- effects


@pytest.mark.parametrize("make", SERVERS)
@pytest.mark.parametrize(
    ("hints", "calls"),
    [(None, 1), (PAYS, 1), (READS, 2), (REPEATS, 2)],
)
def test_the_hints_of_a_tool_say_whether_its_effect_is_claimed(
    make: Callable[..., Any], hints: Any, calls: int, tmp_path: Path
) -> None:
    tool = Tool("paid", "paid again")
    store = SqliteClaims(tmp_path)
    server = reliability(make(tool, hints), effect_key=lambda tool, _: f"{tool}-7", effect_store=store)

    first, second = call(server, {"count": 1}, {"count": 1})

    assert tool.calls == calls
    assert first.content[0].text == "paid"
    assert (second.content[0].text == "paid") is (calls == 1)
    assert second.is_error is False
    store.close()


@pytest.mark.parametrize("make", SERVERS)
def test_an_effect_whose_outcome_is_unknown_is_not_run_again(
    make: Callable[..., Any], tmp_path: Path
) -> None:
    tool = Tool(TimeoutError("the read operation timed out"), "paid again")
    store = SqliteClaims(tmp_path)
    server = reliability(make(tool, PAYS), effect_key=lambda _tool, _arguments: "7", effect_store=store)

    lost, refused = call(server, {}, {})

    assert (lost.is_error, report_of(refused).kind, tool.calls) == (True, "tool.interrupted", 1)
    store.close()


def test_calls_without_a_key_and_keys_with_other_arguments(tmp_path: Path) -> None:
    tool = Tool("paid")
    store = SqliteClaims(tmp_path)

    def key(_tool: str, arguments: Mapping[str, Any]) -> str | None:
        return None if arguments["count"] == 0 else "7"

    server = reliability(an_mcp_server(tool, PAYS), effect_key=key, effect_store=store)

    *_, mismatch = call(server, {"count": 0}, {"count": 0}, {"count": 1}, {"count": 2})

    assert (tool.calls, report_of(mismatch).kind) == (3, "tool.input_invalid")
    store.close()
