"""How each part of a report is written and read: one table a part, for strict and tolerant alike."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, cast

from failwell.errors.axes import ActionKind, Blame, Category, Certainty, Domain
from failwell.errors.facts import LONGEST_WAIT, NotBefore, ProviderMetadata, ResourceShortfall, UserAction
from failwell.errors.identity import new_id
from failwell.errors.kind_registry import KINDS, is_kind
from failwell.errors.report import (
    NOWHERE,
    SCHEMA,
    Attempt,
    Cause,
    ErrorReport,
    Evidence,
    Frame,
    Internal,
    Scene,
)

_MOST_SHARED = 1024
_LARGEST = 1e300
"""Beyond it a whole number could not be used as a time or a size any more."""
_LARGEST_WHOLE = 2**63
"""No database and no tracer takes a larger whole number."""
_EMPTY: tuple[Any, ...] = ((), {})
Decode = Callable[[Any, bool], Any]
"""A value and whether to be strict → the value we keep; raises `Wrong`."""


class Wrong(Exception):
    """A value is not what its place in a stored report needs."""

    def __init__(self, expected: str, where: str = "") -> None:
        super().__init__(expected, where)
        self.expected = expected
        self.where = where

    def inside(self, where: str) -> "Wrong":
        """The same problem with its path extended by one level."""
        dot = "." if self.where and not self.where.startswith("[") else ""
        return Wrong(self.expected, f"{where}{dot}{self.where}")


@dataclass(frozen=True, slots=True)
class Part:
    """One record of the report: its class, and how each of its fields is read."""

    record_type: type[Any]
    decode: Mapping[str, Decode]
    required: tuple[str, ...]
    optional: "tuple[tuple[str, Part | None], ...]" = ()
    is_list: bool = False


def dump(part: Part | None, value: Any) -> Any:
    """A part's value as JSON-safe data."""
    if part is None:
        return value
    if part.is_list:
        return [_record(part, item) for item in value]
    return _record(part, value)


