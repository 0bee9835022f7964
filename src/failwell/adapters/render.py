"""A verdict as a reading: the kind with its evidence, a composed sentence, and safe facts.

The sentence is made of our words, the provider's name, the status and the code. Nothing that the
provider or its SDK wrote in prose gets into it.
"""

import re
from datetime import UTC, datetime
from typing import Any

from failwell.adapters.classify import Verdict, classify
from failwell.adapters.extract import Extract
from failwell.adapters.headers import kept_headers
from failwell.adapters.quota import window_of
from failwell.adapters.reading import Reading
from failwell.adapters.shortfall import shortfall_of
from failwell.adapters.waits import wait_of
from failwell.fault.axes import Certainty
from failwell.fault.facts import ProviderMetadata
from failwell.fault.registry import kind

_CODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,59}")
_LIMITS = ("provider.rate_limited", "provider.quota_exhausted", "provider.overloaded")


def render(found: Extract, now: datetime | None = None) -> Reading:
    """Classify `found` and say it."""
    verdict = classify(found)
    wait, nonsense = wait_of(found, now or datetime.now(UTC))
    details: dict[str, Any] = {}
    if verdict.rule.kind in _LIMITS:
        details.update(window_of(found).details())
    if nonsense:
        details["ignored_waits"] = list(nonsense)
    shortfall = shortfall_of(verdict.rule.kind, found.message)
    return Reading(
        kind=verdict.rule.kind,
        rule=f"provider.{verdict.rule.name}",
        basis=verdict.rule.basis,
        saw=_saw(found, verdict),
        runners=tuple((f"provider.{rule.name}", rule.kind) for rule in verdict.runners),
        message=_sentence(found, verdict),
        certainty=_certainty(found, verdict),
        retryable=False if found.headers.get("x-should-retry", "").lower() == "false" else None,
        provider=found.provider,
        model=found.model,
        provider_metadata=_metadata(found, wait.after if wait is not None else None),
        not_before=wait,
        resource_shortfall=shortfall,
        details=details,
    )


def _sentence(found: Extract, verdict: Verdict) -> str:
    known = kind(verdict.rule.kind)
    facts = [found.provider] if found.provider else []
    if found.status is not None:
        facts.append(f"HTTP {found.status}")
    code = _code(found)
    if code is not None:
        facts.append(f"code `{code}`")
    told = f" ({', '.join(facts)})" if facts else ""
    return f"{known.summary.removesuffix('.')}{told}."


def _saw(found: Extract, verdict: Verdict) -> str:
    rule = verdict.rule
    if rule.codes:
        code = next((c for c in (*found.codes, *found.names) if c in rule.codes), None)
        if code is not None:
            return code[:80]
    if rule.basis == "status" and found.status is not None:
        return f"HTTP {found.status}"
    if rule.basis == "phase":
        return found.phase or "stream"
    return found.exception_type or rule.basis


def _code(found: Extract) -> str | None:
    for code in found.codes:
        if _CODE.fullmatch(code) and not code.isdecimal() and code != "error":
            return code
    return None


def _certainty(found: Extract, verdict: Verdict) -> Certainty | None:
    if found.in_stream and verdict.rule.kind.startswith("provider.") and verdict.rule.basis != "phase":
        return Certainty.PARTIAL
    return None


def _metadata(found: Extract, wait: float | None) -> ProviderMetadata:
    return ProviderMetadata(
        sdk=found.sdk,
        exception_type=found.exception_type or None,
        status_code=found.status,
        code=_code(found),
        request_id=found.request_id,
        retry_after=wait,
        headers=kept_headers(found.headers),
    )
