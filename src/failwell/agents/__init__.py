"""What the code around a model needs to go on after a failure: valid messages, effects that happen once, limits.

It knows the message formats of the providers and calls no model itself.

Example:
    >>> from failwell.agents import FORMATS
    >>> "anthropic" in FORMATS
    True
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.agents.message_repair import MessageChange as MessageChange
    from failwell.agents.message_repair import RepairedMessages as RepairedMessages
    from failwell.agents.message_repair import repair as repair
    from failwell.agents.messages.conversation import drop_oldest_tool_results as drop_oldest_tool_results
    from failwell.agents.messages.formats import FORMATS as FORMATS
    from failwell.agents.outcome import Outcome as Outcome
    from failwell.agents.outcome import note_finding as note_finding
    from failwell.agents.outcome import run_agent as run_agent
    from failwell.agents.tool_loop import ToolCallRepeated as ToolCallRepeated
    from failwell.agents.tool_loop import ToolLoopBreaker as ToolLoopBreaker
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.agents.message_repair": "MessageChange RepairedMessages repair",
            "failwell.agents.messages.conversation": "drop_oldest_tool_results",
            "failwell.agents.messages.formats": "FORMATS",
            "failwell.agents.outcome": "Outcome note_finding run_agent",
            "failwell.agents.tool_loop": "ToolCallRepeated ToolLoopBreaker",
        },
    )
