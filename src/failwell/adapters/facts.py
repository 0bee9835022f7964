"""What can be read off a provider's failure before it is classified.

An extract lives in this process only. It may hold bodies and messages, because rules read them;
a reading, which leaves this room, never does.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from failwell.adapters.classification import Phase
from failwell.adapters.protocols.vendor_codes import edge_code
from failwell.errors.lazy_regex import lazy_regex

NOT_SENT: frozenset[str] = frozenset({"handles", "pool", "dns", "connect", "proxy", "tls"})
_LARGEST_BODY = 64_000
# Named, because a union is made anew each time that it is written in a check.
STRUCTURES: tuple[type[Any], ...] = (dict, list)
_FIRST_FEW = slice(8)
_item_of: Any = vars(list)["__getitem__"]
_items_of: Any = vars(dict)["items"]
_values_of: Any = vars(dict)["values"]
_BYTES = (bytes, bytearray)
_PRINTED = lazy_regex(
    r"""(?:["'](?:code|type|status|reason|error_code)["']: ?["']|StatusCode\.)([A-Za-z][A-Za-z0-9_-]{2,60})|\b(?![A-Z_]+_(?:KEY|TOKEN|SECRET|PASSWORD|URL|PATH|ID)\b)([A-Z]{2,}(?:_[A-Z]{2,})+)\b(?!=)|\b(?:code=|Error )([HLR]\d\d)\b|\b(toomanyrequests): """
)
_DEEPEST = 6
_FEW = 6
_MOST_CODES = 16
_LARGEST_CODE = 10**18
_CODE_KEYS = (
    "error_code", "code", "Code", "reason", "status", "type", "Type", "__type", "errorCode", "ErrorCode", "errcode", "error_type", "errorType", "slug",
    "err_code", "status_code", "statusCode", "httpStatusCode", "errorcode", "tag", "limit_source", "grpc_status", ":exception-type", "error", "finishReason", "finish_reason",
    "blockReason", "stop_reason", "stopReason",
)  # fmt: skip
_FIRST = (
    "error",
    "Error",
    "details",
    "errors",
    "metadata",
    "response",
    "raw",
    "candidates",
    "promptFeedback",
)
_FIRST_SET = frozenset(_FIRST)
_TEXTS = frozenset({"raw", "details"})
"""Members that hold an object, or else a sentence."""
_AFTER = frozenset(
    {
        "violations", "extensions", "innererror", "inner_error", "body", "detail", "data", "header", "fault", "Fault", "Response", "status",
    }
)  # fmt: skip
"""Members of a body that are searched: those before the object around them, and those after it."""
_MESSAGE_KEYS = (
    "message",
    "Message",
    "detail",
    "msg",
    "error_message",
    "errorMessage",
    "error",
    "title",
    "description",
    "err_msg",
    "error_msg",
    "errmsg",
    "error_description",
    "error-text",
    "faultstring",
    "Information",
    "Note",
    "quotaId",
)
_FACT_KEYS = frozenset({*_CODE_KEYS, *_MESSAGE_KEYS})
_LONGEST = 4_000


@dataclass(slots=True, kw_only=True, eq=False)
class Facts:
    """The facts of one failed call, as its SDK, its reply or a saved row shows them.

    An adapter may correct what was gathered; after classification it does not change.
    """

    provider: str | None = None
    sdk: str | None = None
    exception_type: str = ""
    names: tuple[str, ...] = ()
    """Lower-cased class names of the exception, nearest first."""
    status: int | None = None
    codes: tuple[str, ...] = ()
    """Lower-cased codes and types, the most specific first."""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Any = None
    phase: Phase | None = None
    in_stream: bool = False
    request_id: str | None = None
    model: str | None = None
    cause_bug: str | None = None
    """Name of a programming error that a client reported as a failed connection."""


def parse_body(body: object) -> Any:
    """A body as data: JSON text is parsed, the last event of a stream is taken, the rest stays text."""
    if isinstance(body, _BYTES):
        body = bytes(body[:_LARGEST_BODY]).decode("utf-8", "replace")
    elif not isinstance(body, str):
        return body
    text = body[:_LARGEST_BODY].strip()
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    if "data:" in text:
        return _last_event(text) or text
    return text


def codes_of(body: object) -> tuple[str, ...]:
    """Every code, type and reason in a body, inner ones first, lower-cased."""
    if isinstance(body, str):
        edge = edge_code(body) if "rror" in body[:4_000] else None
        return () if edge is None else (edge,)
    return tuple(codes_and_message(body)[0])


def message_of(body: object) -> str:
    """The provider's own sentence in a body, for rules to read; it is never passed on."""
    return body[:_LONGEST] if isinstance(body, str) else codes_and_message(body)[1]


