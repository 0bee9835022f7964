"""The message formats by name, which one a list of messages has, and messages as plain JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

from failwell.agents.messages.blocks import Message, MessageFormat, as_list, as_object, as_text
from failwell.errors.foreign_objects import safe_getattr

_CLASSES = {
    "anthropic": ("anthropic", "Anthropic"),
    "bedrock": ("bedrock", "Bedrock"),
    "cohere": ("openai_chat", "Cohere"),
    "google": ("google", "Google"),
    "langchain": ("langchain", "LangChain"),
    "mistral": ("openai_chat", "Mistral"),
    "openai": ("openai_chat", "OpenAIChat"),
    "openai-responses": ("openai_responses", "OpenAIResponses"),
    "pydantic-ai": ("pydantic_ai", "PydanticAI"),
}
_FRAMEWORKS = {"langchain_core": "langchain", "pydantic_ai": "pydantic-ai"}
"""Top-level modules of frameworks whose message objects have a format of their own."""
FORMATS = tuple(_CLASSES)
"""The names of the formats."""

_ITEMS = {"function_call", "function_call_output", "reasoning", "custom_tool_call", "custom_tool_call_output"}
_ANTHROPIC_BLOCKS = {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"}
_BEDROCK_BLOCKS = {"toolUse", "toolResult", "reasoningContent"}


@cache
def message_format(name: str) -> MessageFormat:
    """The format called `name`.

    Raises:
        ValueError: there is no such format. The message lists them.
    """
    if name not in _CLASSES:
        names = ", ".join(f"`{known}`" for known in FORMATS)
        raise ValueError(f"no message format `{name}`; there are {names}")
    module, title = _CLASSES[name]
    return cast("MessageFormat", getattr(import_module(f"failwell.agents.messages.{module}"), title)())


def open_conversation(messages: Iterable[object], name: str | None) -> tuple[MessageFormat, list[Any]]:
    """The format of a conversation, and its messages as this format reads them.

    Raises:
        ValueError: there is no such format.
        TypeError: a message is not of this format, or of none.
    """
    if isinstance(messages, (str, bytes, dict)):
        raise TypeError("`messages` is a list of messages, not one message or its text")
    conversation = list(messages)
    frameworks = [_framework_of(message) for message in conversation]
    own = next((framework for framework in frameworks if framework is not None), None)
    chosen = None if name is None else message_format(name)
    expected = own if chosen is None else chosen.name
    for index, framework in enumerate(frameworks):
        is_framework = expected in _FRAMEWORKS.values()
        if framework != (expected if is_framework else None):
            kind = type(conversation[index]).__name__
            raise TypeError(
                f"messages[{index}] is a `{kind}`, which is not a message of the format `{expected or own}`"
            )
    if own is not None:
        return message_format(own), conversation
    plain = plain_messages(conversation)
    return chosen or message_format(detect_format(plain)), plain


def _framework_of(message: object) -> str | None:
    """The format of a framework's own message object."""
    for cls in type(message).__mro__:
        framework = _FRAMEWORKS.get(cls.__module__.partition(".")[0])
        if framework is not None:
            return framework
    return None


def detect_format(messages: Sequence[Message]) -> str:
    """The name of the format of `messages`. Without anything that only one provider writes it is `openai`."""
    for message in messages:
        if "parts" in message:
            return "google"
        # A stored reply of Anthropic's is a `message` with a stop reason.
        if as_text(message.get("type")) in {*_ITEMS, "message"} and "stop_reason" not in message:
            return "openai-responses"
        if message.get("role") == "tool" or "tool_calls" in message:
            return "openai"
        for part in as_list(message.get("content")):
            block = as_object(part) or {}
            if as_text(block.get("type")) in _ANTHROPIC_BLOCKS:
                return "anthropic"
            if "type" not in block and (block.keys() & _BEDROCK_BLOCKS or "text" in block):
                return "bedrock"
            if as_text(block.get("type")) in {"input_text", "output_text"}:
                return "openai-responses"
        if "stop_reason" in message:
            return "anthropic"
    return "openai"


def plain_messages(messages: Iterable[object]) -> list[Message]:
    """The messages as JSON: models of SDKs and dataclasses become dictionaries, and dictionaries stay the same objects.

    Raises:
        TypeError: a message is neither, or its values contain themselves. The error names its position.
    """
    plain: list[Message] = []
    for index, message in enumerate(messages):
        try:
            value = plain_value(message)
        except RecursionError:
            # No provider could be sent it either.
            raise TypeError(f"messages[{index}] is nested too deeply, or contains itself") from None
        if not isinstance(value, dict):
            raise TypeError(
                f"messages[{index}] is a `{type(message).__name__}`; pass dictionaries as the provider's API "
                "has them, or its SDK's own objects"
            )
        plain.append(cast("Message", value))
    return plain


def plain_value(value: Any) -> Any:
    """A value as JSON where it is a model of an SDK, a dataclass or made of them; anything else as it is."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        converted = {name: plain_value(member) for name, member in members.items()}
        is_same = all(converted[name] is member for name, member in members.items())
        return members if is_same else converted
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        copies = [plain_value(item) for item in items]
        is_same = isinstance(items, list) and all(a is b for a, b in zip(copies, items, strict=True))
        return items if is_same else copies
    if value is None or isinstance(value, (str, int, float, bytes)):
        return value
    dump = safe_getattr(value, "model_dump")
    if callable(dump):
        return dump(mode="json", by_alias=True, exclude_none=True)
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: plain_value(getattr(value, field.name)) for field in fields(value)}
        return {name: member for name, member in members.items() if member is not None}
    return value
