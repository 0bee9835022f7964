"""Which kind an exception is, and what it and its causes know: classified once, inherited whole.

A fault speaks for itself and inherits what it leaves unset from the faults below it, field by
field. An exception that is not ours is read by an adapter, and ends the inheritance. A group is
as bad as its worst member.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

from failwell.adapters.reading import Reading, declared
from failwell.adapters.registry import is_constant, kind_alone, read
from failwell.fault.axes import Blame, Category, Certainty
from failwell.fault.base import Fault, is_fault, lineage
from failwell.fault.facts import NotBefore, ProviderMetadata, ResourceShortfall, UserAction
from failwell.fault.frozen import frozen
from failwell.fault.kind import Kind
from failwell.fault.links import cause_of, is_group, members, type_name
from failwell.fault.registry import find_kind, is_kind, kind
from failwell.report.record import Evidence

UNCLASSIFIED = Reading(kind="internal.unknown", rule="unclassified", basis="default")
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
_MOST_MEMBERS = 1024
"""Members that are looked at below one exception, however they are nested."""
_ENVELOPE = 128
"""What opening one envelope takes of that room: eight of them in each other are enough."""
_MOST_DETAILS = 200
_A = TypeVar("_A", bound=StrEnum)
_constant: dict[int, "Resolved"] = {}


class Edge(NamedTuple):
    """What is known at the place where an exception is described, and not by the exception."""

    untyped: str | None = None
    """The kind that plain Python errors have here: `tool.failed` around a tool."""
    idempotent: bool | None = None
    """Whether the call that failed may be repeated; `None` where nobody said."""


ANYWHERE = Edge()


@frozen
class Resolved:
    """Everything a report will say about one exception that does not depend on time or place."""

    kind: str
    category: Category
    known: Kind | None
    certainty: Certainty
    blame: Blame
    vetoed: bool = False
    message: str | None = None
    """The authored or composed sentence; `None` when only the kind's summary is left."""
    caller_facing: bool = False
    user_action: UserAction | None = None
    provider: str | None = None
    model: str | None = None
    provider_metadata: ProviderMetadata | None = None
    not_before: NotBefore | None = None
    fields_invalid: Any = None
    resource_shortfall: ResourceShortfall | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    evidence: tuple[Evidence, ...] = ()
    recorded: Mapping[str, Any] | None = None
    """The report that arrived in the exception, as it was written."""


def resolve(error: BaseException, edge: Edge = ANYWHERE, room: list[int] | None = None) -> Resolved:
    """What is known about `error`, seen from `edge`.

    `room` counts down the group members that may still be looked at, so that groups of groups end.
    """
    if is_fault(error):
        return _fault(error, edge, room)
    if is_group(error):
        return _group(error, edge, [_MOST_MEMBERS] if room is None else room)
    return _foreign(error, edge, room)


def kind_of(error: BaseException) -> str:
    """The kind that `resolve` would find, without gathering anything else."""
    if is_fault(error):
        line = lineage(error)
        own = next((own for link in line if (own := _own_kind(link)) is not None), None)
        end = cause_of(line[-1])
        if own is not None or end is None or is_fault(end):
            return own or UNCLASSIFIED.kind
        error = end
    try:
        quick = kind_alone(error)
    except BaseException:  # noqa: BLE001  (a foreign property may raise anything, as in `_read`)
        quick = None
    return resolve(error).kind if quick is None else quick


def has_arrived(link: Fault) -> bool:
    """Whether this fault stands for a report that was made elsewhere."""
    return hasattr(type(link), "recorded_report")


def _foreign(error: BaseException, edge: Edge, room: list[int] | None) -> Resolved:
    reading = _read(error)
    if reading.inner is not None:
        held = _opened(reading, reading.inner, edge, [_MOST_MEMBERS] if room is None else room)
        if held is not None:
            return held
    if edge.untyped is not None and is_kind(edge.untyped) and _is_untyped(reading):
        reading = Reading(kind=edge.untyped, rule="untyped", saw=type_name(error))
    reading = declared(reading, idempotent=edge.idempotent)
    made = _constant.get(id(reading))
    if made is None:
        made = _judge(reading, reading.saw or type_name(error))
        if is_constant(reading):
            # Most readings are rows of a table: the same object every time, judged once.
            _constant[id(reading)] = made
    return made


