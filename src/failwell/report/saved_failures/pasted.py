"""A pasted traceback becomes a report, as if its exception had been described where it was raised.

Each printed exception gets a stand-in: a class of the same name in the same module, never the
vendor's own, which is not imported. `describe` reads stand-ins like any other exception.
"""

import builtins
import re
from dataclasses import replace
from json import loads
from typing import Any, cast

from failwell.adapters.reading import Reading
from failwell.adapters.registry import HOMES, entries
from failwell.adapters.saved import read_saved
from failwell.adapters.sdk import PHASES
from failwell.adapters.text.python_traceback import TextError, TextFrame, read_traceback
from failwell.fault import capability, classes
from failwell.fault.base import Fault
from failwell.fault.classes import Validation
from failwell.fault.facts import Origin
from failwell.report.describe import describe
from failwell.report.identity import fingerprint
from failwell.report.record import ErrorReport, Evidence, Internal, TracebackPolicy, default_policy
from failwell.report.redact import redact_text
from failwell.report.saved_failures.saved_row import evidence_of, fields_of

_FACTS = (
    re.compile(r"\[Errno (?P<errno>-?\d{1,9})\]"),
    re.compile(r"No module named '(?P<name>[\w.]{1,200})'"),
    re.compile(r"returned non-zero exit status (?P<returncode>\d{1,9})"),
    re.compile(r"line (?P<lineno>\d{1,9}) column (?P<colno>\d{1,9}) \(char \d"),
    re.compile(
        r"(?:^|Error code: |HTTP Error |(?:Client|Server) error '|[Ss]tatus |status(?:_code)?[:=] ?)"
        r"(?P<status_code>[45]\d\d)\b"
    ),
)
"""Sentences of the standard library and of common clients whose numbers an adapter would read."""
_NAMED = re.compile(r"An error occurred \((?P<code>\w{1,80})\) when calling")
"""How botocore prints its code."""
_LONGEST_BODY = 64_000
_PLAIN_HOMES = frozenset({"python", "process", "sqlite", "pydantic", "yaml", "jsonschema", "urllib"})
"""Adapters that read an exception's class and numbers. The others judge a provider's words and codes."""
_MOST_BELOW = 32
_TRACEBACK_CAP = 12_000
_MARGIN = 4_000
_LIBRARY = re.compile(
    r"(?:site|dist)-packages|^<frozen|[/\\]lib[/\\]python\d|[/\\]failwell[/\\](?:runtime|report)[/\\]"
)


def describe_pasted(
    text: str, *, policy: TracebackPolicy | str | None = None, origin: Origin | None = None
) -> ErrorReport:
    """What the last exception in `text` means, with its causes.

    Its words are recorded only as far as `policy` allows, and are never shown to users or models. `origin` says where it arose, as
    for `describe`.

    Raises:
        Validation: no line of the text names an exception.
    """
    chosen = default_policy() if policy is None else TracebackPolicy(policy)
    parsed = read_traceback(text)
    if parsed is None:
        raise Validation(
            kind="validation.shape_invalid",
            message="no line of the text names an exception, such as `ValueError: …`",
        )
    error = _stand_in(parsed, chosen)
    report = describe(error, policy=chosen, origin=origin)
    metadata = report.provider_metadata
    return replace(
        report,
        fingerprint=fingerprint(
            report.kind,
            report.error_type,
            report.provider,
            metadata.status_code if metadata else None,
            metadata.code if metadata else None,
            _site(parsed.frames),
        ),
        evidence=_evidence(error, report),
        internal=None if chosen is TracebackPolicy.STRICT else _internal(parsed, text, chosen),
    )


class _Spoken(Fault):
    """What a provider's client printed."""

    reading: Reading

    def own_fields(self) -> dict[str, Any]:
        return {}


def _stand_in(parsed: TextError, policy: TracebackPolicy) -> BaseException:
    """Exceptions of the printed names, linked as they were printed."""
    outermost = error = _one(parsed, policy)
    for _ in range(_MOST_BELOW):
        if parsed.below is None:
            break
        below = _one(parsed.below, policy)
        if parsed.via == "cause":
            error.__cause__ = below
        else:
            error.__context__ = below
        error, parsed = below, parsed.below
    return outermost


def _one(parsed: TextError, policy: TracebackPolicy) -> BaseException:
    if redact_text(parsed.dotted) != parsed.dotted:
        # A token may be spelled like a name: then the exception is not called by it.
        parsed.module, parsed.name = "", "Exception"
    message = "\n".join([parsed.text, *parsed.rest]).strip()
    if parsed.module.partition(".")[0] == "failwell" and (ours := _our_class(parsed.name)) is not None:
        return _fault(ours, message, policy)
    members = [_stand_in(member, policy) for member in parsed.members]
    cls = _same_name(parsed, message, members)
    error: BaseException = cls.__new__(cls, message, members) if members else cls.__new__(cls)
    facts = _facts(message)
    if not members and _is_a_providers(parsed, cls, facts):
        return _spoken(parsed, message, facts, policy)
    for name, value in facts.items():
        setattr(error, name, value)
    return error


