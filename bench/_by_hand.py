"""What somebody would write instead in an afternoon, so that there is something fair to compare with.

It looks the class up along its MRO, masks the best-known secrets, lists the causes, and makes a
fingerprint of the class and of the function where it surfaced. It has no adapters, no inheritance, no
views, no bounds, and it trusts whatever it is given.
"""

import json
import os
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import blake2s
from uuid import uuid4

TABLE: dict[type, tuple[str, str]] = {
    ValueError: ("user_input", "change_input"),
    TypeError: ("user_input", "change_input"),
    KeyError: ("user_input", "change_input"),
    TimeoutError: ("transient", "wait_and_retry"),
    ConnectionError: ("transient", "wait_and_retry"),
    OSError: ("transient", "wait_and_retry"),
    MemoryError: ("resource", "free_resources"),
}
SECRET = re.compile(
    r"\b(?:sk|ghp|xoxb|hf)[-_][A-Za-z0-9_-]{10,}|\bAKIA[A-Z0-9]{12,}|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|(?i:bearer) [A-Za-z0-9._-]{8,}|(?<=://)[^\s/@]+(?=@)"
    r"|(?i:(?:api[_-]?key|token|password|secret)[\"']?\s*[:=]\s*)\S+"
)


@dataclass(frozen=True, slots=True)
class Report:
    """Twelve fields."""

    id: str
    kind: str
    category: str
    retryable: bool
    message: str
    title: str
    error_type: str
    action: str
    site: str
    causes: list[str]
    fingerprint: str
    occurred_at: str


def lookup(error: BaseException) -> tuple[str, str]:
    """The smallest classifier there is."""
    for cls in type(error).__mro__:
        if cls in TABLE:
            return TABLE[cls]
    return ("fatal", "contact_support")


def report(error: BaseException) -> Report:
    """The whole report."""
    category, action = lookup(error)
    name = type(error).__name__
    site = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        site = f"{os.path.basename(code.co_filename)}:{code.co_qualname}"  # noqa: PTH119  (as it is written by hand)
        trace = trace.tb_next
    causes: list[str] = []
    below = error.__cause__ or error.__context__
    while below is not None and len(causes) < 20:
        causes.append(type(below).__name__)
        below = below.__cause__ or below.__context__
    return Report(
        id=uuid4().hex,
        kind=f"python.{name}",
        category=category,
        retryable=category == "transient",
        message=SECRET.sub("[redacted]", str(error))[:2_000],
        title=name,
        error_type=name,
        action=action,
        site=site,
        causes=causes,
        fingerprint=blake2s(f"{category}|{name}|{site}".encode(), digest_size=8).hexdigest(),
        occurred_at=datetime.now(UTC).isoformat(),
    )


def to_json(made: Report) -> str:
    """The report as JSON."""
    return json.dumps(asdict(made))


def from_json(text: str) -> Report:
    """And back."""
    return Report(**json.loads(text))
