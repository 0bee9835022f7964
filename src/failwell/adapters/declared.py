"""What the caller declared about its call, applied to what was read off its failure.

A lost reply to a call that may be repeated is a time-out and nothing worse. A server's failure in a
call that must not be repeated leaves open whether the work was done.
"""

from dataclasses import replace

from failwell.adapters.reading import Reading
from failwell.fault.axes import Certainty


def declared(reading: Reading, *, idempotent: bool | None) -> Reading:
    """`reading`, judged for a call that may (or must not) be repeated."""
    if idempotent is None:
        return reading
    if idempotent and reading.kind == "provider.outcome_unknown":
        return replace(
            reading, kind="provider.timeout", rule=f"{reading.rule}.idempotent", certainty=Certainty.UNKNOWN
        )
    status = None if reading.provider_metadata is None else reading.provider_metadata.status_code
    tried = reading.basis == "status" and status is not None and status >= 500
    if not idempotent and tried and reading.kind in ("provider.unavailable", "provider.overloaded"):
        # Where the provider said in words or codes that it did not start, it did not.
        return replace(
            reading, kind="provider.outcome_unknown", rule=f"{reading.rule}.not_idempotent", certainty=None
        )
    return reading
