"""A report as JSON, and back.

`to_dict` writes no nulls, `from_dict` is its exact inverse and refuses what it would not write,
`read` takes what any version wrote. The schema's number changes only when a reader of the old
one could be misled; golden files under `tests/errors/wire/` are read by every later version.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from failwell.errors.axes import Category
from failwell.errors.facts import DENYING, UserAction
from failwell.errors.faults import Validation
from failwell.errors.json_walk import map_texts
from failwell.errors.kind_registry import KINDS, is_kind, is_owned
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.redact import cut, masked, redact_text, redact_value, refresh
from failwell.errors.report import NOWHERE, SCHEMA, Cause, ErrorReport, Evidence, Internal
from failwell.errors.wire_fields import READERS, REPORT, Part, Wrong, dump, load

CAP = 65_536
"""Bytes of one report as JSON."""
_LARGEST_READ = 4 * 1_048_576
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_HALF_A_PAIR = lazy_regex(r"\\u[dD][89a-fA-F]")
_LABEL = 200
_TRACEBACK_CAP = 16_000


def to_dict(report: ErrorReport) -> dict[str, Any]:
    """The report as JSON-safe values, without nulls and without empty containers."""
    data: dict[str, Any] = {
        "schema": report.schema,
        "id": report.id,
        "kind": report.kind,
        "category": report.category._value_,
        "domain": report.category.domain._value_,
        "certainty": report.certainty._value_,
        "blame": report.blame._value_,
        "retryable": report.retryable,
        "message": report.message,
        "title": report.title,
        "error_type": report.error_type,
        "user_action": {"kind": report.user_action.kind._value_, "detail": report.user_action.detail},
        "fingerprint": report.fingerprint,
        "occurred_at": report.occurred_at.isoformat(),
    }
    if report.caller_facing:
        data["caller_facing"] = True
    if report.handled:
        data["handled"] = True
    for name, part in REPORT.optional:
        value = getattr(report, name)
        if (
            value
            and value is not NOWHERE
            and (name != "scene" or value.run is not None or value.job is not None or value != NOWHERE)
        ):
            data[name] = dump(part, value)
    # An empty list of invalid fields says something that its absence does not.
    if report.fields_invalid is not None:
        data["fields_invalid"] = list(report.fields_invalid)
    for name, value in report.extra.items():
        data.setdefault(name, value)
    return data


def to_json(report: ErrorReport) -> str:
    """The report as one line of JSON, at most `CAP` bytes of UTF-8."""
    report, text = _written(report)
    if len(text) * 4 > CAP and _size(text) > CAP:
        _, text = _written(fit(report))
    return _valid(text)


def from_dict(data: Mapping[str, Any]) -> ErrorReport:
    """The report that `to_dict` wrote.

    Raises:
        Validation: it did not; every field that is wrong is named.
    """
    if data.get("schema") != SCHEMA:
        raise _refuse("schema", f"`{SCHEMA}`", "read it with `ErrorReport.read`, which takes every version")
    try:
        fields = load(REPORT, data, strict=True)
        domain = fields.pop("domain", None)
        report = ErrorReport(**fields)
    except (Wrong, TypeError, ValueError):
        raise _refuse_all(data) from None
    if domain is not report.category.domain:
        raise _refuse_all(data)
    return report


def from_json(text: str | bytes) -> ErrorReport:
    """The report that `to_json` wrote; see `from_dict`."""
    return from_dict(_parse(text))


def read(source: Mapping[str, Any] | str | bytes) -> ErrorReport:
    """A report of any version. What is known is kept; unknown keys go to `extra`.

    A category or certainty that this version does not know reads as `unknown`, and an unknown
    failure is never retried.

    Raises:
        Validation: it is not a report at all.
    """
    data = dict(source) if isinstance(source, Mapping) else _parse(source)
    schema = data.get("schema")
    if not isinstance(schema, str) or not schema.startswith("failwell.error/"):
        raise _refuse("schema", "a text that begins with `failwell.error/`", "this is not an error report")
    return fit(_tolerant(data))


def read_masked(source: Mapping[str, Any]) -> ErrorReport:
    """`read`, for a report that another process wrote: its texts are masked with our secrets, and cut.

    Raises:
        Validation: it is not a report at all.
    """
    refresh()
    internal = source.get("internal")
    written = {key: value for key, value in source.items() if key != "internal"}
    data = map_texts(written, masked)
    if internal is not None:
        data["internal"] = map_texts(internal, lambda text: masked(text, _TRACEBACK_CAP))
    return read(data)


def _tolerant(data: Mapping[str, Any]) -> ErrorReport:
    extra: dict[str, Any] = {}
    fields = load(REPORT, data, strict=False, aside=extra)
    fields.pop("domain", None)
    _complete(fields, data, extra)
    return ErrorReport(**fields, extra=redact_value(extra) if extra else {})


def fit(report: ErrorReport) -> ErrorReport:
    """The report itself if it fits in `CAP` bytes, else the same with its bulk cut, visibly."""
    for step in _STEPS:
        report, text = _written(report)
        if _size(text) <= CAP:
            return report
        report = step(report)
    return report


def schema() -> dict[str, Any]:
    """The published JSON Schema of version 1."""
    from importlib.resources import files

    text = files("failwell.errors").joinpath("schema/error-v1.json").read_text("utf-8")
    return cast("dict[str, Any]", json.loads(text))


def _shorten_trace(report: ErrorReport) -> ErrorReport:
    if report.internal is None or report.internal.traceback is None:
        return report
    return replace(
        report, internal=Internal(repr=report.internal.repr, traceback=cut(report.internal.traceback))
    )


def _drop_details(report: ErrorReport) -> ErrorReport:
    if not report.details:
        return report
    return replace(report, details={"…": f"[details cut: {_size(_encode(report.details))} bytes]"})


def _shorten_lists(report: ErrorReport) -> ErrorReport:
    causes = report.causes
    if len(causes) > 4:
        causes = (*causes[:4], Cause(type="…", message="[more causes cut]", level=causes[4].level))
    return replace(report, causes=causes, frames=report.frames[:8], attempts=report.attempts[-8:], extra={})


def _bare(report: ErrorReport) -> ErrorReport:
    wait, fields = report.not_before, report.fields_invalid
    return replace(
        report,
        schema=report.schema[:_LABEL],
        id=report.id[:_LABEL],
        message=redact_text(report.message, 500),
        title=report.title[:_LABEL],
        error_type=report.error_type[:_LABEL],
        user_action=UserAction(report.user_action.kind, report.user_action.detail[:500]),
        fingerprint=report.fingerprint[:_LABEL],
        scene=NOWHERE,
        provider=None if report.provider is None else report.provider[:_LABEL],
        model=None if report.model is None else report.model[:_LABEL],
        details={"…": "[cut]"},
        provider_metadata=None,
        not_before=None if wait is None else replace(wait, source=wait.source[:_LABEL]),
        fields_invalid=None if fields is None else tuple(name[:_LABEL] for name in fields[:10]),
        causes=(),
        frames=(),
        attempts=(),
        evidence=tuple(
            Evidence(rule=evidence.rule[:_LABEL], basis=evidence.basis[:_LABEL], saw=evidence.saw[:_LABEL])
            for evidence in report.evidence[:2]
        ),
        internal=None,
    )


_STEPS = (_shorten_trace, _drop_details, _shorten_lists, _bare)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _valid(text: str) -> str:
    """`text` with every half of a surrogate pair replaced, so that it can be written as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _written(report: ErrorReport) -> tuple[ErrorReport, str]:
    """The report and its JSON, with what neither JSON nor UTF-8 can hold replaced."""
    try:
        return report, _sound(to_dict(report))
    except (TypeError, ValueError, RecursionError):
        # Somebody built the report by hand, or read it from something that JSON does not know.
        report = replace(report, details=redact_value(report.details), extra=redact_value(report.extra))
    try:
        return report, _sound(to_dict(report))
    except (TypeError, ValueError, RecursionError):
        report = _tolerant(redact_value(to_dict(report)))
        return report, _encode(to_dict(report))


