"""What the code around a model needs to go on after a failure: valid messages, and limits for repeated tool calls.

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
    from failwell.agents.messages.formats import FORMATS as FORMATS
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "FORMATS": "failwell.agents.messages.formats",
            "MessageChange": "failwell.agents.message_repair",
            "RepairedMessages": "failwell.agents.message_repair",
        },
    )
