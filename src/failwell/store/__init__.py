"""Records of runs, jobs and sessions, effects that happen once, and limits that processes share.

An event is written before it is delivered; states are folded from events. The records are SQLite files in a
state folder; claims of effects and limits may be in Redis.

Example:
    >>> from failwell.store import effect_policy
    >>> effect_policy(print)
    'claim'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
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
    from failwell.store.redis_limits import RedisLimits as RedisLimits
    from failwell.store.sqlite_limits import SqliteLimits as SqliteLimits
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.store.effects.call": "Done",
            "failwell.store.effects.claims": (
                "Claim ClaimStore EffectBusy EffectKeyInvalid EffectMismatch EffectResultLost EffectUnclear"
            ),
            "failwell.store.effects.effect": "effect_policy",
            "failwell.store.effects.redis": "RedisClaims",
            "failwell.store.effects.sqlite": "SqliteClaims",
            "failwell.store.redis_limits": "RedisLimits",
            "failwell.store.sqlite_limits": "SqliteLimits",
        },
    )
