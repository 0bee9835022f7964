"""One turn of an agent: the model is called, its tool calls are run, and so on until it answers.

Every model call goes through a chain, so failures are repeated and passed on to the next model in one place. The
limits end a turn that does not: on the calls of models, and on rounds in which the model only made mistakes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from failwell.adapters.describe import describe
from failwell.agents.audit import NotAudited, TurnAudit, text_of
from failwell.agents.tool_calls import Dispatcher, ToolOutcome
from failwell.agents.tools.tool import ToolContext
from failwell.calls.cancel import CancelScope, cancel_scope
from failwell.calls.chain.chain import Chain
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.calls.suppress import OnRaise
from failwell.errors.fault import Fault
from failwell.errors.faults import ToolTerminal
from failwell.errors.frozen import frozen

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
    from pydantic_ai.models import ModelRequestParameters

MOST_CALLS = 17
"""Model calls of one turn: the first, and one after each of 16 rounds of tools."""
MOST_CORRECTIONS = 3
"""Rounds that hold a call of an unknown tool or with invalid arguments. The next one ends the turn."""


class TurnLimit(Fault, kind="limit.turn_limit"):
    """The model did not come to an answer within the calls that a turn may take."""

    calls: int

    def summary(self) -> str:
        return f"no answer after {self.calls} model calls, which is the limit of a turn"


class TurnTimeout(Fault, kind="limit.step_timeout"):
    """The turn took longer than it may. The time is looked at before each call of a model."""

    seconds: float

    def summary(self) -> str:
        return f"no answer within the {self.seconds:g} s that a turn may take"


@frozen
class TurnEvent:
    """Something that happened in a turn, without prompts, answers or arguments."""

    type: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


class TurnRecorder:
    """Takes note of a turn as it happens, with its contents. A session keeps them; a step of a workflow does not.

    What a method raises ends the turn: nothing happens that could not be noted.
    """

    async def show(self, piece: str) -> None:
        """The next piece of the text of an answer."""

    async def answered(self, response: "ModelResponse") -> None:
        """A model answered, before any of its tool calls is run."""

    async def calling(self, call: "ToolCallPart") -> None:
        """A tool is about to be called."""

    async def called(self, call: "ToolCallPart", outcome: ToolOutcome) -> None:
        """The call of a tool ended."""


class Turn:
    """One turn that is being run, and what it used so far.

    Args:
        chain: The models, in order of preference.
        dispatcher: Runs the tool calls.
        context: What the tools get.
        most_calls: Model calls at most.
        max_tokens: The longest answer, for the estimate of its cost.
        longest: Seconds after which no further model call is made.
        clock: Tells the time.
        stops_at_limit: Whether the last call ends the turn instead of failing it. Its tools run, and the model does not
            see their results.
        is_complete: Asked after each round of tools; `True` ends the turn.
        cancel: Stops the turn.
        observe: Called with each event.
        recorder: Takes note of answers and tool calls. With it, answers are shown while they come in, and a model
            that fails after its first piece is not called again.
    """

    def __init__(
        self,
        chain: Chain[Any],
        dispatcher: Dispatcher,
        context: ToolContext,
        *,
        most_calls: int = MOST_CALLS,
        max_tokens: int | None = None,
        longest: float | None = None,
        clock: Clock = SYSTEM_CLOCK,
        stops_at_limit: bool = False,
        is_complete: Callable[[], bool] | None = None,
        cancel: CancelScope | None = None,
        observe: Callable[[TurnEvent], object] | None = None,
        recorder: TurnRecorder | None = None,
    ) -> None:
        self._chain = chain
        self._dispatcher = dispatcher
        self._context = context
        self._most_calls = most_calls
        self._limits: dict[str, Any] = {} if max_tokens is None else {"max_tokens": max_tokens}
        self._longest = longest
        self._clock = clock
        self._end: float | None = None if longest is None else clock.monotonic() + longest
        self._stops_at_limit = stops_at_limit
        self._is_complete = is_complete
        self._cancel = cancel
        self._observe = observe
        self._recorder = recorder
        self._system: str | None = None
        self._left = most_calls
        self._number = 0
        self._counted: object = None
        self.messages: list[ModelMessage] = []
        """The conversation, this turn included."""
        self.tokens: dict[str, int] = {}
        self.cost: int | None = 0
        """Micro-cents, or `None` once a call had no known price."""
        self.served_by: tuple[str, str] | None = None
        """Who gave the last answer: provider and model."""
        self.cap_hit = False
        """Whether the limit of calls ended the turn."""

    @property
    def calls(self) -> int:
        """Calls of models so far."""
        return self._number

    async def run(
        self, prompt: str | None, *, system: str | None = None, history: "Sequence[ModelMessage]" = ()
    ) -> str:
        """Run the turn; the text of the answer. Without a prompt, the model answers what the history ends with.

        Raises:
            Exception: what the last model of the chain raised, with the ledger on it.
            TurnLimit: no answer within the calls of a turn.
            TurnTimeout: no answer within the seconds of a turn.
            ToolTerminal: the model made one mistake too many in its tool calls.
        """
        self.messages = list(history)
        self._system = system
        self._left = self._most_calls
        return await self._run(prompt)

    async def correct(self, prompt: str) -> str:
        """Ask for a better answer in the same conversation. What is left of the calls of the turn applies.

        Raises:
            Exception: as `run`.
        """
        return await self._run(prompt)

    async def _run(self, prompt: str | None) -> str:
        audit = self._dispatcher.audit
        if audit is None:
            return await self._run_rounds(prompt)
        audit.record("turn:started", key=self._context.key)
        with OnRaise(partial(self._record_failure, audit)):
            text = await self._run_rounds(prompt)
        audit.record("turn:ended", key=self._context.key, calls=self._number)
        return text

    def _record_failure(self, audit: TurnAudit, error: Exception) -> None:
        if isinstance(error, NotAudited):
            return
        report = describe(error)
        audit.record(
            "turn:failed", key=self._context.key, kind=report.kind, error=report.id, text=text_of(report)
        )

    async def _run_rounds(self, prompt: str | None) -> str:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        if prompt is not None:
            self.messages.append(ModelRequest(parts=[UserPromptPart(prompt)], instructions=self._system))
        parameters = self._parameters()
        corrections = 0
        while self._left > 0:
            self._left -= 1
            # Never reset: the number is a part of the idempotency keys of tool calls.
            self._number += 1
            response = await self._ask(parameters, self._number)
            calls = response.tool_calls
            if not calls:
                return response.text or ""
            if not self._left and not self._stops_at_limit:
                break
            outcomes = await self._run_tools(calls, self._number)
            if any(outcome.is_correctable for outcome in outcomes):
                corrections += 1
                if corrections > MOST_CORRECTIONS:
                    raise _uncorrected(outcomes)
            self.messages.append(_results(calls, outcomes, self._system))
            is_complete = self._is_complete is not None and self._is_complete()
            self.cap_hit = not self._left and not is_complete
            if self.cap_hit or is_complete:
                return response.text or ""
        raise TurnLimit(calls=self._most_calls)

    async def _ask(self, parameters: "ModelRequestParameters", number: int) -> "ModelResponse":
        self._check_cancel()
        if self._end is not None and self._clock.monotonic() >= self._end:
            raise TurnTimeout(seconds=self._longest or 0.0)
        try:
            response = await self._call_model(parameters)
        finally:
            self._count()
        self._check_cancel()
        _name_apart(response, self.messages)
        self.messages.append(response)
        if self._recorder is not None:
            await self._recorder.answered(response)
        provider, model = self.served_by or ("", "")
        self._note(
            "model:answered",
            call=number,
            provider=provider,
            model=model,
            tool_calls=len(response.tool_calls),
        )
        return response

    async def _call_model(self, parameters: "ModelRequestParameters") -> "ModelResponse":
        if self._recorder is None:
            return await self._chain.acall(self.messages, parameters, **self._limits)
        from pydantic_ai.messages import ModelResponse

        response: ModelResponse | None = None
        async for piece in self._chain.astream(self.messages, parameters, streamed=True, **self._limits):
            if isinstance(piece, ModelResponse):
                response = piece
            else:
                await self._recorder.show(piece)
        assert response is not None  # (a stream ends with the response)
        return response

    def _count(self) -> None:
        """Add what the call cost, its failed attempts included."""
        ledger = self._chain.ledger
        if ledger is self._counted:
            # Nothing was sent: it is that of the call before.
            return
        self._counted = ledger
        for row in ledger.attempts:
            for name, count in (row.usage or {}).items():
                self.tokens[name] = self.tokens.get(name, 0) + count
            if row.usage:
                self.cost = None if self.cost is None or row.cost is None else self.cost + row.cost
            if row.kind is None:
                self.served_by = (row.provider or "", row.model or "")

    async def _run_tools(self, calls: "Sequence[ToolCallPart]", number: int) -> list[ToolOutcome]:
        """Run the calls of one answer one after another. A missing capability or an interrupted run ends the turn."""
        outcomes: list[ToolOutcome] = []
        for index, call in enumerate(calls):
            outcome = await self._run_tool(call, self._context.with_call(f"{number}.{index}"))
            outcomes.append(outcome)
            kind = None if outcome.report is None else outcome.report.kind
            self._note("tool:called", tool=call.tool_name[:100], kind=kind)
            if kind == "tool.unavailable":
                # The model cannot provide it, and neither can another call.
                raise ToolTerminal(
                    kind="tool.unavailable",
                    message=f"`{call.tool_name[:100]}` needs a capability that is missing here",
                    details=dict(outcome.report.details) if outcome.report else {},
                    caller_facing=True,
                )
        return outcomes

    async def _run_tool(self, call: "ToolCallPart", context: ToolContext) -> ToolOutcome:
        if self._recorder is None:
            return await self._dispatcher.call(call.tool_name, call.args, context)
        await self._recorder.calling(call)
        with cancel_scope("tool", name=call.tool_name[:100]):
            outcome = await self._dispatcher.call(call.tool_name, call.args, context)
        await self._recorder.called(call, outcome)
        return outcome

    def _parameters(self) -> "ModelRequestParameters":
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        return ModelRequestParameters(
            function_tools=[
                ToolDefinition(
                    name=tool.name,
                    description=tool.description or None,
                    parameters_json_schema=_open_parameters(tool.parameters, tool.fixed),
                )
                for tool in self._dispatcher.offered
            ]
        )

    def _check_cancel(self) -> None:
        if self._cancel is not None:
            self._cancel.check()

    def _note(self, name: str, **data: Any) -> None:
        if self._observe is not None:
            self._observe(TurnEvent(type=name, data=data))


def _name_apart(response: "ModelResponse", before: "Sequence[ModelMessage]") -> None:
    """Give each tool call an id of its own. Some providers count from one in every answer, or say the same id twice."""
    calls = response.tool_calls
    if not calls:
        return
    taken = {
        part.tool_call_id for message in before for part in message.parts if part.part_kind == "tool-call"
    }
    for call in calls:
        name, number = call.tool_call_id or "call", 1
        while call.tool_call_id in taken or not call.tool_call_id:
            number += 1
            call.tool_call_id = f"{name[:50]}_{number}"
        taken.add(call.tool_call_id)


def _open_parameters(schema: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without the arguments that the file sets: the model need not know them."""
    if not fixed:
        return dict(schema)
    properties = {key: value for key, value in schema.get("properties", {}).items() if key not in fixed}
    required = [key for key in schema.get("required", ()) if key not in fixed]
    return {**schema, "properties": properties, "required": required}


def _results(
    calls: "Sequence[ToolCallPart]", outcomes: Sequence[ToolOutcome], system: str | None
) -> "ModelMessage":
    from pydantic_ai.messages import ModelRequest, ToolReturnPart

    return ModelRequest(
        parts=[
            ToolReturnPart(call.tool_name, outcome.seen, tool_call_id=call.tool_call_id)
            for call, outcome in zip(calls, outcomes, strict=True)
        ],
        instructions=system,
    )


def _uncorrected(outcomes: Sequence[ToolOutcome]) -> Fault:
    outcome = next(outcome for outcome in outcomes if outcome.is_correctable)
    details: dict[str, Any] = {"tool": outcome.tool[:100], "rounds": MOST_CORRECTIONS + 1}
    if outcome.report is not None:
        details["last_kind"] = outcome.report.kind
    return ToolTerminal(
        kind="tool.failed",
        message=f"the model called tools wrongly in {MOST_CORRECTIONS + 1} rounds",
        details=details,
        caller_facing=True,
    )
