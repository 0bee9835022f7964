"""What a report will say of an exception: the readings of it and of its causes, joined into one.

A fault declares its kind itself and inherits what it leaves unset from the faults below it, field by
field. An exception that is not ours is read by an adapter, and ends the inheritance. A group is as bad as
its worst member. The result is one `Classification`, from which `describe` builds the report.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from enum import StrEnum
from errno import EMFILE, ENFILE
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

from failwell.adapters.classification import Classification, declared
from failwell.adapters.origin import REFUSALS, VERDICTS, seen_from
from failwell.adapters.registry import is_unknown, kind_alone, read
from failwell.adapters.traceback_frames import raised_by_client, raised_by_installed
from failwell.errors.axes import Blame, Category, Certainty
from failwell.errors.causes import cause_of, is_group, members, type_name
from failwell.errors.facts import Origin, ProviderMetadata
from failwell.errors.fault import Fault, is_fault, lineage
from failwell.errors.foreign_code import is_installed, module_of
from failwell.errors.foreign_objects import safe_call, safe_getattr, safe_getattrs
from failwell.errors.kind_registry import KINDS, is_kind
from failwell.errors.known_libraries import HOMES
from failwell.errors.report import Evidence
from failwell.errors.safe_str import is_mapping, items_of

UNCLASSIFIED = Classification.from_rule(kind="internal.unknown", rule="unclassified", basis="default")
_ADAPTER_FAILED = UNCLASSIFIED.by("adapter_failed", UNCLASSIFIED.kind)
NO_HANDLE = Classification.from_rule(
    kind="resource.file_handles", rule="python.OSError.EMFILE", basis="errno", saw="EMFILE"
)
_SEVERITY = {
    category: rank
    for rank, category in enumerate(
        (
            Category.CANCELLED, Category.TRANSIENT, Category.RESOURCE, Category.AMBIGUOUS, Category.CAPACITY,
            Category.LIMIT, Category.CONTENT, Category.USER_INPUT, Category.DENIED, Category.CONFIGURATION,
            Category.UNKNOWN, Category.FATAL,
        )
    )
}  # fmt: skip
"""The less a repeat can do, the worse."""
_SAYING_NOTHING = ("unclassified", "python.RuntimeError")
"""Rules for classes that say nothing: one that is raised `from` a failure that is known is that failure, in other words."""
_PLAIN_OS_ERROR = "python.OSError"
"""The rule for one without an errno."""
_PLAIN = (Exception, OSError, RuntimeError, ValueError)
"""Classes of Python that libraries raise for anything."""
_GENERAL = frozenset(
    {
        "unclassified",
        _PLAIN_OS_ERROR,
        *(
            f"python.{name}"
            for name in ("RuntimeError", "ValueError", "Exception", "LookupError", "KeyError", "TypeError")
        ),
    }
)
"""Rules for classes that libraries raise for anything, or derive their own from."""
_BY_TEXT = ("provider.", "text.")
"""How rules begin that read facts in a message."""
_MOST_MEMBERS = 1024
"""Members that are looked at below one exception, however they are nested."""
_ENVELOPE = 128
"""What opening one envelope takes of that room: eight of them in each other are enough."""
_MOST_DETAILS = 200
_LONGEST = 200
_A = TypeVar("_A", bound=StrEnum)


class ErrorContext(NamedTuple):
    """What is known at the place where an exception is described, and not by the exception."""

    origin: Origin = "code"
    """Where the error arose. By default nobody but the program itself is blamed for it."""
    idempotent: bool | None = None
    """Whether the call that failed may be repeated; `None` where that is not known."""


ANYWHERE = ErrorContext()
CALL = ErrorContext("call")
INPUT = ErrorContext("input")


def resolve(
    error: BaseException, context: ErrorContext = ANYWHERE, room: list[int] | None = None
) -> Classification:
    """What is known about `error`, seen from `context`.

    `room` counts down the group members that may still be looked at, so that groups of groups end.
    """
    cls = type(error)
    if issubclass(cls, Fault):
        return _fault(cast("Fault", error), context, room)
    if issubclass(cls, BaseExceptionGroup):
        return _group(error, context, [_MOST_MEMBERS] if room is None else room)
    return _foreign(error, context, room)


def kind_of(error: BaseException, context: ErrorContext = ANYWHERE) -> str:
    """The kind that the report of `error` would name, without building it."""
    if is_fault(error):
        line = lineage(error)
        own = next(
            (own for link in line if (own := _kind_in(safe_getattr(link, "own_kind"))) is not None), None
        )
        end = cause_of(line[-1])
        if own is not None or end is None or is_fault(end):
            return own or UNCLASSIFIED.kind
        error = end
    quick = safe_call(kind_alone, None, error)
    return resolve(error, context).kind if quick is None else quick


def is_deserialized(fault: BaseException) -> bool:
    """Whether this fault stands for a report that was made elsewhere."""
    return hasattr(type(fault), "recorded_report")


def category_of(reading: Classification) -> Category:
    """The category that a report of this reading has."""
    known = KINDS.get(reading.kind)
    return Category.UNKNOWN if known is None else known.category


def _foreign(error: BaseException, context: ErrorContext, room: list[int] | None) -> Classification:
    # A foreign property may raise anything, and one failure must not become two.
    reading = safe_call(read, _ADAPTER_FAILED, error) or UNCLASSIFIED
    if reading is _ADAPTER_FAILED and lacks_handles(error):
        reading = NO_HANDLE
    if reading.inner is not None:
        inside = _opened(reading, reading.inner, context, [_MOST_MEMBERS] if room is None else room)
        if inside is not None:
            return inside
    if reading.kind in VERDICTS:
        cause = cause_of(error) if reading.rule in _SAYING_NOTHING else None
        if cause is not None and not is_fault(cause):
            inside = _opened(reading, cause, context, [_MOST_MEMBERS] if room is None else room)
            if inside is not None and inside.kind not in VERDICTS:
                return inside
        by_client = safe_call(raised_by_client, None, error) is True
        if not (by_client and reading.kind in REFUSALS):
            # What a client refuses was not sent, whatever its words are about.
            reading = _by_words(error, reading, context.origin)
        reading = seen_from(reading, context.origin, type_name(error), by_library=by_client)
    elif reading.rule.startswith(_BY_TEXT) and is_unknown(type(error)):
        reading = _by_words(error, reading, context.origin, by_text=reading)
    elif reading.rule == _PLAIN_OS_ERROR:
        reading = _by_words(error, reading, context.origin)
    if context.idempotent is not None:
        reading = declared(reading, idempotent=context.idempotent)
    return reading if reading.evidence[0].saw else _seen_in(reading, type_name(error))


def _by_words(
    error: BaseException, reading: Classification, origin: Origin, *, by_text: Classification | None = None
) -> Classification:
    """What an exception says in words whose class says little, or else `reading`."""
    if by_text is None and reading.rule not in _GENERAL:
        return reading
    of_library = safe_call(_is_of_a_library, None, error, origin) is True
    if not of_library and origin != "call":
        # What a program's own classes say is the program's business.
        return reading
    from failwell.adapters.unknown_class import read_unknown

    return safe_call(read_unknown, None, error, origin, by_text, of_library) or reading


def _is_of_a_library(error: BaseException, origin: Origin) -> bool:
    """Whether an installed library made the class, or raised one of Python's that says nothing in this program's code."""
    if type(error) in _PLAIN:
        return origin == "code" and raised_by_installed(error)
    module = module_of(type(error))
    top = module.partition(".")[0]
    return top not in sys.stdlib_module_names and (top in HOMES or is_installed(module))


def _seen_in(reading: Classification, saw: str) -> Classification:
    first, *runners_up = reading.evidence
    return replace(reading, evidence=(replace(first, saw=saw[:_LONGEST]), *runners_up))


def _opened(
    reading: Classification, inner: BaseException, context: ErrorContext, room: list[int]
) -> Classification | None:
    """The exception inside an envelope, with what only the envelope knows; `None` if its kind is unknown."""
    room[0] -= _ENVELOPE
    if room[0] <= 0:
        return None
    inside = resolve(inner, context, room)
    if inside.kind == UNCLASSIFIED.kind:
        return None
    return replace(
        inside,
        caller_facing=False,
        retryable=False if inside.retryable is False or reading.retryable is False else None,
        provider=inside.provider or reading.provider,
        model=inside.model or reading.model,
        provider_metadata=_merged(inside.provider_metadata, reading.provider_metadata),
        not_before=inside.not_before or reading.not_before,
        details={**reading.details, **inside.details},
        evidence=(*inside.evidence, Evidence(rule=reading.rule, basis="cause", saw=type_name(inner))),
        recorded=inside.recorded or reading.recorded,
    )


def lacks_handles(error: BaseException) -> bool:
    """Whether the process has as many files open as it may: then not even an adapter can be loaded."""
    return type(error) is OSError and error.errno in (EMFILE, ENFILE)


def _fault(error: Fault, context: ErrorContext, room: list[int] | None) -> Classification:
    line = lineage(error)
    end = cause_of(line[-1])
    # A fault that stands for a report knows how the failure was judged elsewhere, and not who judged
    # it. So it ends the line as the foreign exception does that it may have been.
    arrived = next((at for at, link in enumerate(line) if at and is_deserialized(link)), None)
    if arrived is not None:
        end, line = line[arrived], line[:arrived]
    tail = None
    if end is not None and (arrived is not None or not is_fault(end)):
        tail = resolve(end, context, room)
    facts = [_facts_of(link) for link in line]
    named = zip(line, facts, strict=True)
    source, name = next(
        ((link, own) for link, values in named if (own := _kind_in(values["own_kind"])) is not None),
        (None, None),
    )
    if source is not None and name is not None:
        evidence = [Evidence(rule="declared", basis="declared", saw=type_name(source))]
    elif tail is not None:
        name, evidence = tail.kind, list(tail.evidence)
    else:
        name, evidence = UNCLASSIFIED.kind, list(UNCLASSIFIED.evidence)
    if source is not error:
        evidence.append(Evidence(rule="inherited", basis="cause", saw=type_name(source or end or error)))
    return Classification(kind=name, evidence=tuple(evidence), **_inherited(line, facts, tail, name))


def _inherited(
    line: list[Fault], facts: list[dict[str, Any]], tail: Classification | None, name: str
) -> dict[str, Any]:
    # Facts read off a foreign cause stay facts. How it was classified says nothing any more once a
    # fault above it named another kind.
    same = tail if tail is not None and tail.kind == name else None
    forbidden = any(values["retryable"] is False for values in facts)
    facing = facts[0]["caller_facing"]
    return {
        "certainty": one_of(Certainty, _first(facts, "certainty")) or (same.certainty if same else None),
        "blame": one_of(Blame, _first(facts, "blame")) or (same.blame if same else None),
        "retryable": False if forbidden or (same is not None and same.retryable is False) else None,
        "caller_facing": _kind_in(facts[0]["own_kind"]) is not None if facing is None else facing is True,
        "origin": None if same is None else same.origin,
        "provider": _named(facts, "provider") or (tail.provider if tail else None),
        "model": _named(facts, "model") or (tail.model if tail else None),
        "provider_metadata": _metadata(facts, tail),
        "details": _details(line, facts, tail),
        "user_action": _first(facts, "user_action", same),
        "not_before": _first(facts, "not_before", tail),
        "fields_invalid": _first(facts, "fields_invalid", tail),
        "resource_shortfall": _first(facts, "resource_shortfall", tail),
    }


def _group(error: BaseException, context: ErrorContext, room: list[int]) -> Classification:
    readings: list[Classification] = []
    for member in _leaves(error):
        if room[0] <= 0:
            # What was not looked at may be anything, and the unknown is never repeated.
            readings.append(_seen_in(UNCLASSIFIED, "members that were not looked at"))
            break
        room[0] -= 1
        readings.append(resolve(member, context, room))
    worst = max(readings, key=lambda reading: (_SEVERITY[category_of(reading)], reading.retryable is False))
    not_sent = [certainty_of(reading) is Certainty.NOT_SENT for reading in readings]
    mixed = certainty_of(worst) is Certainty.NOT_SENT and len(readings) > 1 and not all(not_sent)
    saw = f"{len(members(error))} members"
    return replace(
        worst,
        retryable=False if any(reading.retryable is False for reading in readings) else None,
        certainty=Certainty.UNKNOWN if mixed else worst.certainty,
        message=None,
        caller_facing=False,
        recorded=None,
        details={"members": len(members(error))},
        evidence=(Evidence(rule="group.worst_member", basis="cause", saw=saw), *worst.evidence),
    )


def _leaves(group: BaseException) -> Iterator[BaseException]:
    """What the group and the groups in it hold, each once: the same failure twice is one failure."""
    waiting = [iter(members(group))]
    seen = {id(group)}
    while waiting:
        member = next(waiting[-1], None)
        if member is None:
            waiting.pop()
        elif id(member) not in seen:
            seen.add(id(member))
            if is_group(member):
                waiting.append(iter(members(member)))
            else:
                yield member


_FIELDS = (
    "own_kind", "retryable", "caller_facing", "certainty", "blame", "provider", "model", "provider_metadata",
    "details", "user_action", "not_before", "fields_invalid", "resource_shortfall",
)  # fmt: skip


def _facts_of(link: Fault) -> dict[str, Any]:
    """What a fault says about itself. An author's field may be a property that raises anything."""
    return dict(zip(_FIELDS, safe_getattrs(link, _FIELDS), strict=True))


