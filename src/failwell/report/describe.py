"""Any exception → one `ErrorReport`. Never raises, never blocks, never leaks, always bounded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, cast

from failwell.fault.axes import ActionKind, Blame, Category, Certainty
from failwell.fault.base import Fault, lineage
from failwell.fault.facts import NotBefore, ProviderMetadata, ResourceShortfall, UserAction
from failwell.fault.links import Link, links, traceback_of, type_name
from failwell.report.fingerprint import fingerprint, site
from failwell.report.identity import new_id
from failwell.report.policy import TracebackPolicy, default_policy
from failwell.report.record import NOWHERE, Attempt, Cause, ErrorReport, Evidence, Frame, Internal, Scene
from failwell.report.redact import redact_text, redact_value, safe_headers
from failwell.report.resolve import Edge, Resolved, is_named, kind_of, resolve
from failwell.report.scene import current_scene, merge, stamp_of

_FURTHEST = 366 * 24 * 3600.0
"""Seconds; a wait beyond a year is nonsense, not advice."""
_CAUSE_CAP = 500
_LABEL_CAP = 200
_NOTHING_SAID = ProviderMetadata()
_MOST_FIELDS = 50
_actions: dict[str, UserAction] = {}


def describe(
    error: BaseException,
    *,
    policy: TracebackPolicy | str | None = None,
    provider: str | None = None,
    model: str | None = None,
    untyped: str | None = None,
    idempotent: bool | None = None,
    scene: Scene | None = None,
    at: datetime | None = None,
    attempts: Sequence[Attempt] = (),
) -> ErrorReport:
    """Say what `error` is: its kind, whose turn it is, whether a repeat helps, and when.

    Args:
        error: Any exception, ours or not.
        policy: How much of its own words to record; by default, and if it is no policy, none of a
            foreign one's.
        provider: Who was called, where the exception does not know it.
        model: Which model was called, where the exception does not know it.
        untyped: The kind for plain Python errors, at an edge where they mean something else:
            `tool.failed` around a tool.
        idempotent: Whether the call that failed may be repeated without harm. A lost reply is then
            a passing failure; without this it is an open question.
        scene: Where it happened; what it leaves open is taken from the exception and the context.
        at: When it happened; now, by default.
        attempts: The tries that led here.
    """
    when = _in_utc(at)
    try:
        edge = Edge(untyped, idempotent)
        return _describe(error, policy, (provider, model), edge, scene, when, tuple(attempts))
    except Exception as problem:  # noqa: BLE001  (the error path never raises: a poorer report beats none)
        return _last_resort(error, problem, when)


def _describe(
    error: BaseException,
    policy: TracebackPolicy | str | None,
    called: tuple[str | None, str | None],
    edge: Edge,
    scene: Scene | None,
    when: datetime,
    attempts: tuple[Attempt, ...],
) -> ErrorReport:
    recorded = getattr(error, "recorded_report", None) if isinstance(error, Fault) else None
    if isinstance(recorded, ErrorReport):
        return _completed(recorded, called, scene, attempts)
    kept = default_policy() if policy is None else _policy(policy)
    found = resolve(error, edge)
    arrived = None if found.recorded is None else _arrived(found.recorded)
    if arrived is not None:
        return _completed(arrived, called, scene, attempts)
    place, frames = _place(error, scene, found)
    below, was_cut = links(error)
    metadata = _reply(found.provider_metadata)
    provider = _label(found.provider or called[0])
    not_before = _credible(found.not_before, when)
    name = type_name(error)
    report = ErrorReport(
        id=new_id(),
        kind=found.kind,
        category=found.category,
        certainty=found.certainty,
        blame=found.blame,
        retryable=found.category.retryable and not found.vetoed,
        message=_message(error, found, kept),
        title=found.kind if found.known is None else found.known.title,
        error_type=name,
        user_action=_action(found, not_before),
        fingerprint=fingerprint(
            found.kind,
            name,
            provider,
            metadata.status_code if metadata else None,
            metadata.code if metadata else None,
            site(traceback_of(error)),
        ),
        occurred_at=when,
        caller_facing=found.caller_facing,
        scene=place,
        provider=provider,
        model=_label(found.model or called[1]),
        provider_metadata=metadata,
        not_before=not_before,
        fields_invalid=_fields(found.fields_invalid),
        resource_shortfall=_shortfall(found.resource_shortfall),
        details=redact_value(found.details) if found.details else {},
        causes=_causes(below, was_cut, kept) if below else (),
        frames=frames,
        attempts=attempts,
        evidence=found.evidence,
        internal=None if kept is TracebackPolicy.STRICT else _internal(error, kept),
    )
    if report.details or report.internal is not None or len(below) > 4 or attempts:
        from failwell.report.wire import fit

        return fit(report)
    return report


def _arrived(written: Mapping[str, Any]) -> ErrorReport | None:
    """The report that travelled in a foreign exception, unless it is none."""
    try:
        return ErrorReport.read(written)
    except Fault:
        return None


def _completed(
    report: ErrorReport,
    called: tuple[str | None, str | None],
    scene: Scene | None,
    attempts: tuple[Attempt, ...],
) -> ErrorReport:
    """A report that came from elsewhere, with what only this side knows and it leaves open."""
    provider, model = report.provider or _label(called[0]), report.model or _label(called[1])
    place = report.scene if scene is None else merge(report.scene, scene)
    tries = report.attempts or attempts
    if (provider, model, place, tries) == (report.provider, report.model, report.scene, report.attempts):
        return report
    return replace(report, provider=provider, model=model, scene=place, attempts=tries)


def _in_utc(at: datetime | None) -> datetime:
    if at is None:
        return datetime.now(UTC)
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        return datetime.now(UTC)


def _policy(asked: TracebackPolicy | str) -> TracebackPolicy:
    try:
        return TracebackPolicy(asked)
    except ValueError:
        # A typing mistake must cost neither the classification nor a secret.
        return TracebackPolicy.STRICT


def _label(name: str | None) -> str | None:
    return redact_text(cast("str", name), _LABEL_CAP) if is_named(name) else None


def _reply(said: ProviderMetadata | None) -> ProviderMetadata | None:
    """What a provider said, with nothing in it that must not be kept."""
    if said is None:
        return None
    wait = said.retry_after
    made = ProviderMetadata(
        sdk=_label(said.sdk),
        exception_type=_label(said.exception_type),
        status_code=said.status_code,
        code=_label(said.code),
        request_id=_label(said.request_id),
        retry_after=None if wait is None or not abs(wait) <= _FURTHEST else wait,
        headers=safe_headers(said.headers),
    )
    return None if made == _NOTHING_SAID else made


def _shortfall(short: ResourceShortfall | None) -> ResourceShortfall | None:
    # An endless need is no number that anybody could free.
    return short if short is not None and isfinite(short.needed) and isfinite(short.available) else None


def default_action(kind: str, action: ActionKind, advice: str) -> UserAction:
    """The kind's own advice, made once per kind."""
    made = _actions.get(kind)
    if made is None:
        made = _actions[kind] = UserAction(action, advice)
    return made


