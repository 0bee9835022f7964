"""What one failure costs: describing it, and sending the report through JSON.

Beside it, in the same run, the least that anybody could do by hand: a walk over the MRO, and a report
of twelve fields with redaction and a fingerprint.
"""

import hashlib
import json
import re
import sys
import tracemalloc
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "src")]

import failwell  # noqa: E402  (found through the path above)
from bench._table import Row, microseconds, show  # noqa: E402  (likewise)
from failwell.fault.classes import ProviderTransient  # noqa: E402  (likewise)

TABLE = {ValueError: "user_input", OSError: "transient", MemoryError: "resource"}
SECRET = re.compile(r"sk-[A-Za-z0-9_-]{10,}|(?i:bearer) [A-Za-z0-9._-]{8,}")


def lookup(error: BaseException) -> str:
    """The smallest classifier there is."""
    for cls in type(error).__mro__:
        if cls in TABLE:
            return TABLE[cls]
    return "fatal"


@dataclass(frozen=True, slots=True)
class HandWritten:
    """Twelve fields, as somebody would write them in an afternoon."""

    id: str
    kind: str
    category: str
    retryable: bool
    message: str
    title: str
    error_type: str
    action: str
    provider: str | None
    details: dict[str, str]
    fingerprint: str
    occurred_at: datetime


def by_hand(error: BaseException) -> HandWritten:
    """The hand-written report, redacted and fingerprinted."""
    category = lookup(error)
    name = type(error).__name__
    return HandWritten(
        id=uuid4().hex,
        kind=f"python.{name}",
        category=category,
        retryable=category == "transient",
        message=SECRET.sub("[redacted]", str(error))[:2000],
        title=name,
        error_type=name,
        action="change_input",
        provider=None,
        details={},
        fingerprint=hashlib.blake2s(f"{category}|{name}".encode(), digest_size=8).hexdigest(),
        occurred_at=datetime.now(UTC),
    )


def raised() -> ValueError:
    """A bare exception that was really raised."""
    try:
        float("warm")
    except ValueError as error:
        return error
    raise AssertionError("a word is not a number")


def chain() -> failwell.Fault:
    """A typed failure under two wrappers."""
    try:
        try:
            try:
                raise ProviderTransient(
                    kind="provider.rate_limited",
                    provider="openai",
                    provider_metadata=failwell.ProviderMetadata(
                        sdk="openai", status_code=429, request_id="r"
                    ),
                    not_before=failwell.NotBefore(after=7.5, source="header retry-after"),
                )
            except failwell.Fault as leaf:
                raise failwell.Fault(message="step failed") from leaf
        except failwell.Fault as step:
            raise failwell.Fault(message="run failed") from step
    except failwell.Fault as error:
        return error


def memory(reports: int = 2_000) -> float:
    """Bytes that one kept report holds."""
    error = raised()
    failwell.describe(error)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [failwell.describe(error) for _ in range(reports)]
    held = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    tracemalloc.stop()
    return held


def main() -> None:
    """Measure and print."""
    bare, wrapped = raised(), chain()
    report, long = failwell.describe(bare), failwell.describe(wrapped)
    text, long_text = report.to_json(), long.to_json()
    hand = by_hand(bare)
    spent = microseconds(
        {
            "MRO lookup": lambda: lookup(bare),
            "by hand": lambda: by_hand(bare),
            "by hand to JSON": lambda: json.dumps(
                {**{f: getattr(hand, f) for f in hand.__slots__}, "occurred_at": ""}
            ),
            "describe": lambda: failwell.describe(bare),
            "describe chain": lambda: failwell.describe(wrapped),
            "describe full": lambda: failwell.describe(bare, policy="full"),
            "to_json": report.to_json,
            "from_json": lambda: failwell.ErrorReport.from_json(text),
            "chain to_json": long.to_json,
            "chain from_json": lambda: failwell.ErrorReport.from_json(long_text),
        },
        number=500,
    )
    floor = spent["MRO lookup"]
    rows = [
        Row("minimal MRO lookup", floor, "µs", floor),
        Row("twelve fields, redaction, fingerprint, by hand", spent["by hand"], "µs", floor),
        Row("describe, bare exception, no traceback", spent["describe"], "µs", floor, 12),
        Row("describe, three-deep chain", spent["describe chain"], "µs", floor),
        Row("describe, bare exception, full traceback", spent["describe full"], "µs", floor),
    ]
    show("describing one failure", "MRO lookup", rows)
    base = spent["by hand to JSON"]
    wire = [
        Row("to_json", spent["to_json"], "µs", base),
        Row("from_json", spent["from_json"], "µs", base),
        Row("wire round trip", spent["to_json"] + spent["from_json"], "µs", base, 20),
        Row(
            "wire round trip, three-deep chain", spent["chain to_json"] + spent["chain from_json"], "µs", base
        ),
    ]
    show("sending one report", "json.dumps by hand", wire)
    show("keeping one report", "1 KiB", [Row("memory of a report", memory(), "B", 1024)])


if __name__ == "__main__":
    main()
