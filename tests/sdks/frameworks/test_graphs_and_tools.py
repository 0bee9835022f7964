"""langgraph, smolagents, fastmcp and google.adk: limits, interrupts, tools and what they carry of a provider's."""

import asyncio
import json
from typing import Any, TypedDict

import pytest

from failwell.adapters.describe import describe
from failwell.errors.report import ErrorReport
from tests.sdks.frameworks.replies import NO_KEY, NO_QUOTA, OVERLOADED, Reply, script

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
SECRET = "the-text-nobody-may-see"


class State(TypedDict):
    """The state of a graph."""

    number: int


def test_langgraph_a_graph_that_does_not_end_reaches_its_limit_and_a_nodes_failure_is_its_own() -> None:
    graphs: Any = pytest.importorskip("langgraph.graph", reason="`make test-sdks` runs it with langgraph")

    def graph(node: Any, then: str) -> Any:
        builder = graphs.StateGraph(State)
        builder.add_node("node", node)
        builder.add_edge(graphs.START, "node")
        builder.add_edge("node", then)
        return builder.compile()

    def stay(state: State) -> State:
        return state

    def stray(_state: State) -> list[int]:
        return [1]

    def refuse(_state: State) -> State:
        raise MemoryError(SECRET)

    def failure(node: Any, then: str) -> ErrorReport:
        with pytest.raises(Exception) as caught:
            graph(node, then).invoke({"number": 1}, {"recursion_limit": 3})
        return describe(caught.value)

    assert failure(stay, "node").kind == "limit.iterations"
    assert failure(stray, graphs.END).kind == "internal.bug"
    assert failure(refuse, graphs.END).kind == "resource.system_memory"


def test_smolagents_a_model_that_fails_is_what_the_provider_said() -> None:
    smol: Any = pytest.importorskip("smolagents", reason="`make test-sdks` runs it with smolagents")
    pytest.importorskip("openai")

    def failure(*replies: Reply) -> ErrorReport:
        with script(*replies) as server:
            model = smol.OpenAIServerModel(
                "m", api_base=server.url, api_key="key", client_kwargs={"max_retries": 0}
            )
            model.retryer.max_attempts = 1
            agent = smol.ToolCallingAgent(tools=[], model=model, max_steps=1, verbosity_level=-1)
            with pytest.raises(Exception) as caught:
                agent.run(SECRET)
            return describe(caught.value)

    reports = [failure(reply) for reply in (NO_KEY, NO_QUOTA, OVERLOADED)]

    assert [report.kind for report in reports] == [
        "provider.auth",
        "provider.quota_exhausted",
        "provider.overloaded",
    ]
    assert SECRET not in json.dumps([report.to_dict() for report in reports])


def test_fastmcp_a_tool_that_failed_is_missing_or_refuses_is_told_apart() -> None:
    fastmcp: Any = pytest.importorskip("fastmcp", reason="`make test-sdks` runs it with fastmcp")
    errors: Any = pytest.importorskip("fastmcp.exceptions")
    server = fastmcp.FastMCP("server")

    @server.tool
    def look(number: int) -> str:
        raise errors.ToolError(SECRET)

    async def failure(name: str, arguments: dict[str, Any]) -> ErrorReport:
        async with fastmcp.Client(server) as client:
            with pytest.raises(Exception) as caught:
                await client.call_tool(name, arguments)
        return describe(caught.value)

    async def run() -> list[ErrorReport]:
        return [await failure("look", {"number": 1}), await failure("missing", {})]

    failed, missing = asyncio.run(run())

    assert failed.kind == "tool.failed"
    assert missing.kind in {"tool.not_found", "tool.failed"}
    assert describe(errors.DisabledError(SECRET)).kind == "tool.unavailable"
    assert describe(errors.AuthorizationError(SECRET)).category.value == "denied"
    assert SECRET not in json.dumps([failed.to_dict(), missing.to_dict()])


def test_adk_a_tool_names_the_http_error_that_it_stands_for() -> None:
    errors: Any = pytest.importorskip(
        "google.adk.errors.tool_execution_error", reason="`make test-sdks` runs it with google-adk"
    )
    kinds = {
        errors.ToolErrorType.UNAUTHORIZED: "provider.auth",
        errors.ToolErrorType.FORBIDDEN: "tool.denied",
        errors.ToolErrorType.GATEWAY_TIMEOUT: "tool.timeout",
        "429": "provider.rate_limited",
        None: "tool.failed",
    }

    assert {each: describe(errors.ToolExecutionError(SECRET, each)).kind for each in kinds} == kinds


def test_adk_a_run_with_too_many_calls_reaches_its_limit() -> None:
    context: Any = pytest.importorskip(
        "google.adk.agents.invocation_context", reason="`make test-sdks` runs it with google-adk"
    )
    pytest.importorskip("google.adk.agents.run_config")

    report = describe(context.LlmCallsLimitExceededError(SECRET))

    assert (report.kind, report.category.value) == ("limit.turn_limit", "limit")