def codes_and_message(body: object) -> tuple[dict[str, None], str]:
    """The codes and the sentence of a body. The codes are keys of a dict, so that a caller can add others in order."""
    codes: dict[str, None] = {}
    texts: list[str] = []
    ids: list[str] = []
    for holder in body if type(body) is Objects else objects_of(body):
        present = (
            tuple(holder) if len(holder) <= _FEW else tuple([key for key in holder if key in _FACT_KEYS])
        )
        code_keys, message_keys = _code_and_message_keys(present)
        for key in code_keys:
            value = holder[key]
            if type(value) is not str:
                if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST_CODE:
                    value = str(value)
                elif not isinstance(value, str):
                    continue
            if 0 < len(value) <= 80 and "\n" not in value:
                code = value.strip().lower()
                if ":" in code or "#" in code:
                    code = _last_part(code)
                codes[code] = None
        for key in message_keys:
            value = holder[key]
            if key == "quotaId":
                # Which window a quota counts in stands in an id, not in the sentence.
                ids.append(_id(value)[:100])
            elif isinstance(value, str) and value and value not in texts:
                texts.append(value[:2_000])
    texts = texts or _sentences_of(body)
    if len(codes) > _MOST_CODES:
        codes = dict.fromkeys(islice(codes, _MOST_CODES))
    return codes, texts[0] if len(texts) == 1 and not ids else "\n".join((texts + ids)[:8])


def _sentences_of(body: object) -> list[str]:
    """The sentences of a reply that has them under keys of its own: whatever holds several words."""
    holders = body if type(body) is Objects else objects_of(body)
    values = [value for holder in holders for value in islice(holder.values(), _MOST_CODES)]
    values += [
        inner for value in values if type(value) is dict for inner in islice(_values_of(value), _MOST_CODES)
    ]
    return [value[:2_000] for value in values if type(value) is str and value.count(" ") > 1][:4]


def _last_part(code: str) -> str:
    """The word of a code that comes with a name before it, with an address after it, or as a problem type."""
    if code.startswith(("http://", "https://")):
        return code.rpartition("#")[2].rstrip("/").rpartition("/")[2]
    return code.partition(":")[0].rpartition("#")[2]


@lru_cache(maxsize=256)
def _code_and_message_keys(keys: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of an object's keys that hold a code, and those that hold a sentence, each in their order.

    The same few keys come again in every failure of a service, so they are put in order once.
    """
    present = frozenset(keys)
    return tuple(key for key in _CODE_KEYS if key in present), tuple(
        key for key in _MESSAGE_KEYS if key in present
    )


_IDS = frozenset({"quotaId", "quotaMetric", "quota_limit", "subject", "limit_source"})


def ids_of(body: object) -> list[str]:
    """What a reply names as the limit that was met, in lower case: ids are for programs and say the window."""
    if body is None or type(body) is str:
        return []
    ids: list[str] = []
    for holder in body if type(body) is Objects else objects_of(body):
        if not _IDS.isdisjoint(holder):
            ids += [_id(value)[:200].lower() for key, value in holder.items() if key in _IDS]
    return ids


def _id(value: object) -> str:
    return str(value) if type(value) is str or type(value) is int else ""


def codes_in_text(text: str) -> tuple[str, ...]:
    """Codes in a message that has a body printed into it, as several SDKs do."""
    codes = [str(match[match.lastindex or 0]).lower() for match in _PRINTED.finditer(text[:4_000])]
    return tuple(dict.fromkeys(codes))[:8]


def objects_of(body: object) -> "Objects":
    """Every object in a body that is looked into, inner ones first."""
    if type(body) is Objects:
        return body
    objects = Objects()
    _collect(body, 0, objects)
    return objects


class Objects(list[dict[str, Any]]):
    """The objects in a body, collected once."""


def as_objects(body: Any) -> Any:
    """The objects of a parsed body, collected once for the rules; any other value as it is."""
    if not isinstance(body, STRUCTURES):
        return body
    objects = Objects()
    _collect(body, 0, objects)
    return objects


def _collect(body: Any, depth: int, objects: Objects) -> None:
    """The objects in a body, `error` and its details before what is around them."""
    if type(body) is dict:
        _collect_object(body, depth, objects)
    elif issubclass(type(body), dict):
        # A subclass may put code of its own under every method.
        _collect_object(dict(_items_of(body)), depth, objects)
    elif issubclass(type(body), list) and depth <= _DEEPEST:
        for inner in _item_of(body, _FIRST_FEW):
            _collect(inner, depth + 1, objects)


def _collect_object(body: Any, depth: int, objects: Objects) -> None:
    if depth > _DEEPEST:
        return
    present = _FIRST_SET.intersection(body)
    if present:
        # Nearly always there is one alone, and nothing has to be put in order.
        for key in present if len(present) == 1 else [key for key in _FIRST if key in present]:
            inner = body[key]
            if type(inner) is dict:
                _collect_object(inner, depth + 1, objects)
            else:
                _collect_first(key, inner, depth + 1, objects)
    objects.append(body)
    if not _AFTER.isdisjoint(body):
        for key, inner in body.items():
            if key in _AFTER and isinstance(inner, STRUCTURES):
                _collect(inner, depth + 1, objects)


def _collect_first(key: str, inner: Any, depth: int, objects: Objects) -> None:
    if isinstance(inner, str) and inner[:1] in ("{", "["):
        inner = parse_body(inner)
    if isinstance(inner, STRUCTURES):
        _collect(inner, depth, objects)
    elif key in _TEXTS and isinstance(inner, str) and inner:
        # A gateway repeats what the provider said, cut where it was too long.
        objects.append({"message": inner})


def _last_event(text: str) -> Any:
    for line in reversed(text.splitlines()):
        if line.startswith("data:") and "{" in line:
            try:
                return json.loads(line[5:].strip())
            except (ValueError, RecursionError):
                continue
    return None