def load(
    part: Part, data: Mapping[str, Any], *, strict: bool, aside: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Keyword arguments for `part.record_type`. Strictly, or dropping (and setting aside) what is unknown."""
    values: dict[str, Any] = {}
    decode = part.decode
    for key, value in data.items():
        reader = decode.get(key)
        if reader is _text and type(value) is str:
            values[key] = value
            continue
        if reader is None:
            if strict:
                raise Wrong("absent: this version does not know it", key)
            if aside is not None and value is not None:
                aside[key] = value
            continue
        try:
            values[key] = reader(value, strict)
        except Wrong as wrong:
            if strict:
                raise wrong.inside(key) from None
    return values


def _record(part: Part, value: Any) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name in part.decode:
        item = getattr(value, name)
        if item is None or item in _EMPTY:
            continue
        if isinstance(item, StrEnum):
            item = item._value_
        elif isinstance(item, datetime):
            item = item.isoformat()
        elif isinstance(item, tuple):
            item = list(cast("tuple[Any, ...]", item))
        record[name] = item
    return record


def _text(value: Any, _strict: bool) -> str:
    if type(value) is not str:
        raise Wrong("a text")
    return value


def _kind(value: Any, _strict: bool) -> str:
    if type(value) is not str or (KINDS.get(value) is None and not is_kind(value)):
        raise Wrong("a kind such as `provider.rate_limited`")
    return value


def _flag(value: Any, _strict: bool) -> bool:
    if type(value) is not bool:
        raise Wrong("true or false")
    return value


def _whole(value: Any, _strict: bool) -> int:
    if type(value) is not int or not -_LARGEST_WHOLE < value < _LARGEST_WHOLE:
        raise Wrong("a whole number of at most 63 bits")
    return value


def _seconds(value: Any, _strict: bool) -> float:
    # Whoever waits computes a time from it, and no calendar has room for more.
    if type(value) not in (int, float) or not 0 <= value <= LONGEST_WAIT:
        raise Wrong("seconds, from 0 to a year")
    return value


def _number(value: Any, _strict: bool) -> float:
    if type(value) not in (int, float) or not -_LARGEST <= value <= _LARGEST:
        raise Wrong("a finite number")
    return value


def _time(value: Any, strict: bool) -> datetime:
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is not None:
            at = at if at.tzinfo is UTC else at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise Wrong("a time such as `2026-01-31T12:00:00+00:00`") from None
    if at.tzinfo is None or (strict and at.isoformat() != value):
        raise Wrong("a time in UTC such as `2026-01-31T12:00:00+00:00`")
    return at


def _texts(value: Any, _strict: bool) -> tuple[str, ...]:
    if type(value) is not list or not all(type(text) is str for text in cast("list[Any]", value)):
        raise Wrong("a list of texts")
    return tuple(cast("list[str]", value))


def _object(value: Any, _strict: bool) -> dict[str, Any]:
    if type(value) is not dict:
        raise Wrong("an object")
    return cast("dict[str, Any]", value)


def _text_map(value: Any, strict: bool) -> dict[str, str]:
    texts = _object(value, strict)
    if not all(type(text) is str for text in texts.values()):
        raise Wrong("an object of texts")
    return texts


def _count_map(value: Any, strict: bool) -> dict[str, int]:
    counts = _object(value, strict)
    if not all(type(count) is int and -_LARGEST_WHOLE < count < _LARGEST_WHOLE for count in counts.values()):
        raise Wrong("an object of whole numbers")
    return counts


def _schema(value: Any, strict: bool) -> str:
    if strict and value != SCHEMA:
        raise Wrong(f"`{SCHEMA}`")
    return _text(value, strict)


def _one_of(members: type[StrEnum], otherwise: StrEnum) -> Decode:
    by_value: dict[str, StrEnum] = {str(member): member for member in members}

    def decode(value: Any, strict: bool) -> StrEnum:
        member = by_value.get(value) if type(value) is str else None
        if member is not None:
            return member
        if strict:
            raise Wrong(f"one of {', '.join(by_value)}")
        return otherwise

    return decode


def _choice(*allowed: str) -> Decode:
    def decode(value: Any, _strict: bool) -> str:
        if value not in allowed:
            raise Wrong(f"one of {', '.join(allowed)}")
        return value

    return decode


def _nested(part: Part, *, shared: bool = False) -> Decode:
    shared_values: dict[tuple[Any, ...], Any] = {}

    def decode_shared(value: Any, strict: bool) -> Any:
        # The same advice and the same evidence stand in report after report: make each once.
        try:
            key = (*value.items(),)
            known = shared_values.get(key)
        except (AttributeError, TypeError):
            return decode(value, strict)
        if known is None:
            known = decode(value, strict)
            if len(shared_values) < _MOST_SHARED and strict:
                shared_values[key] = known
        return known

    def decode(value: Any, strict: bool) -> Any:
        values = load(part, _object(value, strict), strict=strict)
        for name in part.required:
            if name not in values:
                raise Wrong("present", name)
        return part.record_type(**values)

    return decode_shared if shared else decode


def _scene(value: Any, strict: bool) -> Scene:
    scene = _any_scene(value, strict)
    return NOWHERE if scene == NOWHERE else scene


def _list_of(part: Part) -> Decode:
    read_item = _nested(part, shared=part is _EVIDENCE)

    def decode(value: Any, strict: bool) -> tuple[Any, ...]:
        if type(value) is not list:
            raise Wrong("a list")
        items: list[Any] = []
        for index, item in enumerate(cast("list[Any]", value)):
            try:
                items.append(read_item(item, strict))
            except Wrong as wrong:
                if strict:
                    raise wrong.inside(f"[{index}]") from None
        return tuple(items)

    return decode


def _part(record_type: type[Any], decode: dict[str, Decode], *, is_list: bool = False) -> Part:
    required = tuple(
        f.name for f in fields(record_type) if f.default is MISSING and f.default_factory is MISSING
    )
    return Part(record_type=record_type, decode=decode, required=required, is_list=is_list)


_certainty = _one_of(Certainty, Certainty.UNKNOWN)

_SCENE = _part(Scene, {f.name: _whole if f.name == "attempt" else _text for f in fields(Scene)})
_any_scene = _nested(_SCENE)
_ACTION = _part(UserAction, {"kind": _one_of(ActionKind, ActionKind.UNKNOWN), "detail": _text})
_METADATA = _part(
    ProviderMetadata,
    {
        "sdk": _text, "exception_type": _text, "status_code": _whole, "code": _text, "request_id": _text,
        "retry_after": _seconds, "headers": _text_map,
    },
)  # fmt: skip
_NOT_BEFORE = _part(
    NotBefore,
    {"after": _seconds, "at": _time, "source": _text, "confidence": _choice("high", "medium", "low")},
)
_SHORTFALL = _part(
    ResourceShortfall,
    {"resource": _choice("gpu_vram_mb", "system_ram_mb", "disk_mb"), "needed": _number, "available": _number},
)
_CAUSE = _part(
    Cause,
    {
        "type": _text, "kind": _text, "message": _text, "via": _choice("cause", "context", "member"),
        "level": _whole, "notes": _texts,
    },
    is_list=True,
)  # fmt: skip
_FRAME = _part(
    Frame,
    {
        "boundary": _text, "name": _text, "workflow": _text, "type": _text, "kind": _text,
        "iteration": _whole, "item": _text,
    },
    is_list=True,
)  # fmt: skip
ATTEMPT = _part(
    Attempt,
    {
        "number": _whole, "kind": _text, "certainty": _certainty, "provider": _text, "model": _text,
        "usage": _count_map, "cost": _whole, "wait": _seconds, "reason": _text, "layer": _text, "exhausted": _flag,
    },
    is_list=True,
)  # fmt: skip
_EVIDENCE = _part(Evidence, {"rule": _text, "basis": _text, "saw": _text}, is_list=True)
_INTERNAL = _part(Internal, {"repr": _text, "traceback": _text})

_OPTIONAL: tuple[tuple[str, Part | None], ...] = (
    ("origin", None),
    ("scene", _SCENE),
    ("provider", None),
    ("model", None),
    ("provider_metadata", _METADATA),
    ("not_before", _NOT_BEFORE),
    ("resource_shortfall", _SHORTFALL),
    ("details", None),
    ("causes", _CAUSE),
    ("frames", _FRAME),
    ("attempts", ATTEMPT),
    ("evidence", _EVIDENCE),
    ("internal", _INTERNAL),
)

REPORT = Part(
    record_type=ErrorReport,
    required=(
        "schema", "id", "kind", "category", "domain", "certainty", "blame", "retryable", "message", "title",
        "error_type", "user_action", "fingerprint", "occurred_at",
    ),
    optional=_OPTIONAL,
    decode={
        "schema": _schema,
        "id": _text,
        "kind": _kind,
        "category": _one_of(Category, Category.UNKNOWN),
        "domain": _one_of(Domain, Domain.RUNTIME),
        "certainty": _certainty,
        "blame": _one_of(Blame, Blame.OURSELVES),
        "retryable": _flag,
        "message": _text,
        "title": _text,
        "error_type": _text,
        "user_action": _nested(_ACTION, shared=True),
        "fingerprint": _text,
        "occurred_at": _time,
        "caller_facing": _flag,
        "handled": _flag,
        "origin": _choice("code", "call", "tool", "input"),
        "provider": _text,
        "model": _text,
        "fields_invalid": _texts,
        "details": _object,
        **{
            name: _list_of(part) if part.is_list else _nested(part)
            for name, part in _OPTIONAL
            if part is not None
        },
        "scene": _scene,
    },
)  # fmt: skip
"""The whole report. Every other part hangs in it."""


READERS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "id": lambda _: new_id(),
    "certainty": lambda _: Certainty.UNKNOWN,
    "blame": lambda _: Blame.OURSELVES,
    "message": lambda values: str(values["kind"]),
    "title": lambda values: str(values["kind"]),
    "error_type": lambda _: "unknown",
    "user_action": lambda _: UserAction(ActionKind.UNKNOWN, ""),
    "fingerprint": lambda _: "",
    "occurred_at": lambda _: datetime.fromtimestamp(0, UTC),
}
"""What stands in for a field that a tolerant reader did not find."""
