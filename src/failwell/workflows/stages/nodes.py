"""What a stage of a workflow allows its model: the tools, the calls, and the tool that ends it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failwell.workflows.plan import StageSpec

if TYPE_CHECKING:
    from failwell.agents.tools.tool import Tool, ToolContext


class StageLimits:
    """The limits of one attempt of `act`, and whether its completion tool was called."""

    def __init__(self, spec: StageSpec) -> None:
        self.allowed_tools = spec.allowed_tools
        self.turn_cap = spec.turn_cap
        self.grants = spec.grants
        self.completion = None if spec.completion_tool is None else self._completion_tool(spec)
        self.result: dict[str, Any] | None = None
        """The arguments of the completion tool, once it was called."""

    def is_complete(self) -> bool:
        """Whether the completion tool was called."""
        return self.result is not None

    def _completion_tool(self, spec: StageSpec) -> "Tool":
        from failwell.agents.tools.tool import Tool

        assert spec.completion_tool is not None

        async def complete(arguments: Mapping[str, Any], _context: "ToolContext") -> Any:
            self.result = dict(arguments)
            return {"complete": True}

        schema = spec.completion_schema or {"type": "object"}
        return Tool(
            name=spec.completion_tool,
            run=complete,
            description="Call this tool when the work is done. It ends the stage.",
            parameters=schema,
            effect="idempotent",
        )
