"""FastMCP under the plugin: what a client sees of a tool that fails."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from failwell.errors.report import ErrorReport
from failwell.integrations.mcp import from_tool_result
from failwell.testing import FakeClock
from failwell.testing.builders import make_fault
from tests.calls.acting import even, told

pytest.importorskip("fastmcp", reason="`make test-sdks` runs it with fastmcp")

from failwell.integrations.fastmcp import reliability

fastmcp: Any = __import__("fastmcp")
pytestmark = pytest.mark.filterwarnings("error")
SECRET = "the-text-nobody-may-see"


@pytest.fixture(autouse=True)
def _no_log() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def call(failures: list[Exception], annotations: dict[str, Any] | None = None, **options: Any) -> Any:
    """The result of a tool that raises each failure once, and then answers."""
    server = fastmcp.FastMCP("tests", middleware=[reliability(jitter=even, **options)])

    @server.tool(annotations=annotations)
    def act(count: int = 1) -> str:
        if failures:
            raise failures.pop(0)
        return "fine"

    async def run() -> Any:
        async with fastmcp.Client(server) as client:
            return await client.call_tool("act", raise_on_error=False)

    return asyncio.run(run())


def test_the_text_of_an_exception_stays_in_the_server() -> None:
    reports: list[ErrorReport] = []

    result = call([ValueError(SECRET)], on_tool_error=reports.append)

    report = from_tool_result(result)
    assert report is not None
    assert (result.is_error, report.kind, result.structured_content["retryable"]) == (
        True,
        "tool.failed",
        False,
    )
    assert SECRET not in str(result)
    assert [each.scene.tool for each in reports] == ["act"]


def test_a_read_only_tool_is_repeated_after_exactly_the_requested_delay() -> None:
    clock = FakeClock()

    read = call([make_fault(not_before=told(7.5))], {"readOnlyHint": True}, clock=clock)
    written = call([make_fault(not_before=told(7.5))], {"readOnlyHint": False}, clock=clock)

    assert (read.data, clock.slept) == ("fine", [7.5])
    assert (written.is_error, written.structured_content["wait_seconds"]) == (True, 7.5)


def test_the_tools_own_word_reaches_the_model() -> None:
    result = call([fastmcp.exceptions.ToolError("Ask for a city in Europe.")])

    assert result.structured_content["message"] == "Ask for a city in Europe."