def _kind_in(own: Any) -> str | None:
    # Most are in the registry; spelling is looked at only where a kind is not.
    if type(own) is str and KINDS.get(own) is not None:
        return own
    return str.__str__(own) if issubclass(type(own), str) and is_kind(str.__str__(own)) else None


def one_of(axis: type[_A], value: object) -> _A | None:
    """The member that `value` names, if it is one: fields are assigned by hand."""
    if not issubclass(type(value), str):
        return None
    try:
        return axis(str.__str__(cast("str", value)))
    except ValueError:
        return None


def _first(facts: list[dict[str, Any]], field: str, tail: Classification | None = None) -> Any:
    for values in facts:
        if values[field] is not None:
            return values[field]
    return None if tail is None else getattr(tail, field)


def _named(facts: list[dict[str, Any]], field: str) -> str | None:
    return next((values[field] for values in facts if is_named(values[field])), None)


def is_named(value: object) -> bool:
    """Whether a report can name this provider or model: a placeholder is not a name."""
    return issubclass(type(value), str) and str.strip(cast("str", value)) not in ("", "unknown")


def certainty_of(reading: Classification) -> Certainty:
    """What a report says about whether the work happened: as it was read, or as it follows from the kind."""
    if reading.certainty is not None:
        return reading.certainty
    known = KINDS.get(reading.kind)
    return Certainty.UNKNOWN if known is None else known.certainty