def _opened(reading: Reading, inner: BaseException, edge: Edge, room: list[int]) -> Resolved | None:
    """What the exception inside an envelope is, with what only the envelope knows; `None` if nobody knows it."""
    room[0] -= _ENVELOPE
    if room[0] <= 0:
        return None
    held = resolve(inner, edge, room)
    if held.kind == UNCLASSIFIED.kind:
        return None
    return replace(
        held,
        caller_facing=False,
        vetoed=held.vetoed or reading.retryable is False,
        provider=held.provider or reading.provider,
        model=held.model or reading.model,
        provider_metadata=_merged(held.provider_metadata, reading.provider_metadata),
        not_before=held.not_before or reading.not_before,
        details={**reading.details, **held.details},
        evidence=(*held.evidence, Evidence(rule=reading.rule, basis="cause", saw=type_name(inner))),
        recorded=held.recorded or reading.recorded,
    )


def _judge(reading: Reading, saw: str) -> Resolved:
    known = find_kind(reading.kind)
    basis = "type" if reading.basis == "exact_type" else reading.basis
    return Resolved(
        kind=reading.kind,
        category=Category.UNKNOWN if known is None else known.category,
        known=known,
        certainty=reading.certainty or _certainty(known),
        blame=reading.blame or _blame(known),
        message=reading.message,
        provider=reading.provider,
        model=reading.model,
        provider_metadata=reading.provider_metadata,
        not_before=reading.not_before,
        fields_invalid=reading.fields_invalid,
        resource_shortfall=reading.resource_shortfall,
        details=reading.details,
        vetoed=reading.retryable is False,
        evidence=(
            Evidence(rule=reading.rule, basis=basis, saw=saw[:200]),
            *(Evidence(rule=rule, basis="runner_up", saw=other) for rule, other in reading.runners),
        ),
        recorded=reading.recorded,
    )


def _read(error: BaseException) -> Reading:
    try:
        return read(error) or UNCLASSIFIED
    except BaseException:  # noqa: BLE001  (a foreign property may raise anything, and one failure must not become two)
        return replace(UNCLASSIFIED, rule="adapter_failed")


def _is_untyped(reading: Reading) -> bool:
    if not reading.rule.startswith(("python.", "unclassified", "adapter_failed")):
        return False
    return kind(reading.kind).category in (Category.USER_INPUT, Category.FATAL, Category.UNKNOWN)


def _fault(error: Fault, edge: Edge, room: list[int] | None) -> Resolved:
    line = lineage(error)
    end = cause_of(line[-1])
    # A fault that stands for a report knows how the failure was judged elsewhere, and not who judged
    # it. So it ends the line as the foreign exception does that it may have been.
    arrived = next((at for at, link in enumerate(line) if at and has_arrived(link)), None)
    if arrived is not None:
        end, line = line[arrived], line[:arrived]
    tail = None
    if end is not None and (arrived is not None or not is_fault(end)):
        tail = resolve(end, edge, room)
    source, name = next(((link, own) for link in line if (own := _own_kind(link)) is not None), (None, None))
    if source is not None and name is not None:
        evidence = [Evidence(rule="declared", basis="declared", saw=type_name(source))]
    elif tail is not None:
        name, evidence = tail.kind, list(tail.evidence)
    else:
        name, evidence = UNCLASSIFIED.kind, [Evidence(rule=UNCLASSIFIED.rule, basis=UNCLASSIFIED.basis)]
    if source is not error:
        evidence.append(Evidence(rule="inherited", basis="cause", saw=type_name(source or end or error)))
    return _inherit(error, line, tail, name, tuple(evidence))


def _inherit(
    error: Fault, line: list[Fault], tail: Resolved | None, name: str, evidence: tuple[Evidence, ...]
) -> Resolved:
    known = find_kind(name)
    # Facts read off a foreign cause stay facts. How it was judged says nothing any more once a
    # fault above it named another kind.
    judged = tail if tail is not None and tail.kind == name else None
    return Resolved(
        kind=name,
        category=Category.UNKNOWN if known is None else known.category,
        known=known,
        certainty=one_of(Certainty, _first(line, "certainty"))
        or (judged.certainty if judged else _certainty(known)),
        blame=one_of(Blame, _first(line, "blame")) or (judged.blame if judged else _blame(known)),
        vetoed=any(_of(link, "retryable") is False for link in line)
        or (judged is not None and judged.vetoed),
        caller_facing=_own_kind(error) is not None
        if (facing := _of(error, "caller_facing")) is None
        else facing is True,
        provider=_named(line, "provider") or (tail.provider if tail else None),
        model=_named(line, "model") or (tail.model if tail else None),
        provider_metadata=_metadata(line, tail),
        details=_details(line, tail),
        evidence=evidence,
        user_action=_first(line, "user_action", judged),
        not_before=_first(line, "not_before", tail),
        fields_invalid=_first(line, "fields_invalid", tail),
        resource_shortfall=_first(line, "resource_shortfall", tail),
    )


