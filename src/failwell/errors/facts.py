"""Small frozen records that a fault may carry and a report keeps.

None of them holds a live object, a body or a request, so each may be stored as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from failwell.errors.axes import ActionKind
from failwell.errors.frozen import frozen

ResourceName = Literal["gpu_vram_mb", "system_ram_mb", "disk_mb"]
Confidence = Literal["high", "medium", "low"]
Origin = Literal["code", "call", "tool", "input"]
"""Where an error arose: in the program itself, in a call that it made, in a tool, or in input that it was given."""

LONGEST_WAIT = 366 * 86_400.0
"""Seconds. A longer delay is not credible."""
DENYING = frozenset({401, 403})
"""HTTP statuses that are never repeated, whatever is written beside them."""


@dataclass(frozen=True, slots=True)
class UserAction:
    """The next step for a person: typed, and in one sentence."""

    kind: ActionKind
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ResourceShortfall:
    """The gap between what the work needed and what there was, in megabytes."""

    resource: ResourceName
    needed: float
    available: float


@frozen
class ProviderMetadata:
    """Facts of the provider's reply and its SDK, without any prose.

    Every field is optional and inherits separately: a wrapper that knows only the SDK's name
    does not hide the status that its cause knows.
    """

    sdk: str | None = None
    exception_type: str | None = None
    status_code: int | None = None
    code: str | None = None
    request_id: str | None = None
    retry_after: float | None = None
    """Seconds the provider asked us to wait."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Allow-listed reply headers only; see `failwell.errors.headers.SAFE_HEADERS`."""


@frozen
class NotBefore:
    """When a repeat may make sense, and how far that statement can be trusted."""

    after: float
    """Seconds from `occurred_at`."""
    at: datetime | None = None
    source: str = "declared"
    """The header, field or phrase it was read from."""
    confidence: Confidence = "high"


@frozen
class Evidence:
    """Which rule decided a classification, and what it was based on: a fact that a fault carries and a report keeps."""

    rule: str
    basis: str
    """`declared`, `code`, `type`, `status`, `phase`, `header`, `message`, `errno`, `cause`, `origin`,
    `default`, or `runner_up` for a rule that fitted as well; `saw` is then the kind that it stands for."""
    saw: str = ""
