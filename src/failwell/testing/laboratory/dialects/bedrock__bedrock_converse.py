"""What Bedrock's Converse refuses: messages that do not alternate, blank texts, calls and results that do not meet."""

from itertools import pairwise
from typing import Any

from failwell.testing.laboratory.dialect__refusal import Refusal, items, members


def refuse_converse(body: object) -> Refusal | None:
    """Why this request is refused; `None` if its messages are in order."""
    messages = [members(message) for message in items(members(body).get("messages"))]
    if not messages:
        return Refusal("The messages field is required. Add at least one message and try again.")
    for place, message in enumerate(messages):
        refusal = _shape(message, place)
        if refusal is not None:
            return refusal
    if messages[0].get("role") != "user":
        return Refusal(
            "A conversation must start with a user message. Try again with a conversation that starts with a user "
            "message."
        )
    if any(first.get("role") == second.get("role") for first, second in pairwise(messages)):
        return Refusal(
            "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
            "between user and assistant roles and try again."
        )
    return _pairs(messages)


def _shape(message: dict[str, Any], place: int) -> Refusal | None:
    content = items(message.get("content"))
    if not content:
        return Refusal(
            f"The content field in the Message object at messages.{place} is empty. Add a ContentBlock object to the "
            "content field and try again."
        )
    for position, block in enumerate(map(members, content)):
        if "text" in block and not str(block["text"]).strip():
            return Refusal(
                f"The text field in the ContentBlock object at messages.{place}.content.{position} is blank. Add text to "
                "the text field, and try again."
            )
        result = members(block.get("toolResult"))
        if result.get("status") == "error" and not items(result.get("content")):
            return Refusal(
                f"The content field at messages.{place}.content.{position}.toolResult cannot be empty when status value "
                "is error."
            )
    return None


def _pairs(messages: list[dict[str, Any]]) -> Refusal | None:
    open_ids: list[str] = []
    for place, message in enumerate(messages):
        blocks = [members(block) for block in items(message["content"])]
        answers = [members(block["toolResult"]).get("toolUseId") for block in blocks if "toolResult" in block]
        if len(answers) > len(open_ids):
            return Refusal(
                f"The number of toolResult blocks at messages.{place}.content exceeds the number of toolUse blocks of "
                "previous turn."
            )
        missing = [call_id for call_id in open_ids if call_id not in answers]
        if missing:
            return _missing(missing, place)
        open_ids = [str(members(block["toolUse"]).get("toolUseId")) for block in blocks if "toolUse" in block]
    return _missing(open_ids, len(messages)) if open_ids else None


def _missing(ids: list[str], place: int) -> Refusal:
    return Refusal(
        f"Expected toolResult blocks at messages.{place}.content for the following Ids: {', '.join(ids)}"
    )
