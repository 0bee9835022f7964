"""What a model is told about its answer, and what becomes of the answer or of a turn that failed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from failwell.adapters.describe import describe
from failwell.errors.axes import Category
from failwell.errors.fault import Fault
from failwell.errors.report import ErrorReport, Scene
from failwell.workflows.envelope import Malformed, parse, violation
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Request
from failwell.workflows.running.executor import Success

if TYPE_CHECKING:
    from failwell.workflows.output_schemas import OutputSchemas

_MICRO_CENTS_PER_DOLLAR = 100_000_000
_FENCE = "```"


def system_text(request: Request, is_raw: bool = False, kit: str = "") -> str | None:
    """What the model is told first: the workflow's instructions, the agent's, and the form of its answer."""
    from json import dumps

    parts: list[str] = [text for text in request.call.get("instructions", ()) if text.strip()]
    if kit:
        parts.append(kit)
    if request.call["system_prompt"]:
        parts.append(request.call["system_prompt"])
    if request.node.output is not None and not is_raw:
        schema = dumps(request.node.output, ensure_ascii=False)
        parts.append(
            f"Answer with one JSON object and nothing else. It must match this JSON Schema:\n{schema}"
        )
    return "\n\n".join(parts) or None


def object_in(text: str) -> tuple[dict[str, Any] | None, str]:
    """The JSON object of an answer, with or without a fence around it; else why there is none."""
    stripped = text.strip()
    if stripped.startswith(_FENCE) and stripped.endswith(_FENCE) and "\n" in stripped:
        stripped = stripped[stripped.index("\n") + 1 : -len(_FENCE)].strip()
    try:
        value = parse(stripped.encode("utf-8", "replace"))
    except Malformed:
        # Its message could quote what the model wrote.
        return None, "the answer is not valid JSON"
    if not isinstance(value, dict):
        return None, "the answer is not a JSON object"
    return cast("dict[str, Any]", value), ""


def schema_violation(
    request: Request, reason: str, output: Any, scene: Scene, field: str | None = None
) -> Failure:
    """An answer that is not as the node declares it. The output stays beside the failure."""
    extra = {} if field is None else {"failed_field": field}
    message, details = violation(request.node.name, "agent", reason, **extra)
    failed = Failure.of("internal.schema_violation", message, details=details, typed=True, scene=scene)
    return replace(failed, output=output)


def checked(
    request: Request, output: dict[str, Any], schemas: "OutputSchemas", scene: Scene
) -> Success | Failure:
    """The output, if it is as the node declares it."""
    schema = request.node.output
    if schema is not None:
        from failwell.workflows.output_schemas import SchemaMismatch

        try:
            schemas.check(schema, output, {})
        except SchemaMismatch as error:
            return schema_violation(request, str(error), output, scene, error.field)
    return Success(output=output)


def correction(failure: Failure) -> str:
    """What a model is told about an answer that is not as its node declares it: the rule, and no value."""
    reason = str(failure.report.details.get("original_message", "it does not match the schema"))
    return (
        f"Your answer cannot be used: {reason}. Answer again, with one JSON object that matches the schema."
    )


def turn_report(error: Exception, scene: Scene) -> ErrorReport:
    """The report of a turn that failed. Attempts that are used up are `provider.exhausted`, with the last failure as the cause."""
    report = describe(error, scene=scene, origin=None if isinstance(error, Fault) else "call")
    last = report.attempts[-1] if report.attempts else None
    if last is None or not last.exhausted or report.category is not Category.TRANSIENT:
        return report
    from failwell.agents.models import Exhausted

    exhausted = Exhausted.wrap(
        error,
        called=f"{last.provider}:{last.model}",
        attempts=len(report.attempts),
        last_error=report.kind,
        details={"provider": last.provider, "model": last.model},
    )
    return describe(exhausted, scene=scene)


def late_answer(request: Request, timeout: float | None, error: TimeoutError, scene: Scene) -> Failure:
    """A turn that took longer than the node allows, or a time-out inside it."""
    if timeout is None:
        return Failure(report=describe(error, scene=scene, origin="call"), typed=True)
    return Failure.of(
        "limit.step_timeout",
        f"agent `{request.node.name}` did not answer within {timeout:g} s",
        details={"timeout_seconds": timeout, "node": request.node.name},
        typed=True,
        scene=scene,
    )


def usage_record(tokens: Mapping[str, int], cost: int | None) -> dict[str, Any] | None:
    """Tokens, and their cost where it is known."""
    if not tokens:
        return None
    return {**tokens} if cost is None else {**tokens, "cost_usd": cost / _MICRO_CENTS_PER_DOLLAR}


def scene_of(request: Request) -> Scene:
    """Where a failure of the request happened."""
    return Scene(
        run=request.run,
        workflow=request.workflow,
        node=request.node.name,
        item=request.item,
        attempt=request.attempt,
    )
