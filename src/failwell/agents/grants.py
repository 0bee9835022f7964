"""Grants of single calls: a tool that a stage does not allow may be called once, if a person says so.

A grant is for one call: the execution of the stage, its attempt, the call, the tool and the arguments. That it was used is on
disk before the call is made, so no second use gets through, in another process or after a crash either.
"""

from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from json import dumps
from typing import Any

from failwell.errors.frozen import frozen
from failwell.store.effects.claims import ClaimStore, EffectKey
from failwell.store.effects.keys import effect_key

REFUSED, USED = "grant_refused", "grant_used"
"""Reasons of a denial: a person said no, or the grant was used before."""
_KEEP = 30 * 86_400.0


@frozen
class GrantRequest:
    """A question to a person: may this call of a tool outside the stage's list be made, once?"""

    tool: str
    agent: str
    arguments: Mapping[str, Any]
    """Redacted."""
    digest: str
    """Of the arguments as they are."""
    call: str
    """The key of the call."""


AskGrant = Callable[[GrantRequest], Awaitable[bool]]


def digest_of(arguments: Mapping[str, Any]) -> str:
    """The digest of a call's arguments. The order of their names does not matter."""
    text = dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class StageGrants:
    """The grants of one attempt of a stage.

    Args:
        store: Keeps what was used.
        execution: The execution of the stage, the same for all its attempts.
        attempt: The attempt. A grant ends with it.
        ask: Asks a person.
    """

    def __init__(self, store: ClaimStore, execution: str, attempt: int, ask: AskGrant) -> None:
        self._store = store
        self._execution = execution
        self._attempt = attempt
        self._ask = ask

    async def refuses(self, request: GrantRequest) -> str | None:
        """Why a call may not be made; `None` if it was granted, and the grant is used by now."""
        from asyncio import to_thread

        if await to_thread(self._is_used, request):
            return USED
        if not await self._ask(request):
            return REFUSED
        return None if await to_thread(self._use, request) else USED

    def _key(self, request: GrantRequest) -> EffectKey:
        call = f"{self._attempt}/{request.call}/{request.tool}/{request.digest}"
        return effect_key("grant", self._execution, call)

    def _is_used(self, request: GrantRequest) -> bool:
        return self._store.get(self._key(request).id) is not None

    def _use(self, request: GrantRequest) -> bool:
        claim = self._store.claim(self._key(request), {"digest": request.digest})
        if not claim.is_own:
            return False
        return self._store.complete(claim, None, _KEEP)
