"""A judgement as a reading: the kind with its evidence, a composed sentence, and safe facts.

The sentence is made of our words, the provider's name, the status and the code. Nothing that the
provider or its SDK wrote in prose gets into it.
"""

import re
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any

from failwell.adapters.extract import Extract
from failwell.adapters.headers import kept_headers
from failwell.adapters.judge import judge
from failwell.adapters.reading import Reading
from failwell.adapters.rules import Rule
from failwell.adapters.shortfall import shortfall_of
from failwell.fault.facts import ProviderMetadata
from failwell.fault.registry import kind

_CODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,59}")
_MOST_SENTENCES = 512
_new = object.__new__


def render(found: Extract, now: datetime | None = None) -> Reading:
    """Judge `found` and say it."""
    rule, runners, window, certainty, wait, ignored, forbidden = judge(found, now)
    details: dict[str, Any] = {**window, "ignored_waits": list(ignored)} if ignored else {**window}
    code = _code(found.codes)
    headers = found.headers
    # Called as a class, each would first have its keywords put into a dictionary and taken out again.
    metadata = _new(ProviderMetadata)
    ProviderMetadata.__init__(
        metadata,
        sdk=found.sdk,
        exception_type=found.exception_type or None,
        status_code=found.status,
        code=code,
        request_id=found.request_id,
        retry_after=None if wait is None else wait.after,
        headers=kept_headers(headers) if headers else {},
    )
    reading = _new(Reading)
    Reading.__init__(
        reading,
        kind=rule.kind,
        rule=f"provider.{rule.name}",
        basis=rule.basis,
        saw=_saw(found, rule),
        runners=tuple([(f"provider.{other.name}", other.kind) for other in runners]) if runners else (),
        message=_sentence(kind(rule.kind).summary, found.provider, found.status, code),
        certainty=certainty,
        retryable=False if forbidden else None,
        provider=found.provider,
        model=found.model,
        provider_metadata=metadata,
        not_before=wait,
        resource_shortfall=shortfall_of(rule.kind, found.message),
        details=details,
    )
    return reading


@lru_cache(maxsize=_MOST_SENTENCES)
def _sentence(summary: str, provider: str | None, status: int | None, code: str | None) -> str:
    facts = [provider] if provider else []
    if status is not None:
        facts.append(f"HTTP {status}")
    if code is not None:
        facts.append(f"code `{code}`")
    told = f" ({', '.join(facts)})" if facts else ""
    return f"{summary.removesuffix('.')}{told}."


def _saw(found: Extract, rule: Rule) -> str:
    if rule.codes:
        for code in chain(found.codes, found.names):
            if code in rule.codes:
                return code[:80]
    if rule.basis == "status" and found.status is not None:
        return f"HTTP {found.status}"
    if rule.basis == "phase":
        return found.phase or "stream"
    return found.exception_type or rule.basis


def _code(codes: tuple[str, ...]) -> str | None:
    for code in codes:
        if code != "error" and _CODE.fullmatch(code) and not code.isdecimal():
            return code
    return None
