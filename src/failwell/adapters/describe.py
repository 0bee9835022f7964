"""Any exception → one `ErrorReport`. Never raises, never blocks, never leaks, always bounded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from failwell.adapters.author_values import (
    action,
    checked_attempts,
    field_names,
    frame,
    in_utc,
    is_recordable,
    label,
    place,
    reply,
    shortfall,
    usable,
    wait,
    with_end,
)
from failwell.adapters.causes import (
    ANYWHERE,
    NO_HANDLE,
    ErrorContext,
    is_deserialized,
    kind_of,
    lacks_handles,
    resolve,
)
from failwell.adapters.classification import Classification
from failwell.adapters.origin import ORIGINS
from failwell.adapters.stack import Frames, frames_of, site, stack_text
from failwell.errors.axes import ActionKind, Blame, Category, Certainty
from failwell.errors.causes import Link, cause_of, instance_dict, links, type_name
from failwell.errors.context import current_scene, ledger_of, merge, nearest_ledger, stamps_of
from failwell.errors.facts import DENYING, NotBefore, Origin, UserAction
from failwell.errors.fault import Fault, is_fault
from failwell.errors.foreign_objects import safe_call, safe_getattr
from failwell.errors.identity import UNKNOWN, fingerprint, new_id, note
from failwell.errors.kind_registry import KINDS
from failwell.errors.kinds_table import Kind
from failwell.errors.redact import TEXT_CAP, cut, environment_policy, masked, masked_value, refresh
from failwell.errors.report import (
    NOWHERE,
    Attempt,
    Cause,
    ErrorReport,
    Evidence,
    Frame,
    Internal,
    Scene,
    TracebackPolicy,
    origin_of,
)

_FEW = 8
_SHORT = 200
_CAUSE_CAP = 500
_MOST_WAITS = 256
_REPORT = "__failwell_report__"
_actions: dict[str, UserAction] = {}
_NO_ADVICE = UserAction(ActionKind.UNKNOWN, "")


def describe(
    error: BaseException,
    *,
    policy: TracebackPolicy | str | None = None,
    provider: str | None = None,
    model: str | None = None,
    origin: Origin | None = None,
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
        origin: Where it arose: in this program (`code`), in a `call` that it made, in a `tool`, or in `input` that it was
            given. A plain `ValueError` is a bug in the first, and the caller's mistake in the last. By default `call` for what a
            retry loop or a chain raised, and else `code`.
        idempotent: Whether the call that failed may be repeated without harm. A lost reply is then
            a passing failure; without this it is an open question.
        scene: Where it happened; what it leaves open is taken from the exception and the context.
        at: When it happened; now, by default.
        attempts: The tries that led here; by default those that a loop left on the exception.
    """
    when = datetime.now(UTC) if at is None else in_utc(at)
    try:
        ledger = nearest_ledger(error)
        if ledger is None:
            is_plain = origin is None and idempotent is None
            context = ANYWHERE if is_plain else _error_context(origin, idempotent, is_call=False)
            return _describe(error, policy, (provider, model), context, scene, when, attempts)
        context = _error_context(origin, idempotent, is_call=True)
        report = _describe(
            error, policy, (provider, model), context, scene, when, attempts or ledger.attempts
        )
        return after_delivery(report) if ledger.delivered else report
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # noqa: BLE001  (the error path never raises: a poorer report beats none)
        return _last_resort(error, problem, when)


def _error_context(origin: Origin | None, idempotent: bool | None, *, is_call: bool) -> ErrorContext:
    # A typing mistake must not cost the report.
    known = origin if origin in ORIGINS else None
    if known is None and idempotent is None and not is_call:
        return ANYWHERE
    return ErrorContext(known or ("call" if is_call else "code"), idempotent)


def after_delivery(report: ErrorReport) -> ErrorReport:
    """The report of a failure after the caller had received part of the result: a repeat would deliver it twice."""
    if report.certainty is Certainty.PARTIAL and not report.retryable:
        return report
    return replace(report, certainty=Certainty.PARTIAL, retryable=False)


def _describe(
    error: BaseException,
    policy: TracebackPolicy | str | None,
    called: tuple[str | None, str | None],
    context: ErrorContext,
    scene: Scene | None,
    when: datetime,
    attempts: Sequence[Attempt],
) -> ErrorReport:
    tries = checked_attempts(attempts) if attempts else ()
    ours = issubclass(type(error), Fault)
    if tries and (ours or ledger_of(error) is not None):
        # What the loop was told about the call; what the exception says itself comes first.
        called = (called[0] or tries[-1].provider, called[1] or tries[-1].model)
    finished = finished_report(error, ours=ours) if ours or _REPORT in instance_dict(error) else None
    if finished is not None:
        return _completed(finished, called, scene, tries)
    refresh()
    keep = environment_policy() if policy is None else _policy(policy)
    reading = resolve(error, context)
    arrived = None if reading.recorded is None else _arrived(reading.recorded)
    if arrived is not None:
        return _completed(arrived, called, scene, tries)
    return _build(error, reading, keep, called, context, scene, when, tries, ours=ours)


