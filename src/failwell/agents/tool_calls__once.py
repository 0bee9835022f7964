"""Tools that must not happen twice run under a claim, so that a step that is run again gets the first result."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from json import dumps, loads
from typing import Any

from failwell.delivery.plain_text import finite, json_text
from failwell.store.effects.call import EffectCall, EffectOptions, run_effect_async
from failwell.store.effects.claims import ClaimStore
from failwell.store.effects.keys import effect_key

_KEEP = 30 * 86_400.0
_WAIT = 60.0


class OnceCalls:
    """The calls of one step with effects.

    Two calls are the same effect if the tool and the arguments are the same and as many such calls have succeeded before, in
    this run of the step or in one that was interrupted.

    Args:
        store: Keeps the claims.
        scope: The step, the same for all its attempts.
    """

    def __init__(self, store: ClaimStore, scope: str) -> None:
        self._store = store
        self._scope = scope
        self.succeeded: Counter[str] = Counter()
        """How often each call succeeded. A session that is resumed fills it again."""

    async def run(
        self, tool: str, arguments: Mapping[str, Any], function: Callable[[], Awaitable[Any]]
    ) -> Any:
        """The result of `function`, which is not called where the effect has happened already.

        Raises:
            EffectUnclear: it was begun before, and nobody knows whether it happened.
        """
        text = dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        call = f"{tool}/{digest}"
        key = effect_key(tool, self._scope, f"{digest}/{self.succeeded[call] + 1}")

        async def once() -> Any:
            # A result is stored, so the first caller gets what a later one would get.
            return loads(json_text(finite(await function())))

        options = EffectOptions(store=self._store, keep=_KEEP, wait=_WAIT)
        result = await run_effect_async(EffectCall(key, {}, once), options)
        self.succeeded[call] += 1
        return result