def _is_a_providers(parsed: TextError, cls: type[BaseException], facts: dict[str, Any]) -> bool:
    top = parsed.module.partition(".")[0]
    home = HOMES.get(top)
    if home in _PLAIN_HOMES:
        return bool(parsed.module) and not entries(cls) and "status_code" in facts
    return home is not None or top in PHASES or (bool(parsed.module) and "status_code" in facts)


def _same_name(parsed: TextError, message: str, members: list[BaseException]) -> type[BaseException]:
    base: type[BaseException] = Exception
    builtin = None if parsed.module else _builtin(parsed.name)
    if members:
        plain = all(isinstance(member, Exception) for member in members)
        base = ExceptionGroup if plain else BaseExceptionGroup
    elif builtin is not None and not issubclass(builtin, BaseExceptionGroup):
        base = builtin
    module = "builtins" if builtin is not None else parsed.module or "__main__"

    def __str__(_self: BaseException) -> str:  # noqa: N807  (it becomes the method)
        return message

    return cast("type[BaseException]", type(parsed.name, (base,), {"__module__": module, "__str__": __str__}))


def _builtin(name: str) -> type[BaseException] | None:
    cls = cast("object", getattr(builtins, name, None))
    return cls if isinstance(cls, type) and issubclass(cls, BaseException) else None


def _our_class(name: str) -> type[Fault] | None:
    for home in (classes, capability):
        cls = getattr(home, name, None)
        if isinstance(cls, type) and issubclass(cls, Fault):
            return cls
    return None


def _fault(cls: type[Fault], text: str, policy: TracebackPolicy) -> Fault:
    # Made without its constructor: the fields it would insist on were not printed.
    fault = cls.__new__(cls)
    fault.caller_facing = False
    if policy.keeps_message and text:
        fault.message = text
    return fault


def _spoken(parsed: TextError, message: str, facts: dict[str, Any], policy: TracebackPolicy) -> Fault:
    """A fault for what a provider's client printed, judged as the exception itself would have been."""
    cls = cast("type[_Spoken]", type(parsed.name, (_Spoken,), {"__module__": parsed.module}))
    fault = cast("_Spoken", _fault(cls, message, policy))
    reading = read_saved(
        {
            "http_status": facts.get("status_code"),
            "headers": {},
            "body": _body(message),
            "exception_class": f"{parsed.module}.{parsed.name}",
            "message": message,
            "cause_chain": _chain(parsed),
        }
    )
    fault.reading = reading
    for name, value in fields_of(reading).items():
        if value is not None and (name != "message" or fault.message is None):
            setattr(fault, name, value)
    return fault


def _body(text: str) -> object:
    """The reply's body, which most clients print after the status, as JSON or as Python prints it."""
    if (named := _NAMED.search(text)) is not None:
        return {"code": named["code"]}
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end <= start + _LONGEST_BODY:
        return None
    text = text[start : end + 1]
    try:
        return loads(text)
    except (ValueError, RecursionError):
        pass
    from ast import literal_eval

    try:
        return literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _chain(parsed: TextError) -> list[dict[str, str]]:
    chain: list[dict[str, str]] = []
    below = parsed.below
    while below is not None and len(chain) < _MOST_BELOW:
        chain.append({"class": below.dotted, "message": below.text})
        below = below.below
    return chain


def _facts(text: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for pattern in _FACTS:
        if (match := pattern.search(text)) is not None:
            facts |= {k: int(v) if v.lstrip("-").isdecimal() else v for k, v in match.groupdict().items()}
    if "status_code" in facts:
        facts["code"] = facts["status_code"]
    return facts


def _evidence(error: BaseException, report: ErrorReport) -> tuple[Evidence, ...]:
    return evidence_of(error.reading) if isinstance(error, _Spoken) else report.evidence


def _internal(parsed: TextError, text: str, policy: TracebackPolicy) -> Internal:
    return Internal(
        repr=redact_text(f"{parsed.dotted}: {parsed.text}" if parsed.text else parsed.dotted),
        traceback=_end_of(text.strip()) if policy is TracebackPolicy.FULL else None,
    )


def _end_of(text: str) -> str:
    """The end of a long text, masked; the text at the cut is dropped, because half a secret is not recognised."""
    part = text[-(_TRACEBACK_CAP + _MARGIN) :]
    masked = redact_text(part, len(part) + _TRACEBACK_CAP)
    if len(part) == len(text) and len(masked) <= _TRACEBACK_CAP:
        return masked
    tail = masked[_MARGIN:] if len(part) < len(text) else masked
    return f"[the beginning was cut] …{tail[-(_TRACEBACK_CAP - 50) :]}"


def _site(frames: list[TextFrame]) -> str:
    """The deepest frame in the application's own code, or else the deepest one."""
    own = [frame for frame in frames if not _LIBRARY.search(frame.file)]
    if not frames:
        return ""
    frame = (own or frames)[-1]
    stem = frame.file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
    return f"{stem}:{frame.function}"