def _build(
    error: BaseException,
    reading: Classification,
    policy: TracebackPolicy,
    called: tuple[str | None, str | None],
    context: ErrorContext,
    scene: Scene | None,
    when: datetime,
    attempts: tuple[Attempt, ...],
    *,
    ours: bool,
) -> ErrorReport:
    """The report of one reading: every text in it is masked and cut here, once."""
    known = KINDS.get(reading.kind)
    category = Category.UNKNOWN if known is None else known.category
    below, was_cut = links(error)
    name, stack, (where, frames) = type_name(error), frames_of(error), _place(error, scene, reading)
    metadata, provider, model = reading.provider_metadata, reading.provider, reading.model
    # What an adapter read of a reply nearly always is; then nothing has to be masked one by one.
    as_read = not ours and usable(is_recordable, reading) is True
    if not as_read:
        metadata, provider, model = usable(reply, metadata), usable(label, provider), usable(label, model)
    if provider is None and called[0] is not None:
        provider = usable(label, called[0])
    if model is None and called[1] is not None:
        model = usable(label, called[1])
    status, code = (None, None) if metadata is None else (metadata.status_code, metadata.code)
    not_before = reading.not_before
    if not_before is not None:
        not_before = with_end(not_before, when) if as_read else usable(wait, not_before, when)
    spoken = policy is not TracebackPolicy.STRICT
    invalid, advice, message = reading.fields_invalid, reading.user_action, reading.message
    short = reading.resource_shortfall
    kind = reading.kind
    report = ErrorReport(
        id=new_id(),
        kind=kind,
        category=category,
        certainty=reading.certainty or (Certainty.UNKNOWN if known is None else known.certainty),
        blame=reading.blame or (Blame.OURSELVES if known is None else known.blame),
        retryable=category.retryable and reading.retryable is not False and status not in DENYING,
        message=(
            message
            if as_read and message and not spoken
            else _message(error, reading, known, policy, ours=ours)
        ),
        title=kind if known is None else known.title,
        error_type=name,
        user_action=advice_of(known, not_before) if advice is None else _action(advice, known, not_before),
        fingerprint=fingerprint(kind, name, provider, status, code, site(stack) if stack else ""),
        occurred_at=when,
        caller_facing=reading.caller_facing,
        origin=reading.origin or origin_of(kind, caller_facing=reading.caller_facing),
        scene=where,
        provider=provider,
        model=model,
        provider_metadata=metadata,
        not_before=not_before,
        fields_invalid=None if invalid is None else usable(field_names, invalid),
        resource_shortfall=None if short is None else usable(shortfall, short),
        details={**reading.details} if as_read else _details(reading.details, ours=ours),
        causes=_causes(below, was_cut, policy, context) if below else (),
        frames=frames,
        attempts=attempts,
        evidence=reading.evidence,
        internal=_internal(error, policy, name, stack, below, was_cut) if spoken or stack or below else None,
    )
    if kind in UNKNOWN:
        note(error, report)
    bulky = report.details and not as_read and not _is_slim(report.details)
    if bulky or spoken or len(below) > 4 or attempts or report.fields_invalid:
        from failwell.errors.wire import fit

        return fit(report)
    return report


def _details(details: Mapping[str, Any], *, ours: bool) -> dict[str, Any]:
    if not details:
        return {}
    if ours or not all(type(value) is str or type(value) is int for value in details.values()):
        safe = masked_value(details)
        # Without a file handle the nets cannot be loaded, and what was not looked through is left out.
        return cast("dict[str, Any]", safe) if type(safe) is dict else {}
    # An adapter names them itself, and most are words that come again and again.
    return {name: masked(value) if type(value) is str else value for name, value in details.items()}


def _is_slim(details: Mapping[str, Any]) -> bool:
    """Whether details are a few short words and numbers, which always fit."""
    return len(details) <= _FEW and all(
        len(value) <= _SHORT if type(value) is str else type(value) in (int, float, bool)
        for value in details.values()
    )


def _arrived(written: Mapping[str, Any]) -> ErrorReport | None:
    """The report that travelled in a foreign exception, unless it is none: masked, since others wrote it."""
    from failwell.errors.wire import read_masked

    try:
        return read_masked(written)
    except Fault:
        return None


