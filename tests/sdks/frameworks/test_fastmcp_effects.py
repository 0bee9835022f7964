"""FastMCP: the effect of a tool is claimed unless its hints say that a repeat is harmless."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from failwell.integrations.fastmcp import reliability
from failwell.store import SqliteClaims

pytestmark = pytest.mark.slow

fastmcp: Any = pytest.importorskip("fastmcp")


def test_a_tool_runs_once_for_each_key_unless_it_only_reads(tmp_path: Path) -> None:
    calls: list[str] = []
    store = SqliteClaims(tmp_path)

    def key(tool: str, arguments: Mapping[str, Any]) -> str:
        return f"{tool}-{arguments['order']}"

    server = fastmcp.FastMCP("shop", middleware=[reliability(effect_key=key, effect_store=store)])

    @server.tool
    def pay(order: str) -> dict[str, str]:
        calls.append("pay")
        return {"paid": order}

    @server.tool(annotations={"readOnlyHint": True})
    def look(order: str) -> str:
        calls.append("look")
        return order

    async def run() -> list[Any]:
        async with fastmcp.Client(server) as client:
            return [await client.call_tool(name, {"order": "7"}) for name in ("pay", "pay", "look", "look")]

    first, second, *_ = asyncio.run(run())

    assert calls == ["pay", "look", "look"]
    assert first.data == second.data == {"paid": "7"}
    assert [claim.effect.text for claim in store.claims()] == ["mcp.pay/pay-7"]
    store.close()
