"""langgraph: limits of a graph, interrupts that wait for a person, and mistakes in how a graph was put together.

What a node raised arrives as it is. `langgraph_sdk` speaks to a server over HTTP.
"""

from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter
from failwell.adapters.vendor_tables import rows

_reply = adapter("langgraph", "langgraph_sdk")

TABLES: dict[str, Table] = {
    "langgraph": rows("langgraph", {
        "limit.iterations": "GraphRecursionError",
        "limit.step_timeout": "NodeTimeoutError",
        "cancel.run": "GraphDrained",
        "cancel.stage": "NodeCancelledError",
        "session.interaction_required": "GraphInterrupt NodeInterrupt",
        "session.resume_mismatch": "UnknownInterruptError",
        "validation.input_invalid": "EmptyInputError",
        # Signals for langgraph itself, or state that a node wrote against its channels.
        "internal.bug": "GraphBubbleUp ParentCommand InvalidUpdateError TaskNotFound EmptyChannelError",
    }),
    "langgraph_sdk": {"LangGraphError": _reply, "HTTPException": _reply},
}  # fmt: skip