def _message(error: BaseException, found: Resolved, policy: TracebackPolicy) -> str:
    if isinstance(error, Fault):
        try:
            said = redact_text(str(error)).strip()
        except Exception:  # noqa: BLE001  (an author's `summary` may raise; the kind still has words)
            said = ""
    elif policy.keeps_message:
        from failwell.report.words import message_of

        said = message_of(error)
    else:
        said = redact_text(found.message) if found.message is not None else ""
    if said:
        return said
    return found.kind if found.known is None else found.known.summary


def _action(found: Resolved, not_before: NotBefore | None) -> UserAction:
    if found.user_action is not None:
        return UserAction(ActionKind(found.user_action.kind), redact_text(found.user_action.detail))
    if found.known is None:
        return UserAction(ActionKind.UNKNOWN, "")
    if not_before is not None and found.known.action is ActionKind.WAIT_AND_RETRY and not_before.after > 0:
        seconds = -int(-not_before.after // 1)
        return UserAction(ActionKind.WAIT_AND_RETRY, f"Wait {seconds} s, then repeat the call.")
    return default_action(found.kind, found.known.action, found.known.advice)


def _credible(wait: NotBefore | None, when: datetime) -> NotBefore | None:
    # Written as one chain so that a NaN, which compares with nothing, is not credible either.
    if wait is None or not wait.after <= _FURTHEST:
        return None
    after = max(0.0, float(wait.after))
    known = wait.at is not None and wait.at.tzinfo is not None
    at = _in_utc(wait.at) if known else when + timedelta(seconds=after)
    return replace(wait, after=after, at=at, source=redact_text(wait.source, _LABEL_CAP))


def _fields(names: object) -> tuple[str, ...] | None:
    if not isinstance(names, list | tuple):
        return None
    return tuple(redact_text(str(name), 200) for name in cast("list[object]", names)[:_MOST_FIELDS])


def _place(error: BaseException, given: Scene | None, found: Resolved) -> tuple[Scene, tuple[Frame, ...]]:
    place = NOWHERE if given is None else given
    frames: list[Frame] = []
    for link in reversed(_line(error)):
        stamp = stamp_of(link)
        if stamp is not None:
            frames.extend(frame for frame in stamp.frames if frame not in frames)
            place = merge(place, stamp.scene)
    place = merge(place, current_scene())
    capability = found.details.get("capability_name") if found.details else None
    if isinstance(capability, str) and capability and place.capability is None:
        place = replace(place, capability=capability[:200])
    return place, tuple(frames)


def _line(error: BaseException) -> list[BaseException]:
    if not isinstance(error, Fault):
        return [error]
    line: list[BaseException] = [*lineage(error)]
    end = line[-1].__cause__
    return line if end is None or isinstance(end, Fault) else [*line, end]


def _causes(below: list[Link], was_cut: bool, policy: TracebackPolicy) -> tuple[Cause, ...]:
    made = [_cause(link, policy) for link in below]
    if was_cut:
        made.append(Cause(type="…", message="[more causes cut]", via="cause", level=below[-1].level))
    return tuple(made)


def _cause(link: Link, policy: TracebackPolicy) -> Cause:
    error = link.error
    message = None
    notes: tuple[str, ...] = ()
    if policy.keeps_message:
        from failwell.report.words import message_of, notes_of

        message = message_of(error, _CAUSE_CAP) or None
        notes = notes_of(error)
    elif isinstance(error, Fault):
        try:
            message = redact_text(str(error), _CAUSE_CAP) or None
        except Exception:  # noqa: BLE001  (an author's `summary` may raise)
            message = None
    return Cause(
        type=type_name(error),
        kind=kind_of(error),
        message=message,
        via=link.via,
        level=link.level,
        notes=notes,
    )


def _internal(error: BaseException, policy: TracebackPolicy) -> Internal:
    from failwell.report.words import repr_of, traceback_text

    trace = traceback_text(error) if policy is TracebackPolicy.FULL else None
    return Internal(repr=repr_of(error), traceback=trace)


def _last_resort(error: BaseException, problem: Exception, when: datetime) -> ErrorReport:
    name = type_name(error)
    return ErrorReport(
        id=new_id(),
        kind="internal.unknown",
        category=Category.UNKNOWN,
        certainty=Certainty.UNKNOWN,
        blame=Blame.OURSELVES,
        retryable=False,
        message="The failure could not be described.",
        title="Unclassified failure",
        error_type=name,
        user_action=UserAction(ActionKind.UNKNOWN, ""),
        fingerprint=fingerprint("internal.unknown", name),
        occurred_at=when,
        evidence=(Evidence(rule="describe_failed", basis="default", saw=type(problem).__name__),),
    )
