"""Values that an author put into a fault or a call, checked for a report: typed, finite, masked, short.

Authors set fields by hand, and a wrong one must cost neither the others nor the classification. A value that
cannot be used counts as left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar, cast

from failwell.adapters.causes import is_named, one_of
from failwell.adapters.classification import Classification
from failwell.errors.axes import ActionKind, Certainty
from failwell.errors.causes import type_name
from failwell.errors.facts import LONGEST_WAIT, NotBefore, ProviderMetadata, ResourceShortfall, UserAction
from failwell.errors.headers import is_allow_listed
from failwell.errors.redact import are_clean, clean_groups, mask_known, masked, masked_headers
from failwell.errors.report import Attempt, Frame, Scene
from failwell.errors.safe_str import items_of, sequence_of

_M = TypeVar("_M")

_LABEL_CAP = 200
_REASON_CAP = 400
_MOST_FIELDS = 50
_MOST_ATTEMPTS = 100
_RESOURCES = ("gpu_vram_mb", "system_ram_mb", "disk_mb")
_NO_METADATA = (None,) * 6
_CONFIDENCES = ("high", "medium", "low")
_PLACEHOLDERS = frozenset({"", "unknown"})
_PLAIN_VALUES = frozenset({str, int, type(None)})
_PLAIN_NUMBERS = frozenset({int, float, type(None)})
_LONGEST_NUMBER = 2**63


def usable(check: Callable[..., _M], value: object, *more: object) -> _M | None:
    """`check(value, *more)`, or `None` where there is no value or the check raises."""
    if value is None:
        return None
    try:
        return check(value, *more)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  (a foreign object may raise anything when it is read)
        return None


def in_utc(at: datetime | None) -> datetime:
    """The time of a report in UTC; now, if `at` is left out or no time at all."""
    return usable(_aware, at) or datetime.now(UTC)


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def label(name: object) -> str | None:
    """A provider's or model's name, masked; `None` for a placeholder."""
    return masked(cast("str", name), _LABEL_CAP) if is_named(name) else None


def is_recordable(reading: Classification) -> bool:
    """Whether all that was read of a reply may be recorded as it is, after a `refresh`.

    What an adapter reads nearly always may. Its texts are looked through at once: most of a reply comes again, and only its ids and
    counts are new. A fault below may have brought values that its author set by hand, so they are checked too.
    """
    metadata = reading.provider_metadata
    if metadata is None or not is_allow_listed(metadata.headers):
        return False
    if type(metadata.status_code) not in _PLAIN_NUMBERS or type(metadata.retry_after) not in _PLAIN_NUMBERS:
        return False
    delay = reading.not_before
    source = None if delay is None else delay.source
    if delay is not None and not _is_wait(delay):
        return False
    names = (
        reading.provider, reading.model, reading.message, metadata.sdk, metadata.exception_type, metadata.code, source,
        *reading.details.values(),
    )  # fmt: skip
    values: list[Any] = [*metadata.headers.values()]
    request_id = metadata.request_id
    if request_id is not None and (type(request_id) is not str or request_id not in values):
        values.append(request_id)
    # A subclass of `str` may say of itself what it likes. A number among the headers raises below.
    if not _PLAIN_VALUES.issuperset(map(type, (*names, *values))):
        return False
    is_known = names in clean_groups() or _are_clean_names(names)
    return is_known and are_clean(values) and request_id not in _PLACEHOLDERS


def _is_wait(delay: NotBefore) -> bool:
    is_time = type(delay.after) is float and 0 <= delay.after <= LONGEST_WAIT and delay.at is None
    return is_time and delay.confidence in _CONFIDENCES


def _are_clean_names(names: tuple[Any, ...]) -> bool:
    texts = [name for name in names if type(name) is str]
    if not _PLACEHOLDERS.isdisjoint(texts) or not are_clean(texts):
        return False
    clean_groups().add(names)
    return True


def reply(metadata: ProviderMetadata) -> ProviderMetadata | None:
    """A provider's metadata, reduced to what may be recorded."""
    sdk, exception_type = usable(label, metadata.sdk), usable(label, metadata.exception_type)
    code, request_id = usable(label, metadata.code), usable(label, metadata.request_id)
    status, delay = usable(_whole, metadata.status_code), usable(_seconds, metadata.retry_after)
    headers = usable(masked_headers, metadata.headers) or {}
    if not headers and (sdk, exception_type, code, request_id, status, delay) == _NO_METADATA:
        return None
    return ProviderMetadata(
        sdk=sdk, exception_type=exception_type, status_code=status, code=code, request_id=request_id,
        retry_after=delay, headers=headers,
    )  # fmt: skip


