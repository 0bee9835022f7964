"""Plans and requests as JSON, for the payloads of a Temporal workflow.

A plan travels as it was compiled where the run was submitted, so that workers need no workflow files and a replay
uses the same plan. Fields with their default value are left out.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from functools import cache, partial
from typing import Any, cast

from failwell.calls import backoff, budget, policy
from failwell.errors import axes
from failwell.files import item_tree
from failwell.workflows import plan as plans
from failwell.workflows.machine.messages import Request
from failwell.workflows.machine.retry_policy import renews
from failwell.workflows.plan import Limits, Plan

_TAG = "$"
_MODULES = (plans, item_tree, policy, backoff, budget, axes)
LONGEST = 8_000_000
"""Characters of JSON that are compressed into one payload. Temporal fails workflow code that runs for two seconds."""
_UNPACKED = 4 * LONGEST
"""Bytes that compressed text may stand for. A peer could fill the memory otherwise."""
_PLACES = frozenset({"place", "first_line", "written"})
"""Fields about places in files, which the errors of templates name. Executors do not need them."""


@cache
def _classes() -> dict[str, type[Any]]:
    """The classes that a plan consists of, by name."""
    return {
        name: value
        for module in _MODULES
        for name, value in vars(module).items()
        if isinstance(value, type) and (is_dataclass(value) or issubclass(value, Enum))
    }


@cache
def _fields(record: type[Any]) -> list[tuple[str, Any]]:
    """The fields of a class that are written, each with its default."""
    pairs: list[tuple[str, Any]] = []
    for field in fields(record):
        if field.init:
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            pairs.append((field.name, default))
    return pairs


def to_json(value: Any, *, without: frozenset[str] = frozenset()) -> Any:
    """A plan, or a part of it, as JSON; `without` names fields to leave out."""
    write = partial(to_json, without=without)
    if isinstance(value, Enum):
        return {_TAG: type(value).__name__, "value": value.value}
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        # JSON has no infinity.
        return value if value - value == 0 else {_TAG: "float", "value": str(value)}
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        if _TAG in items:
            return {_TAG: "map", "items": [[key, write(item)] for key, item in items.items()]}
        return {key: write(item) for key, item in items.items()}
    if isinstance(value, list):
        return [write(item) for item in cast("list[Any]", value)]
    if isinstance(value, tuple):
        return {_TAG: "tuple", "items": [write(item) for item in cast("tuple[Any, ...]", value)]}
    if isinstance(value, frozenset):
        members = cast("frozenset[Any]", value)
        return {_TAG: "set", "items": [write(item) for item in sorted(members, key=str)]}
    if value is renews:
        # The one function in a plan: the retry of a step has it.
        return {_TAG: "renews"}
    record = cast("type[Any]", type(value))
    if record.__name__ not in _classes():
        raise TypeError(f"a {record.__name__} is no part of a plan")
    values = {name: (getattr(value, name), default) for name, default in _fields(record)}
    return {
        _TAG: record.__name__,
        **{
            name: write(held)
            for name, (held, default) in values.items()
            if held != default and name not in without
        },
    }


def from_json(data: Any) -> Any:
    """The inverse of `to_json`. A field that this version does not have is left out."""
    if isinstance(data, list):
        return [from_json(item) for item in cast("list[Any]", data)]
    if not isinstance(data, dict):
        return data
    values = cast("dict[str, Any]", data)
    tag = values.get(_TAG)
    match tag:
        case None:
            return {key: from_json(item) for key, item in values.items()}
        case "map":
            return {key: from_json(item) for key, item in values["items"]}
        case "tuple":
            return tuple(from_json(item) for item in values["items"])
        case "set":
            return frozenset(from_json(item) for item in values["items"])
        case "renews":
            return renews
        case "float":
            return float(values["value"])
        case _:
            record = _classes()[tag]
            if issubclass(record, Enum):
                return record(values["value"])
            return record(**{name: from_json(values[name]) for name, _ in _fields(record) if name in values})


def pack(value: Any) -> str:
    """JSON as compressed text: plans and states repeat themselves, and a payload has a limit."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 6)).decode("ascii")


def unpack(text: str) -> Any:
    """The inverse of `pack`.

    Raises:
        ValueError: it was not packed, or it fills more memory than anything that was.
    """
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(base64.b64decode(text), _UNPACKED)
    except zlib.error as error:
        raise ValueError("it is not compressed text") from error
    if not unpacker.eof:
        raise ValueError(f"it is cut, or has more than {_UNPACKED:,} bytes")
    return json.loads(data.decode("utf-8", "surrogatepass"))


def plans_to_json(by_file: Mapping[str, Plan]) -> dict[str, Any]:
    """Plans by file, as JSON."""
    return {file: to_json(plan) for file, plan in by_file.items()}


def pack_plans(by_file: Mapping[str, Plan]) -> str:
    """Plans by file, as compressed text."""
    return pack(plans_to_json(by_file))


@cache
def unpack_plans(text: str) -> dict[str, Plan]:
    """The inverse of `pack_plans`. Replays of a run share the plans."""
    return {file: from_json(data) for file, data in unpack(text).items()}


_REQUEST = ("path", "run", "workflow", "visit", "attempt", "key", "item", "file", "approved")


def request_to_json(request: Request, plan: Plan) -> dict[str, Any]:
    """A request for a worker, with what executors use of its plan."""
    used = replace(
        plan,
        nodes={},
        inputs={},
        output={},
        hooks={},
        metadata={},
        notifications=None,
        children=(),
        limits=Limits(),
    )
    data = {name: getattr(request, name) for name in _REQUEST}
    return {
        **data,
        "node": to_json(request.node, without=_PLACES),
        "plan": to_json(used, without=_PLACES),
        "call": to_json(request.call),
    }


def request_from_json(data: Mapping[str, Any]) -> tuple[Request, Plan]:
    """The inverse of `request_to_json`."""
    values = {name: data[name] for name in _REQUEST if name in data}
    request = Request(node=from_json(data["node"]), call=from_json(data["call"]), **values)
    return request, from_json(data["plan"])
