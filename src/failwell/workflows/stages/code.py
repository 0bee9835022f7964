"""Runs the phases of stages that are written in Python.

A function takes one `StagePhase`. Only `setup` may write into its context; what the other phases see of it is read-only,
to any depth.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from copy import deepcopy
from functools import partial
from inspect import iscoroutine
from json import dumps
from pathlib import Path
from typing import Any, NoReturn, cast

from failwell.errors.faults import Validation
from failwell.errors.frozen import frozen
from failwell.workflows.envelope import Malformed, parse
from failwell.workflows.machine.messages import Request
from failwell.workflows.running.executor import Tools


@frozen
class StagePhase:
    """What code of a stage gets."""

    stage: str
    phase: str
    attempt: int
    """Counts from 1."""
    context: MutableMapping[str, Any]
    """Writable in `setup`; anything else raises `validation.context_read_only` on a write."""
    feedback: str = ""
    """What `assert` said about the previous attempt."""
    act: Mapping[str, Any] | None = None
    """After `act`: `output`, `capHit` and `calls`."""
    error: Mapping[str, Any] | None = None
    """In `exit` and `next` of a failed stage: the failure, with `kind`, `message` and `details`."""
    siblings: Mapping[str, Any] | None = None
    """In a join: the outputs of the stages that ran side by side, by id."""


@frozen
class Verdict:
    """What `checkGate` or `assert` decides; a plain text is a verdict without feedback."""

    verdict: str
    feedback: str = ""
    kind: str | None = None


PhaseCode = Callable[[StagePhase], Any]


async def run_code(request: Request, tools: Tools) -> dict[str, Any]:
    """Call the function of a phase; its result as the machine takes it.

    Raises:
        Validation: there is no such function, it wrote into the context, or it returned what the phase cannot use.
        Exception: whatever the function raised.
    """
    from failwell.agents.tools.function import load_object
    from failwell.agents.tools.tool_thread import run_in_loop, run_in_thread

    call = request.call
    phase: str = call["phase"]
    function: PhaseCode = load_object(call["code"], Path(tools.plan.folder), "code of a stage")
    context: MutableMapping[str, Any] = deepcopy(dict(call["context"]))
    phase_input = StagePhase(
        stage=request.node.name,
        phase=phase,
        attempt=call["attempt"],
        context=context if phase == "setup" else _ReadOnly(context, request.node.name, phase),
        feedback=call["feedback"],
        act=deepcopy(call["act"]),
        error=call["error"],
        siblings=deepcopy(call["siblings"]),
    )
    result = await run_in_thread(lambda: function(phase_input))
    if iscoroutine(result):
        result = await run_in_loop(result)
    return _as_result(request.node.name, phase, result, context)


def _as_result(stage: str, phase: str, result: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """What the function of a phase returned, as JSON."""
    match phase:
        case "setup":
            if result is not None:
                raise _refusal(stage, phase, "must write into `context` and return nothing")
            return {"context": _as_json(stage, phase, context)}
        case "init":
            return {}
        case "checkGate" | "assert":
            verdict = Verdict(verdict=result) if isinstance(result, str) else result
            if not isinstance(verdict, Verdict):
                raise _refusal(stage, phase, "must return a verdict")
            values = {"verdict": verdict.verdict, "feedback": str(verdict.feedback)}
            return values if verdict.kind is None else {**values, "kind": verdict.kind}
        case "exit":
            if result is not None and not isinstance(result, Mapping):
                raise _refusal(stage, phase, "must return a mapping")
            return {"output": _as_json(stage, phase, result or {})}
        case _:
            if not isinstance(result, str):
                raise _refusal(stage, phase, "must return the id of a stage, or `$end`")
            return {"to": result}


def _as_json(stage: str, phase: str, value: Any) -> Any:
    try:
        return parse(dumps(value, allow_nan=False).encode("utf-8", "replace"))
    except (Malformed, TypeError, ValueError, RecursionError) as error:
        raise _refusal(stage, phase, "left a value that is not JSON") from error


def _refusal(stage: str, phase: str, problem: str) -> Validation:
    return Validation(
        kind="validation.config_invalid",
        message=f"`{phase}` of `{stage}` {problem}",
        details={"stage": stage, "phase": phase},
        caller_facing=True,
    )


class _ReadOnly(dict[str, Any]):
    """The context where it may only be read. Mappings and lists in it are read-only, too."""

    def __init__(self, values: Mapping[str, Any], stage: str, phase: str) -> None:
        super().__init__({key: _read_only(value, stage, phase) for key, value in values.items()})
        self._refuse = partial(_refuse_write, stage, phase)

    def _refused(self, *arguments: Any, **_more: Any) -> NoReturn:
        self._refuse(arguments[0] if arguments else "")

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        """A copy that its owner may write to."""
        return {key: deepcopy(value, memo) for key, value in self.items()}

    __setitem__ = __delitem__ = __ior__ = _refused
    clear = pop = popitem = setdefault = update = _refused  # type: ignore[assignment]


class _ReadOnlyList(list[Any]):
    """A list in a context that may only be read."""

    def __init__(self, values: Sequence[Any], stage: str, phase: str) -> None:
        super().__init__([_read_only(value, stage, phase) for value in values])
        self._refuse = partial(_refuse_write, stage, phase)

    def _refused(self, *arguments: Any, **_more: Any) -> NoReturn:
        self._refuse(arguments[0] if arguments else "")

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        """A copy that its owner may write to."""
        return [deepcopy(value, memo) for value in self]

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused
    append = clear = extend = insert = pop = remove = reverse = sort = _refused  # type: ignore[assignment]


def _read_only(value: Any, stage: str, phase: str) -> Any:
    if isinstance(value, dict):
        return _ReadOnly(cast("dict[str, Any]", value), stage, phase)
    if isinstance(value, list):
        return _ReadOnlyList(cast("list[Any]", value), stage, phase)
    return value


def _refuse_write(stage: str, phase: str, key: object) -> NoReturn:
    raise Validation(
        kind="validation.context_read_only",
        message=f"`{phase}` of `{stage}` wrote into the context; only `setup` may",
        details={"stage": stage, "phase": phase, "key": str(key)[:100]},
        caller_facing=True,
    )