def _group(error: BaseException, edge: Edge, room: list[int]) -> Resolved:
    held: list[Resolved] = []
    for member in _leaves(error):
        if room[0] <= 0:
            # What was not looked at may be anything, and the unknown is never repeated.
            held.append(_judge(UNCLASSIFIED, "members that were not looked at"))
            break
        room[0] -= 1
        held.append(resolve(member, edge, room))
    worst = max(held, key=lambda one: (_SEVERITY[one.category], one.vetoed))
    unknown = any(one.certainty is not Certainty.NOT_SENT for one in held) and len(held) > 1
    return replace(
        worst,
        vetoed=any(one.vetoed for one in held),
        certainty=Certainty.UNKNOWN if unknown and worst.certainty is Certainty.NOT_SENT else worst.certainty,
        message=None,
        caller_facing=False,
        recorded=None,
        details={"members": len(members(error))},
        evidence=(
            Evidence(rule="group.worst_member", basis="cause", saw=f"{len(members(error))} members"),
            *worst.evidence,
        ),
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


def _own_kind(link: Fault) -> str | None:
    own = _of(link, "own_kind")
    # Most are in the registry; spelling is looked at only where a kind is not.
    if type(own) is str and find_kind(own) is not None:
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


def _first(line: list[Fault], attribute: str, tail: Resolved | None = None) -> Any:
    for link in line:
        value = _of(link, attribute)
        if value is not None:
            return value
    return None if tail is None else getattr(tail, attribute)


def _of(link: Fault, attribute: str) -> Any:
    try:
        return getattr(link, attribute)
    except BaseException:  # noqa: BLE001  (an author's field may be a property that raises anything)
        return None


def _named(line: list[Fault], attribute: str) -> str | None:
    for link in line:
        name = _of(link, attribute)
        if name is not None and is_named(name):
            return name
    return None


def is_named(value: object) -> bool:
    """Whether a provider or model was really named: a placeholder is not a name."""
    return issubclass(type(value), str) and str.strip(cast("str", value)) not in ("", "unknown")


def _certainty(known: Kind | None) -> Certainty:
    return Certainty.UNKNOWN if known is None else known.certainty


def _blame(known: Kind | None) -> Blame:
    return Blame.OURSELVES if known is None else known.blame


_METADATA = tuple(f.name for f in fields(ProviderMetadata))


def _metadata(line: list[Fault], tail: Resolved | None) -> ProviderMetadata | None:
    tails = [] if tail is None else [tail.provider_metadata]
    return _merged(*[_of(link, "provider_metadata") for link in line], *tails)


def _merged(*known: ProviderMetadata | None) -> ProviderMetadata | None:
    """All that is known, field by field, the first word counting."""
    held = [one for one in known if type(one) is ProviderMetadata]
    if len(held) < 2:
        return held[0] if held else None
    merged: dict[str, Any] = {
        name: next((value for one in held if (value := getattr(one, name)) is not None), None)
        for name in _METADATA
    }
    merged["headers"] = {k: v for one in reversed(held) for k, v in _items(one.headers).items()}
    return ProviderMetadata(**merged)


def _details(line: list[Fault], tail: Resolved | None) -> dict[str, Any]:
    merged: dict[str, Any] = dict(tail.details) if tail is not None else {}
    for link in reversed(line):
        merged.update(_own_fields(link))
        details = _of(link, "details")
        if details is not None:
            merged.update(_items(details))
    return merged


def _own_fields(link: Fault) -> dict[Any, Any]:
    try:
        own = link.own_fields()
        if type(own) is dict and not own:
            return own
        held = _items(own)
    except BaseException:  # noqa: BLE001  (an author's own fields may be properties that raise)
        return {}
    return {name: value for name, value in held.items() if value is not None and not _is_empty(value)}


def _is_empty(value: object) -> bool:
    return type(value) is str and not value


def _items(details: Any) -> dict[Any, Any]:
    """A copy of as much as a report has room for, of whatever was put where a mapping should be."""
    try:
        return dict(islice(details.items(), _MOST_DETAILS))
    except BaseException:  # noqa: BLE001  (a wrong detail must not cost the classification)
        return {}
