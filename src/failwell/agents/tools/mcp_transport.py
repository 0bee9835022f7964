"""The connection to an MCP server over HTTP, with a limit on what one reply may hold."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from failwell.agents.tools.mcp_transport__mcp_stdio import LONGEST
from failwell.errors.faults import ToolTerminal
from failwell.errors.missing_extra import need


def bounded_client(headers: Mapping[str, str], timeout: float) -> Any:
    """A client whose replies are cut off beyond the limit of one message. Redirects are not followed."""
    httpx: Any = need("httpx2")

    class BoundedStream(httpx.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > LONGEST:
                    raise ToolTerminal(
                        kind="tool.failed", message="the result is too large", details={"reason": "too_large"}
                    )
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def limit(response: Any) -> None:
        response.stream = BoundedStream(response.stream)

    return httpx.AsyncClient(headers=dict(headers), timeout=timeout, event_hooks={"response": [limit]})