def shortfall(short: ResourceShortfall) -> ResourceShortfall | None:
    """The shortfall for a report, if it is given in finite numbers."""
    needed, available = _number(short.needed), _number(short.available)
    if short.resource not in _RESOURCES or needed is None or available is None:
        return None
    return ResourceShortfall(short.resource, needed, available)


def wait(requested: NotBefore, when: datetime) -> NotBefore | None:
    """The wait, if it is a credible one, with the time at which it is over."""
    seconds = _number(requested.after)
    if seconds is None or seconds > LONGEST_WAIT:
        return None
    after = max(0.0, float(seconds))
    named = isinstance(requested.at, datetime) and requested.at.tzinfo is not None
    at = in_utc(requested.at) if named else when + timedelta(seconds=after)
    sure = requested.confidence if requested.confidence in _CONFIDENCES else "low"
    return NotBefore(after=after, at=at, source=label(requested.source) or "declared", confidence=sure)


def with_end(delay: NotBefore, when: datetime) -> NotBefore:
    """`wait` for a delay of a recordable reading: only the time at which it is over is missing."""
    after = delay.after
    at = when + timedelta(0, after)
    return NotBefore(after=after, at=at, source=delay.source, confidence=delay.confidence)


def action(advice: UserAction) -> UserAction:
    """An author's advice."""
    return UserAction(one_of(ActionKind, advice.kind) or ActionKind.UNKNOWN, masked(advice.detail))


def field_names(names: object) -> tuple[str, ...] | None:
    """The names of the invalid fields, masked for a report."""
    if not issubclass(type(names), list | tuple):
        return None
    return tuple(_named(name) for name in islice(sequence_of(names), _MOST_FIELDS))


def place(scene: Scene) -> Scene:
    """Where it happened. Names are the program's own, so only known secrets are masked in them."""
    changed = {
        name: safe
        for name in Scene.__dataclass_fields__
        if (value := getattr(scene, name)) is not None and (safe := _place(value, name)) != value
    }
    return replace(scene, **changed) if changed else scene


def frame(crossed: Frame) -> Frame:
    """One boundary, its names as short as those of the scene."""
    return replace(
        crossed,
        name=_place(crossed.name, "name"),
        workflow=usable(_place, crossed.workflow, "workflow"),
        iteration=usable(_whole, crossed.iteration),
        item=usable(_place, crossed.item, "item"),
    )


def checked_attempts(attempts: object) -> tuple[Attempt, ...]:
    """The valid entries of a list of attempts."""
    first = islice(sequence_of(attempts), _MOST_ATTEMPTS)
    return tuple(
        checked
        for attempt in first
        if isinstance(attempt, Attempt) and (checked := usable(_attempt, attempt)) is not None
    )


def _attempt(attempt: Attempt) -> Attempt:
    number = _whole(attempt.number)
    return Attempt(
        number=0 if number is None else number,
        kind=usable(label, attempt.kind),
        certainty=one_of(Certainty, attempt.certainty),
        provider=usable(label, attempt.provider),
        model=usable(label, attempt.model),
        usage=_counts(attempt.usage),
        cost=usable(_whole, attempt.cost),
        wait=usable(_seconds, attempt.wait),
        reason=usable(masked, attempt.reason, _REASON_CAP),
        layer=usable(label, attempt.layer),
        exhausted=True if attempt.exhausted is True else None,
    )


def _counts(usage: Mapping[str, int]) -> dict[str, int]:
    counts = islice(items_of(usage), _MOST_FIELDS)
    return {_named(name): count for name, value in counts if (count := _whole(value)) is not None}


def _place(value: object, name: str) -> Any:
    if name == "attempt":
        return _whole(value)
    text = value if isinstance(value, str) else _named(value)
    # An item comes out of the data that is worked on, and may be anything.
    return masked(text, _LABEL_CAP) if name == "item" else mask_known(text, _LABEL_CAP)


def _named(value: object) -> str:
    if isinstance(value, str):
        return masked(value, _LABEL_CAP)
    number = _whole(value)
    return f"<{type_name(value)}>" if number is None else str(number)


def _whole(value: object) -> int | None:
    if not issubclass(type(value), int) or type(value) is bool:
        return None
    number = int.__index__(cast("int", value))
    return number if abs(number) < _LONGEST_NUMBER else None


def _number(value: object) -> float | None:
    # Written as one chain so that a NaN, which compares with nothing, is no number either.
    kind = type(value)
    if kind is not int and kind is not float:
        # A subclass may say of itself what it likes.
        value = float.__float__(cast("float", value)) if issubclass(kind, float) else _whole(value)
    number = cast("float | None", value)
    return number if number is not None and abs(number) < _LONGEST_NUMBER else None


def _seconds(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= LONGEST_WAIT else None
