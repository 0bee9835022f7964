"""Reads the typed errors that authors raise: from a script's error file, or in an agent's answer.

On the wire an envelope is an object with `kind`, `message` and perhaps `details`. A script's file is
a signal by itself; an agent's answer must say `failwell_error: true`. What does not fit is
`Malformed` with a reason, never a crash, and what fits leaves here without secrets.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, cast

from failwell.fault.facts import NotBefore
from failwell.fault.frozen import frozen
from failwell.fault.registry import is_kind, is_owned
from failwell.report.redact import redact_text, redact_value

LARGEST = 65_536
"""Bytes of an error file."""
SIGNS = ("failwell_error", "conductor_error")
"""Either of these, literally true, makes an agent's answer an envelope."""
_BOM = b"\xef\xbb\xbf"


class Malformed(ValueError):
    """What was written is no envelope; the message says why, and quotes nothing of it but its kind."""


@frozen
class Envelope:
    """One typed error as its author raised it."""

    kind: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    not_before: NotBefore | None = None
    """From `details.retry_after`: seconds, an HTTP date or an ISO time."""


def read_file(raw: bytes, now: datetime) -> Envelope | None:
    """The envelope in a script's error file; `None` if the file holds nothing.

    Raises:
        Malformed: it holds something else.
    """
    if len(raw) > LARGEST:
        raise Malformed(f"the error file holds more than {LARGEST} bytes; keep `details` small")
    raw = raw.removeprefix(_BOM)
    if not raw.strip():
        return None
    return coerce(parse(raw), now)


def read_answer(answer: object, now: datetime) -> Envelope | None:
    """The envelope that an agent's answer is; `None` for any other answer.

    Raises:
        Malformed: the answer says that it is one, and is not.
    """
    if not isinstance(answer, Mapping):
        return None
    told = cast("Mapping[str, Any]", answer)
    return coerce(told, now) if any(told.get(sign) is True for sign in SIGNS) else None


def coerce(wire: object, now: datetime) -> Envelope:
    """The envelope that a wire object stands for. Keys that are not known are passed over.

    Raises:
        Malformed: it breaks a rule, which is named.
    """
    if not isinstance(wire, Mapping):
        raise Malformed("malformed envelope: it is not a JSON object")
    told = cast("Mapping[str, Any]", wire)
    kind, message, details = told.get("kind"), told.get("message"), told.get("details")
    if not isinstance(kind, str) or not kind:
        raise Malformed("malformed envelope: `kind` is missing or not a text")
    if not is_kind(kind):
        raise Malformed(
            "malformed envelope: `kind` must be lower-case words joined by dots, such as `external.git.drift`"
        )
    if is_owned(kind):
        raise Malformed(
            f"malformed envelope: `{kind}` lies under `{kind.partition('.')[0]}.`, which belongs to the "
            "runtime; raise a kind of your own"
        )
    if not isinstance(message, str) or not message.strip():
        raise Malformed("malformed envelope: `message` is missing, empty or not a text")
    if details is None:
        details = {}
    if not isinstance(details, Mapping):
        raise Malformed("malformed envelope: `details` is not an object")
    facts = cast("Mapping[str, Any]", details)
    return Envelope(
        kind=kind,
        message=redact_text(message),
        details=redact_value(facts),
        not_before=_wait(facts["retry_after"], now) if "retry_after" in facts else None,
    )


def violation(node: str, source: str, reason: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """Message and details of the `internal.schema_violation` that something malformed becomes."""
    message = f"{source} '{node}' output failed schema validation: {reason}"
    return message, {"node": node, "source": source, "original_message": reason, **more}


def parse(raw: bytes) -> Any:
    """What a JSON text says, if it is JSON in the strict sense.

    Raises:
        Malformed: it is not.
    """
    from json import JSONDecodeError, loads

    try:
        value = loads(raw.decode("utf-8"), parse_constant=_refuse)
        return whole(value) if b"\\u" in raw else value
    except Malformed:
        raise
    except UnicodeDecodeError as error:
        raise Malformed(f"the text is not valid JSON: byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise Malformed("the text is not valid JSON: it is nested too deeply") from None
    except ValueError as error:
        told = (
            f"{error.msg} (line {error.lineno}, column {error.colno})"
            if isinstance(error, JSONDecodeError)
            else ""
        )
        raise Malformed(f"the text is not valid JSON: {told or 'a number is out of range'}") from None


def whole(value: Any) -> Any:
    """`value` with texts that can be stored: half characters, which JSON's escapes allow, are replaced."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "replace").decode()
        return value
    if isinstance(value, dict):
        return {whole(key): whole(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [whole(inner) for inner in cast("list[Any]", value)]
    return value


def _refuse(_word: str) -> Any:
    raise Malformed("the text is not valid JSON: NaN and Infinity are not JSON")


def _wait(value: object, now: datetime) -> NotBefore | None:
    from failwell.adapters.waits import read_waits

    latest = read_waits({}, {"retry_after": value}, "", now).latest
    return None if latest is None else NotBefore(after=latest.seconds, source="details retry_after")
