"""Reads the replies of a scripted model from YAML.

replies:                                  # for agents without replies of their own
  - text: The sky is blue.

agents:
  planner#2:                              # its second attempt; `planner@2` is its second visit
    - text: The sky is grey.
  planner:                                # the name of the agent
    - tool_calls:
        - name: search
          arguments: {query: sky}
    - fail: provider.overloaded           # a typed failure, as a provider would raise it
      retry_after: 2
    - json: {answer: blue}                # a text that is JSON
    - text: The sky is
      finish: length                      # the answer was cut off
      usage: {input_tokens: 11, output_tokens: 4}
"""

from collections.abc import Mapping
from dataclasses import field
from json import dumps
from pathlib import Path
from typing import Any, Literal

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.faults import Validation
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