def _sound(data: dict[str, Any]) -> str:
    text = _encode(data)
    if not text.isascii():
        text.encode("utf-8")
    return text


def _parse(text: str | bytes) -> dict[str, Any]:
    if len(text) > _LARGEST_READ:
        raise _refuse("(whole)", f"at most {_LARGEST_READ} bytes")
    try:
        written = _valid(text) if isinstance(text, str) else text.decode("utf-8")
        data = _loaded(written)
        if "\\u" in written and _HALF_A_PAIR.search(written):
            data = json.loads(_valid(json.dumps(data, ensure_ascii=False)))
    except (ValueError, RecursionError):
        raise _refuse("(whole)", "JSON") from None
    if not isinstance(data, dict):
        raise _refuse("(whole)", "a JSON object")
    return cast("dict[str, Any]", data)


def _loaded(text: str) -> Any:
    # The decoder's own scanner, without the two searches for blanks around it; to_json writes none.
    if text[:1] == "{" and text[-1:] == "}":
        try:
            data, end = _decoder.scan_once(text, 0)
        except StopIteration:
            # How the scanner says that a value is missing; the decoder says it as an error with its place.
            return _decoder.decode(text)
        if end == len(text):
            return data
    return _decoder.decode(text)


def _complete(fields: dict[str, Any], data: Mapping[str, Any], extra: dict[str, Any]) -> None:
    if not is_kind(fields.get("kind")):
        fields["kind"] = "internal.unknown"
    known = KINDS.get(fields["kind"])
    if known is not None:
        fields["category"] = known.category
    category = fields.setdefault("category", Category.UNKNOWN)
    # A kind under one of our own prefixes that we do not know comes from a newer peer.
    foreseen = known is not None or not is_owned(fields["kind"])
    reply = fields.get("provider_metadata")
    denied = reply is not None and reply.status_code in DENYING
    fields["retryable"] = bool(fields.get("retryable")) and category.retryable and foreseen and not denied
    for name, default in READERS.items():
        if name not in fields:
            fields[name] = default(fields)
            if data.get(name) is not None:
                extra[name] = data[name]


