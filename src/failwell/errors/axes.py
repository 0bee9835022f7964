"""The closed sets every failure is measured on: category, certainty, blame.

What follows from a category (whether a repeat helps, who can act, which HTTP
status) is written on its member, so no caller keeps a table of its own.
"""

from enum import StrEnum
from typing import Literal, Self

JobCategory = Literal["user_input", "transient", "resource", "fatal"]
"""The four categories of jobs. Every `Category` maps to one of them."""


class Domain(StrEnum):
    """Who can make it succeed: the caller, the operator, or the running system."""

    INPUT = "input"
    CONFIG = "config"
    RUNTIME = "runtime"


class Repeat(StrEnum):
    """What has to happen before the runtime itself may try again."""

    AFTER_WAITING = "after_waiting"
    AFTER_FREEING = "after_freeing"
    AFTER_CHECKING = "after_checking"
    NEVER = "never"


class Category(StrEnum):
    """What would make the failed work succeed. The one axis that decisions start from."""

    domain: Domain
    repeat: Repeat
    retryable: bool
    """Whether the same call, unchanged, may be repeated after a wait."""
    resubmit: bool
    """Whether a person may submit the same work again."""
    status: int
    """HTTP status when the kind does not set its own."""
    job: JobCategory

    def __new__(
        cls, value: str, domain: Domain, repeat: Repeat, resubmit: bool, status: int, job: JobCategory
    ) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.domain = domain
        member.repeat = repeat
        member.retryable = repeat is Repeat.AFTER_WAITING
        member.resubmit = resubmit
        member.status = status
        member.job = job
        return member

    TRANSIENT = "transient", Domain.RUNTIME, Repeat.AFTER_WAITING, True, 503, "transient"
    RESOURCE = "resource", Domain.RUNTIME, Repeat.AFTER_FREEING, True, 503, "resource"
    AMBIGUOUS = "ambiguous", Domain.RUNTIME, Repeat.AFTER_CHECKING, True, 502, "transient"
    CAPACITY = "capacity", Domain.RUNTIME, Repeat.NEVER, True, 503, "transient"
    CONFIGURATION = "configuration", Domain.CONFIG, Repeat.NEVER, True, 500, "user_input"
    CONTENT = "content", Domain.INPUT, Repeat.NEVER, True, 422, "user_input"
    USER_INPUT = "user_input", Domain.INPUT, Repeat.NEVER, True, 422, "user_input"
    DENIED = "denied", Domain.INPUT, Repeat.NEVER, True, 403, "user_input"
    LIMIT = "limit", Domain.RUNTIME, Repeat.NEVER, True, 409, "user_input"
    CANCELLED = "cancelled", Domain.RUNTIME, Repeat.NEVER, True, 409, "transient"
    FATAL = "fatal", Domain.RUNTIME, Repeat.NEVER, False, 500, "fatal"
    UNKNOWN = "unknown", Domain.RUNTIME, Repeat.NEVER, False, 500, "fatal"


class Certainty(StrEnum):
    """Whether the work was done, and may have been billed."""

    NOT_SENT = "not_sent"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    PARTIAL = "partial"
    DONE_BUT_LOST = "done_but_lost"


class Blame(StrEnum):
    """What the failure affects: the scope of a breaker or a cooldown."""

    REQUEST = "request"
    MODEL = "model"
    DEPLOYMENT = "deployment"
    ACCOUNT = "account"
    PROVIDER = "provider"
    WORKER = "worker"
    TOOL = "tool"
    WORKFLOW = "workflow"
    HOST = "host"
    OURSELVES = "ourselves"


class ActionKind(StrEnum):
    """What a person should do next."""

    WAIT_AND_RETRY = "wait_and_retry"
    CHECK_OUTCOME = "check_outcome"
    CHECK_BILLING = "check_billing"
    CHECK_CREDENTIALS = "check_credentials"
    REQUEST_ACCESS = "request_access"
    CHANGE_INPUT = "change_input"
    CHANGE_MODEL = "change_model"
    FIX_CONFIGURATION = "fix_configuration"
    FREE_RESOURCES = "free_resources"
    RAISE_LIMIT = "raise_limit"
    DECIDE = "decide"
    RESUBMIT = "resubmit"
    CONTACT_SUPPORT = "contact_support"
    UNKNOWN = "unknown"
