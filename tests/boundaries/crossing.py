"""Failures to send across a boundary, and what both sides must agree on."""

from typing import Any

from failwell import Fault
from failwell.adapters.describe import describe
from failwell.capability import ResourceShortfall
from failwell.errors import NotBefore, ProviderMetadata, UserAction
from failwell.errors.axes import ActionKind, Blame, Certainty
from failwell.errors.faults import ProviderTransient
from failwell.errors.report import ErrorReport

AGREED = (
    "kind", "category", "domain", "certainty", "blame", "retryable", "message", "title", "error_type", "user_action",
    "caller_facing", "provider", "model", "provider_metadata", "fields_invalid", "resource_shortfall", "details",
    "http_status", "resubmit",
)  # fmt: skip
"""What a crossing may not change. The place in the code does not cross, so the fingerprint may."""


class Step(Fault):
    """A step of the plan failed."""


class Run(Fault):
    """The run failed."""


class Overruled(Fault, kind="tool.busy"):
    """The tool is taken, whatever its cause was."""

    tool: str = "printer"


def a_leaf() -> Fault:
    """A fault that says everything a fault can say."""
    return ProviderTransient(
        kind="provider.rate_limited",
        message="too many calls",
        certainty=Certainty.PARTIAL,
        blame=Blame.MODEL,
        user_action=UserAction(ActionKind.CHANGE_MODEL, "use the small one"),
        provider="acme",
        model="large",
        provider_metadata=ProviderMetadata(
            sdk="acme", status_code=429, code="slow_down", request_id="req_1", retry_after=7.5,
            headers={"retry-after": "7.5"},
        ),
        not_before=NotBefore(after=7.5, source="retry-after", confidence="medium"),
        fields_invalid=["prompt"],
        resource_shortfall=ResourceShortfall("gpu_vram_mb", 2_000.0, 500.0),
        details={"batch": 3, "names": ["a", "b"]},
    )  # fmt: skip


def a_foreign_leaf() -> BaseException:
    """An exception that only an adapter can read."""
    attributes = {
        "status_code": 429,
        "code": "rate_limit_exceeded",
        "body": {"code": "rate_limit_exceeded", "message": "slow down"},
        "message": "slow down",
    }
    cls: Any = type("RateLimitError", (Exception,), {"__module__": "openai", **attributes})
    return cls("Error code: 429 - slow down")


def a_disk_full() -> BaseException:
    return OSError(28, "No space left on device", "/data/out.bin")


def a_group() -> BaseException:
    return ExceptionGroup("two", [a_leaf(), OSError(28, "full")])


LEAVES = {
    "fault": a_leaf,
    "foreign": a_foreign_leaf,
    "system": a_disk_full,
    "value": lambda: ValueError("no"),
    "group": a_group,
}


def three_deep(leaf: BaseException) -> Fault:
    """Wrappers that add context and say nothing about the kind."""
    step = Step.wrap(leaf, "step `summarise` failed")
    run = Run.wrap(step, "run 7 failed", details={"run": 7})
    outermost = Fault.wrap(run, "the page was not written")
    outermost.add_note("during the night")
    return outermost


def renamed(leaf: BaseException) -> Fault:
    """A wrapper in the middle that calls the failure something else."""
    return Fault.wrap(Overruled.wrap(Step.wrap(leaf, "step failed"), "taken"), "outside")


CHAINS = {"inherits": three_deep, "renames": renamed}


def agreed(report: ErrorReport) -> dict[str, Any]:
    """What both sides must agree on, with the wait but without its clock time."""
    said = {name: getattr(report, name) for name in AGREED}
    wait = report.not_before
    said["wait"] = None if wait is None else (wait.after, wait.source, wait.confidence)
    said["causes"] = [(cause.type, cause.kind) for cause in report.causes]
    return said


def raise_in_child(leaf: str, chain: str) -> None:
    """Fail in another process."""
    raise CHAINS[chain](LEAVES[leaf]())


def describe_in_child(written: str) -> str:
    """Read a report in another process, raise it there, and describe what was caught."""
    from failwell.adapters import revive

    try:
        raise revive(ErrorReport.from_json(written))
    except Fault as caught:
        return describe(caught).to_json()