def _refuse_all(data: Mapping[str, Any]) -> Validation:
    """Name everything that is wrong with `data`, of which it is known that something is."""
    wrong: list[Wrong] = [Wrong("present", name) for name in REPORT.required if name not in data]
    fields: dict[str, Any] = {}
    for key, value in data.items():
        try:
            fields.update(load(REPORT, {key: value}, strict=True))
        except Wrong as problem:
            wrong.append(problem)
    wrong += _contradictions(fields)
    text = "; ".join(f"`{problem.where}` must be {problem.expected}" for problem in wrong)
    return Validation(
        kind="validation.shape_invalid",
        message=f"not an error report: {text}",
        fields_invalid=[problem.where for problem in wrong],
    )


def _contradictions(fields: Mapping[str, Any]) -> Iterator[Wrong]:
    known, category = KINDS.get(fields.get("kind", "")), fields.get("category")
    if category is None:
        return
    if known is not None and known.category is not category:
        yield Wrong(f"`{known.category}`, which follows from the kind", "category")
    if fields.get("retryable") and not category.retryable:
        yield Wrong(f"false for a {category} failure", "retryable")
    if fields.get("retryable") and known is None and is_owned(fields.get("kind", "")):
        yield Wrong("false for a kind of the runtime's that is not known here", "retryable")
    if fields.get("domain", category.domain) is not category.domain:
        yield Wrong(f"`{category.domain}`, which follows from the category", "domain")


def _refuse(where: str, expected: str, hint: str = "") -> Validation:
    tail = f"; {hint}" if hint else ""
    return Validation(
        kind="validation.shape_invalid",
        message=f"not an error report: `{where}` must be {expected}{tail}",
        fields_invalid=[where],
    )


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decoder: Any = json.JSONDecoder(parse_constant=_no_constant)


__all__ = [
    "CAP",
    "Part",
    "fit",
    "from_dict",
    "from_json",
    "read",
    "read_masked",
    "schema",
    "to_dict",
    "to_json",
]
