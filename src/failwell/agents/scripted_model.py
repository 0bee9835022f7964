"""A model that gives the replies of a script, in order: for demos, tests and rehearsals, without a key.

It imports pydantic-ai; import it only where a turn runs.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from json import dumps
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from failwell.agents.scripted_model__script_file import Script, ScriptedReply
from failwell.errors.facts import NotBefore
from failwell.errors.faults import FAMILIES, Validation

SYSTEM = "scripted"
_CHARACTERS_PER_TOKEN = 4
_CHUNK = 16
"""Characters of each piece of a streamed text."""


class ScriptedModel(Model[None]):
    """Gives the replies of one agent, each once. A request beyond the last one fails and says so.

    Args:
        script: The replies.
        agent: The agent that they are for.
        answers: How many answers it gave before; it goes on after them.
    """

    def __init__(self, script: Script, agent: str, answers: int = 0) -> None:
        super().__init__()
        self._script = script
        self._agent = agent.partition("@")[0]
        self._replies = script.replies_for(agent)
        self._next = _position(self._replies, answers)

    @property
    def model_name(self) -> str:
        return self._agent or "replies"

    @property
    def system(self) -> str:
        return SYSTEM

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        del model_settings, model_request_parameters
        reply = self._take()
        return ModelResponse(
            parts=_parts(reply, self._next),
            usage=_usage(reply, messages),
            model_name=self.model_name,
            provider_name=SYSTEM,
            finish_reason=reply.finish or ("tool_call" if reply.tool_calls else "stop"),
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        del model_settings, run_context
        reply = self._take()
        yield _ScriptedStream(
            model_request_parameters=model_request_parameters,
            name=self.model_name,
            reply=reply,
            number=self._next,
            used=_usage(reply, messages),
        )

    def _take(self) -> ScriptedReply:
        if self._script.is_repeated and self._replies:
            self._next = min(self._next, len(self._replies) - 1)
        if self._next >= len(self._replies):
            raise Validation(
                kind="validation.config_invalid",
                message=f"the script {self._script.file} has {len(self._replies)} replies for"
                f" `{self._agent}`, and a further one was requested",
                caller_facing=True,
            )
        reply = self._replies[self._next]
        self._next += 1
        if reply.fail is not None:
            raise _failure(reply)
        return reply


@dataclass
class _ScriptedStream(StreamedResponse):
    name: str
    reply: ScriptedReply
    number: int
    used: RequestUsage
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        self._usage = self.used
        text = self.reply.text
        for start in range(0, len(text), _CHUNK):
            for event in self._parts_manager.handle_text_delta(
                vendor_part_id="text", content=text[start : start + _CHUNK]
            ):
                yield event
        for index, part in enumerate(_parts(self.reply, self.number)):
            if isinstance(part, ToolCallPart):
                yield self._parts_manager.handle_part(vendor_part_id=index, part=part)
        self.finish_reason = self.reply.finish or ("tool_call" if self.reply.tool_calls else "stop")

    @property
    def model_name(self) -> str:
        return self.name

    @property
    def provider_name(self) -> str:
        return SYSTEM

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self.started


def _position(replies: Sequence[ScriptedReply], answers: int) -> int:
    """The reply that follows as many answers. Failures are no answers."""
    position = 0
    while answers and position < len(replies):
        answers -= replies[position].fail is None
        position += 1
    return position + answers


def _parts(reply: ScriptedReply, number: int) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = [TextPart(reply.text)] if reply.text else []
    parts += [
        # A stable id: a resumed conversation must have the same calls.
        ToolCallPart(call.name, call.arguments or {}, tool_call_id=f"call_{number}_{index}")
        for index, call in enumerate(reply.tool_calls, start=1)
    ]
    return parts


def _usage(reply: ScriptedReply, messages: list[ModelMessage]) -> RequestUsage:
    if reply.usage:
        return RequestUsage(
            input_tokens=reply.usage.get("input_tokens", 0), output_tokens=reply.usage.get("output_tokens", 0)
        )
    sent = sum(len(str(getattr(part, "content", ""))) for message in messages for part in message.parts)
    answer = len(reply.text) + sum(len(dumps(call.arguments)) for call in reply.tool_calls)
    return RequestUsage(
        input_tokens=-(-sent // _CHARACTERS_PER_TOKEN), output_tokens=-(-answer // _CHARACTERS_PER_TOKEN)
    )


def _failure(reply: ScriptedReply) -> Exception:
    kind = reply.fail or ""
    fields: dict[str, Any] = {"kind": kind}
    if reply.retry_after is not None:
        fields["not_before"] = NotBefore(after=reply.retry_after, source="script")
    for family in FAMILIES:
        if family.holds(kind):
            return family(**fields)
    from failwell.errors.fault import Fault

    return Fault(**fields)
