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
    from failwell.agents.messages.conversation import (
        drop_oldest_tool_results as drop_oldest_tool_results,
    )
    from failwell.agents.messages.formats import FORMATS as FORMATS
    from failwell.agents.outcome import Outcome as Outcome
    from failwell.agents.outcome import note_finding as note_finding
    from failwell.agents.outcome import run_agent as run_agent
    from failwell.agents.tool_loop import ToolCallRepeated as ToolCallRepeated
    from failwell.agents.tool_loop import ToolLoopBreaker as ToolLoopBreaker
    from failwell.store.effects.call import Done as Done
    from failwell.store.effects.claims import Claim as Claim
    from failwell.store.effects.claims import ClaimStore as ClaimStore
    from failwell.store.effects.claims import EffectBusy as EffectBusy
    from failwell.store.effects.claims import EffectKeyInvalid as EffectKeyInvalid
    from failwell.store.effects.claims import EffectMismatch as EffectMismatch
    from failwell.store.effects.claims import EffectResultLost as EffectResultLost
    from failwell.store.effects.claims import EffectUnclear as EffectUnclear
    from failwell.store.effects.effect import effect_policy as effect_policy
    from failwell.store.effects.redis import RedisClaims as RedisClaims
    from failwell.store.effects.sqlite import SqliteClaims as SqliteClaims
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Claim": "failwell.store.effects.claims",
            "ClaimStore": "failwell.store.effects.claims",
            "Done": "failwell.store.effects.call",
            "EffectBusy": "failwell.store.effects.claims",
            "EffectKeyInvalid": "failwell.store.effects.claims",
            "EffectMismatch": "failwell.store.effects.claims",
            "EffectResultLost": "failwell.store.effects.claims",
            "EffectUnclear": "failwell.store.effects.claims",
            "FORMATS": "failwell.agents.messages.formats",
            "MessageChange": "failwell.agents.message_repair",
            "Outcome": "failwell.agents.outcome",
            "RedisClaims": "failwell.store.effects.redis",
            "RepairedMessages": "failwell.agents.message_repair",
            "SqliteClaims": "failwell.store.effects.sqlite",
            "ToolCallRepeated": "failwell.agents.tool_loop",
            "ToolLoopBreaker": "failwell.agents.tool_loop",
            "drop_oldest_tool_results": "failwell.agents.messages.conversation",
            "effect_policy": "failwell.store.effects.effect",
            "note_finding": "failwell.agents.outcome",
            "run_agent": "failwell.agents.outcome",
        },
    )
