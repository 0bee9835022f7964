"""A model that gives the replies of a script, in order: for demos, tests and rehearsals, without a key.

The script is a YAML file. `scripted:auto` needs none: every request gets a value of the declared output. This module imports
pydantic-ai; import it only where a turn runs.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import Any, Literal, cast

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

from failwell.errors.axes import ActionKind
from failwell.errors.facts import NotBefore, UserAction
from failwell.errors.faults import FAMILIES, Validation
from failwell.errors.frozen import frozen
from failwell.errors.kind_registry import KindError, check_kind
from failwell.files.documents import read_document
from failwell.files.item_tree import Item
from failwell.files.item_tree import Path as ItemPath
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import Converted, Key, ListOf, MapOf, Shape
from failwell.files.value_types import INVALID, AnyJson, Choice, Flag, Number, Text

Finish = Literal["stop", "length", "content_filter"]


@frozen
class ScriptedCall:
    """One tool call in a reply."""

    name: str
    arguments: Any = None
    """Usually a mapping; a text is sent as it is, also where it is not JSON."""


@frozen
class ScriptedReply:
    """One reply: a text, tool calls, or a failure."""

    text: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    finish: Finish | None = None
    fail: str | None = None
    """The kind of failure that is raised instead of a reply."""
    retry_after: float | None = None
    usage: Mapping[str, int] = field(default_factory=dict[str, int])


@frozen
class Script:
    """The replies of a file, for all agents and by agent."""

    replies: tuple[ScriptedReply, ...] = ()
    agents: Mapping[str, tuple[ScriptedReply, ...]] = field(
        default_factory=dict[str, "tuple[ScriptedReply, ...]"]
    )
    file: str = ""
    is_automatic: bool = False
    """Whether agents without replies answer with a value of their declared output."""
    is_repeated: bool = False
    """Whether the last reply is given for every further request."""

    def replies_for(self, agent: str) -> tuple[ScriptedReply, ...]:
        """The replies of `agent`: its name, or `NAME@VISIT#ATTEMPT` for those of one execution where it has any."""
        name, _, execution = agent.partition("@")
        visit, _, attempt = execution.partition("#")
        for key in (agent, f"{name}@{visit}", f"{name}#{attempt}", name):
            if key in self.agents:
                return self.agents[key]
        return self.replies


def read_script(path: Path) -> Script:
    """The replies in a YAML file.

    Raises:
        Validation: the file cannot be read or has mistakes; each is named with its place.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "it cannot be opened").lower()
        raise Validation(
            kind="validation.config_invalid",
            message=f"the script {path} of the scripted model cannot be read: {reason}",
            user_action=UserAction(
                ActionKind.FIX_CONFIGURATION, "Name a file after `scripted:`, relative to the workflow file."
            ),
        ) from error
    # The name decides how a document is read, and a script is always YAML.
    name = str(path) if path.suffix in (".yaml", ".yml") else f"{path}.yaml"
    document = read_document(content, name, _SCRIPT)
    if document.value is None:
        raise Validation(
            kind="validation.config_invalid",
            message=f"the script {path} of the scripted model has mistakes: {'; '.join(document.lines)}",
            fields_invalid=document.fields,
            details={"mistakes": document.lines},
        )
    values: dict[str, Any] = document.value
    return Script(
        replies=values.get("replies", ()),
        agents=values.get("agents", {}),
        file=str(path),
        is_automatic=values.get("auto", False),
    )


def _kind(value: str, item: Item, path: ItemPath, log: MistakeLog) -> Any:
    try:
        check_kind(value)
    except KindError as error:
        message, _, hint = str(error).partition("; ")
        log.add_at(item, path, message, hint=hint)
        return INVALID
    return value


def _call(values: dict[str, Any], _item: Item, _path: ItemPath, _log: MistakeLog) -> ScriptedCall:
    return ScriptedCall(name=values["name"], arguments=values.get("arguments"))


def _reply(values: dict[str, Any], _item: Item, _path: ItemPath, _log: MistakeLog) -> ScriptedReply:
    text = values.get("text", "")
    if "json" in values:
        text = dumps(values["json"], ensure_ascii=False)
    return ScriptedReply(
        text=text,
        tool_calls=values.get("tool_calls", ()),
        finish=values.get("finish"),
        fail=values.get("fail"),
        retry_after=values.get("retry_after"),
        usage=values.get("usage", {}),
    )


def _check_reply(values: dict[str, Any], item: Item, path: ItemPath, log: MistakeLog) -> None:
    if not {"text", "json", "tool_calls", "fail"} & values.keys():
        log.add_at(
            item,
            path,
            "a reply needs `text`, `json`, `tool_calls` or `fail`",
            hint="an empty answer is `text: ''`",
        )
    if "retry_after" in values and "fail" not in values:
        log.add_at(item, path, "`retry_after` belongs to a reply with `fail`", hint="remove it")


_CALL = Shape(
    "a tool call",
    {
        "name": Key(Text(), "the tool", required=True),
        "arguments": Key(AnyJson(), "a mapping; a text is sent as it is"),
    },
    make=_call,
)
_REPLY = Shape(
    "a reply",
    {
        "text": Key(Text(allow_empty=True), "the answer"),
        "json": Key(AnyJson(), "the answer, as JSON", null=True),
        "tool_calls": Key(ListOf(_CALL, min_items=1), "the tools that are called"),
        "finish": Key(Choice("stop", "length", "content_filter"), "why the answer ends"),
        "fail": Key(Converted(Text(), _kind), "the kind of failure that is raised instead"),
        "retry_after": Key(Number(0), "seconds that the failure asks to wait"),
        "usage": Key(MapOf(Number(0, integer=True)), "the tokens that the reply reports"),
    },
    make=_reply,
    check=_check_reply,
    at_most=(("text", "json", "fail"), ("tool_calls", "fail"), ("finish", "fail")),
)
_SCRIPT = Shape(
    "the script of a scripted model",
    {
        "replies": Key(ListOf(_REPLY), "the replies of every agent that has none of its own"),
        "agents": Key(MapOf(ListOf(_REPLY)), "replies by the name of the agent"),
        "auto": Key(Flag(), "whether agents without replies answer with a value of their declared output"),
    },
)


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


AUTO = "auto"
_TEXT = "text"
_NUMBER = 100
_DEEPEST = 20


def automatic_script(schema: Mapping[str, Any] | None) -> Script:
    """One reply that is given again and again: a text, or JSON that matches `schema`."""
    text = _TEXT if schema is None else dumps(sample(schema), ensure_ascii=False)
    return Script(replies=(ScriptedReply(text=text),), file=f"scripted:{AUTO}", is_repeated=True)


def sample(schema: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that matches a schema: its default, its first choice, `true`, the largest number. Patterns are not solved."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind: object = schema.get("type", "string")
    if isinstance(kind, list):
        kind = cast("list[object]", kind)[0]
    if depth >= _DEEPEST or kind == "null":
        return None
    if kind == "object":
        properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties") or {})
        return {name: sample(inner, depth + 1) for name, inner in properties.items()}
    if kind == "array":
        items = cast("Mapping[str, Any]", schema.get("items") or {"type": "string"})
        return [sample(items, depth + 1)] * max(1, int(schema.get("minItems", 1)))
    if kind == "boolean":
        return True
    if kind in ("number", "integer"):
        return schema.get("maximum", max(_NUMBER, schema.get("minimum", _NUMBER)))
    return _TEXT.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]