def _completed(
    report: ErrorReport,
    called: tuple[str | None, str | None],
    scene: Scene | None,
    attempts: tuple[Attempt, ...],
) -> ErrorReport:
    """A report that came from elsewhere, with what only this side knows and it leaves open."""
    provider = report.provider or usable(label, called[0])
    model = report.model or usable(label, called[1])
    where = report.scene if scene is None else merge(report.scene, place(scene))
    tries = report.attempts or attempts
    if (provider, model, where, tries) == (report.provider, report.model, report.scene, report.attempts):
        return report
    return replace(report, provider=provider, model=model, scene=where, attempts=tries)


def attach_report(error: BaseException, report: ErrorReport) -> None:
    """Let `error` carry its finished report: `describe(error)` then returns that report, with the same id."""
    instance_dict(error)[_REPORT] = report


def finished_report(error: BaseException, *, ours: bool) -> ErrorReport | None:
    """The report that `error` carries or stands for, if there is one; `ours` says whether it is a fault."""
    carried = instance_dict(error).get(_REPORT)
    if carried is None:
        if not ours or not is_deserialized(error):
            return None
        carried = safe_getattr(error, "recorded_report")
    return carried if isinstance(carried, ErrorReport) else None


def _policy(name: TracebackPolicy | str) -> TracebackPolicy:
    try:
        return TracebackPolicy(name)
    except (TypeError, ValueError):
        # A typing mistake must cost neither the classification nor a secret.
        return TracebackPolicy.STRICT


def default_action(kind: str, action: ActionKind, advice: str) -> UserAction:
    """The advice that reports of a kind hold; one object per kind."""
    known = _actions.get(kind)
    if known is None:
        known = _actions[kind] = UserAction(action, advice)
    return known


def _message(
    error: BaseException,
    reading: Classification,
    known: Kind | None,
    policy: TracebackPolicy,
    *,
    ours: bool,
) -> str:
    if ours:
        text = _own_words(error)
    elif policy is not TracebackPolicy.STRICT and policy.keeps_message:
        from failwell.adapters.exception_text import message_of

        text = message_of(error) or (reading.message and masked(reading.message))
    else:
        text = reading.message and masked(reading.message)
    if text:
        return text
    return reading.kind if known is None else known.summary


def _own_words(fault: BaseException, limit: int = TEXT_CAP) -> str:
    # An author's `summary` may raise anything; the kind still has words.
    return masked(safe_call(str, "", fault), limit).strip()


def _action(written: UserAction, known: Kind | None, not_before: NotBefore | None) -> UserAction:
    advice = usable(action, written)
    return advice_of(known, not_before) if advice is None else advice