_METADATA = tuple(f.name for f in fields(ProviderMetadata))


def _metadata(facts: list[dict[str, Any]], tail: Classification | None) -> ProviderMetadata | None:
    tails = [] if tail is None else [tail.provider_metadata]
    return _merged(*[values["provider_metadata"] for values in facts], *tails)


def _merged(*known: ProviderMetadata | None) -> ProviderMetadata | None:
    """All that is known, field by field, the first word counting."""
    records = [record for record in known if type(record) is ProviderMetadata]
    if len(records) < 2:
        return records[0] if records else None
    merged: dict[str, Any] = {
        name: next((value for record in records if (value := getattr(record, name)) is not None), None)
        for name in _METADATA
    }
    merged["headers"] = {k: v for record in reversed(records) for k, v in _items(record.headers).items()}
    return ProviderMetadata(**merged)


def _details(line: list[Fault], facts: list[dict[str, Any]], tail: Classification | None) -> dict[str, Any]:
    merged: dict[str, Any] = dict(tail.details) if tail is not None else {}
    for link, values in zip(reversed(line), reversed(facts), strict=True):
        merged.update(_own_fields(link))
        if values["details"] is not None:
            merged.update(_items(values["details"]))
    return merged


def _read_own_fields(link: Fault) -> dict[str, Any]:
    return link.own_fields()


def _own_fields(link: Fault) -> dict[Any, Any]:
    # An author's own fields may be properties that raise.
    own: Any = safe_call(_read_own_fields, None, link)
    if own is None:
        return {}
    return {name: value for name, value in _items(own).items() if value is not None and not _is_empty(value)}


def _is_empty(value: object) -> bool:
    return type(value) is str and not value


def _items(details: Any) -> dict[Any, Any]:
    """A copy of as much as a report has room for, of whatever was put where a mapping should be."""
    plain = cast("dict[Any, Any]", details)
    if type(plain) is dict and len(plain) <= _MOST_DETAILS:
        return plain.copy()
    # A wrong detail must not cost the classification.
    return safe_call(_first_items, None, details) or {}


def _first_items(details: Any) -> dict[Any, Any] | None:
    if is_mapping(details):
        return dict(islice(items_of(details), _MOST_DETAILS))
    return {"…": f"<{type_name(details)}>"} if issubclass(type(details), Mapping) else None