def advice_of(known: Kind | None, not_before: NotBefore | None) -> UserAction:
    """What a report of a kind advises, with the server-requested delay where there is one."""
    if known is None:
        return UserAction(ActionKind.UNKNOWN, "")
    if not_before is not None and known.action is ActionKind.WAIT_AND_RETRY and not_before.after > 0:
        # Never shorter than it is, and no longer than it must be where even a second would be.
        steps = 1 if not_before.after >= 1 else 10
        seconds = -int(-not_before.after * steps // 1) / steps
        return _advice_to_wait(seconds)
    return default_action(known.name, known.action, known.advice)


@lru_cache(maxsize=_MOST_WAITS)
def _advice_to_wait(seconds: float) -> UserAction:
    # Services ask for the same few waits.
    return UserAction(ActionKind.WAIT_AND_RETRY, f"Wait {seconds:.10g} s, then repeat the call.")


def _place(
    error: BaseException, scene: Scene | None, reading: Classification
) -> tuple[Scene, tuple[Frame, ...]]:
    where = NOWHERE if scene is None else scene
    stamps, around = stamps_of(error), current_scene()
    capability = reading.details.get("capability_name") if reading.details else None
    if where is around is NOWHERE and not stamps and capability is None:
        return where, ()
    frames: list[Frame] = []
    for stamp in stamps:
        frames.extend(crossed for crossed in stamp.frames if crossed not in frames)
        where = merge(where, stamp.scene)
    where = merge(where, around)
    if type(capability) is str and capability and where.capability is None:
        where = replace(where, capability=capability)
    if where is NOWHERE:
        return where, ()
    return usable(place, where) or NOWHERE, tuple(frame(crossed) for crossed in frames)


def _causes(
    below: list[Link], was_cut: bool, policy: TracebackPolicy, context: ErrorContext
) -> tuple[Cause, ...]:
    causes: list[Cause] = []
    for link in below:
        finished = finished_report(link.error, ours=is_fault(link.error))
        if finished is None:
            causes.append(_cause(link, policy, context))
        else:
            causes.extend(_reported(finished, link))
    if was_cut:
        causes.append(Cause(type="…", message="[more causes cut]", via="cause", level=below[-1].level))
    return tuple(causes)


def _reported(report: ErrorReport, link: Link) -> Iterator[Cause]:
    """A failure that was described before, as its report describes it."""
    yield Cause(
        type=report.error_type,
        kind=report.kind,
        message=cut(report.message, _CAUSE_CAP),
        via=link.via,
        level=link.level,
    )
    if cause_of(link.error) is None:
        yield from (replace(cause, level=cause.level + link.level) for cause in report.causes)


def _cause(link: Link, policy: TracebackPolicy, context: ErrorContext) -> Cause:
    error = link.error
    message = None
    notes: tuple[str, ...] = ()
    if policy.keeps_message:
        from failwell.adapters.exception_text import message_of, notes_of

        message = message_of(error, _CAUSE_CAP) or None
        notes = notes_of(error)
    elif is_fault(error):
        message = _own_words(error, _CAUSE_CAP) or None
    return Cause(
        type=type_name(error),
        kind=kind_of(error, context),
        message=message,
        via=link.via,
        level=link.level,
        notes=notes,
    )


def _internal(
    error: BaseException,
    policy: TracebackPolicy,
    name: str,
    stack: Frames,
    below: list[Link],
    was_cut: bool,
) -> Internal | None:
    if policy is TracebackPolicy.STRICT:
        text = stack_text(error, stack, below, was_cut)
        return None if text is None else Internal(repr=name, traceback=text)
    from failwell.adapters.exception_text import repr_of, traceback_text

    if policy is TracebackPolicy.FULL:
        text = traceback_text(error, below, was_cut)
    else:
        text = stack_text(error, stack, below, was_cut)
    return Internal(repr=repr_of(error), traceback=text)


def _last_resort(error: BaseException, problem: BaseException, when: datetime) -> ErrorReport:
    name = type_name(error)
    kind = NO_HANDLE.kind if lacks_handles(error) else "internal.unknown"
    known = KINDS[kind]
    return ErrorReport(
        id=new_id(),
        kind=kind,
        category=known.category,
        certainty=known.certainty,
        blame=known.blame,
        retryable=False,
        message=known.summary if lacks_handles(error) else "The failure could not be described.",
        title=known.title,
        error_type=name,
        user_action=UserAction(known.action, known.advice) if lacks_handles(error) else _NO_ADVICE,
        fingerprint=fingerprint(kind, name),
        occurred_at=when,
        evidence=(Evidence(rule="describe_failed", basis="default", saw=type_name(problem)),),
    )


_TYPE = "Fault"
_DECLARED = Evidence(rule="declared", basis="declared", saw=_TYPE)


def report_of_kind(
    kind: str,
    message: str,
    *,
    details: Mapping[str, Any] | None = None,
    category: Category | None = None,
    not_before: NotBefore | None = None,
    scene: Scene | None = None,
    at: datetime | None = None,
    error_id: str | None = None,
    evidence: Evidence | None = None,
) -> ErrorReport:
    """The report of a failure of `kind`, with secrets masked and every text capped.

    Args:
        kind: A kind of the registry, or an author's own.
        message: One sentence for a person.
        details: JSON.
        category: What an author's own kind means; the registry decides for its kinds.
        not_before: The server-requested delay.
        scene: Where it happened.
        at: When it happened; now, by default.
        error_id: The report's id; a new one, by default.
        evidence: Who says that it is of this kind; the program itself, by default.
    """
    refresh()
    when = in_utc(at)
    known = KINDS.get(kind)
    delay = None if not_before is None else usable(wait, not_before, when)
    where = merge(NOWHERE if scene is None else scene, current_scene())
    if known is None:
        # An author's kind speaks of the work, not of us.
        certainty, blame, title, summary = Certainty.UNKNOWN, Blame.WORKFLOW, kind, kind
        category = category or Category.UNKNOWN
        retryable = category is Category.TRANSIENT
    else:
        certainty, blame, title, summary = known.certainty, known.blame, known.title, known.summary
        category = known.category
        retryable = category.retryable
    return ErrorReport(
        id=error_id or new_id(),
        kind=kind,
        category=category,
        certainty=certainty,
        blame=blame,
        retryable=retryable,
        message=masked(message).strip() or summary,
        title=title,
        error_type=_TYPE,
        user_action=advice_of(known, delay),
        fingerprint=fingerprint(kind, _TYPE, None, None, None, ""),
        occurred_at=when,
        caller_facing=True,
        origin=origin_of(kind, caller_facing=True),
        scene=usable(place, where) or NOWHERE,
        not_before=delay,
        details=masked_value(dict(details)) if details else {},
        evidence=(evidence or _DECLARED,),
    )
