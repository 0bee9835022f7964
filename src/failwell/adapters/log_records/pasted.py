"""A pasted error becomes a report, as if it had been described where it was raised.

Each exception of a Python traceback gets a stand-in: a class of the same name in the same module, never the
vendor's own, which is not imported. `describe` reads stand-ins like any other exception. Errors of other languages
and the output of commands are judged by the facts that their text shows.
"""

import builtins
import re
from dataclasses import replace
from typing import Any, cast

from failwell.adapters.classification import Classification
from failwell.adapters.describe import describe
from failwell.adapters.log_records.log_record import evidence_of, fields_of
from failwell.adapters.log_records.reading import read_saved
from failwell.adapters.origin import seen_from
from failwell.adapters.registry import entries
from failwell.adapters.sdk_exceptions import PHASES
from failwell.adapters.text.class_names import is_javascript
from failwell.adapters.text.message import without_prefixes
from failwell.adapters.text.printed_body import body_in, headers_in
from failwell.adapters.text.protocol_words import status_in
from failwell.adapters.text.python_traceback import TextError, TextFrame, read_traceback
from failwell.adapters.text.reader import read_text
from failwell.adapters.unknown_class import read_unknown_row
from failwell.errors import faults
from failwell.errors.facts import Origin
from failwell.errors.fault import Fault
from failwell.errors.faults import Validation
from failwell.errors.foreign_code import is_installed_file
from failwell.errors.identity import fingerprint
from failwell.errors.known_libraries import HOMES
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.redact import redact_text
from failwell.errors.report import ErrorReport, Evidence, Internal, TracebackPolicy, default_policy

_FACTS = (
    lazy_regex(r"\[Errno (?P<errno>-?\d{1,9})\]"),
    lazy_regex(r"No module named '(?P<name>[\w.]{1,200})'"),
    lazy_regex(r"returned non-zero exit status (?P<returncode>\d{1,9})"),
    lazy_regex(r"line (?P<lineno>\d{1,9}) column (?P<colno>\d{1,9}) \(char \d"),
)
"""Sentences of the standard library whose numbers and names an adapter would read."""
_HEADER = "Traceback (most recent call last)"
_UNKNOWN = frozenset({"provider.unknown", "internal.unknown"})
_ERROR_LINE = lazy_regex(
    r"\b(?:errors?|fatal|critical|panick?(?:ed)?|exception|fail(?:ed|s|ure)?|unable|cannot|denied|refused|aborted|rejected)\b"
    r"|fehler|erreur|échec|ошибк|\berrore?\b|\berro\b|\bfall[oó]\b|错误|失败|异常|エラー|失敗|오류|실패",
    re.IGNORECASE,
)
"""What a text that is nothing but prose does not say of itself."""
_CLEAN = lazy_regex(
    r"\b(?:no|0|without(?: any)?|zero) (?:errors?|failures?|problems?|failed(?: tests?)?)\b|\b(?:errors?|failures?|failed)[:=] ?0\b",
    re.IGNORECASE,
)
"""What a program prints that found nothing wrong."""
_PLAIN_HOMES = frozenset({"python", "process", "pydantic", "yaml", "jsonschema", "urllib"})
"""Adapters that read an exception's class and numbers. The others judge a provider's words and codes."""
_SEPARATOR = lazy_regex(r"::|\\")
_MOST_BELOW = 32
_TRACEBACK_CAP = 12_000
_MARGIN = 4_000
_LIBRARY = lazy_regex(
    r"(?:site|dist)-packages|^<frozen|[/\\]lib[/\\]python\d|[/\\]failwell[/\\](?:runtime|report)[/\\]"
)


def describe_pasted(
    text: str, *, policy: TracebackPolicy | str | None = None, origin: Origin | None = None
) -> ErrorReport:
    """What the last error in `text` means, with its causes: a Python traceback, or what another language or a command printed.

    Its words are recorded only as far as `policy` allows, and are never shown to users or models. `origin` says where it arose, as
    for `describe`.

    Raises:
        Validation: no line of the text names an error, and it shows no fact of one.
    """
    chosen = default_policy() if policy is None else TracebackPolicy(policy)
    text = without_prefixes(text)
    parsed = read_traceback(text)
    printed = None if _is_pythons(parsed, text) else _printed(text, chosen, origin)
    if parsed is None and printed is None:
        raise Validation(
            kind="validation.shape_invalid",
            message="no line of the text names an exception, such as `ValueError: …`, and it shows no status or code of an error",
        )
    if printed is not None:
        error, parsed = printed
    else:
        parsed = cast("TextError", parsed)
        error = _stand_in(parsed, chosen, origin or "code")
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
    """What a provider's client printed, to build a report of."""

    reading: Classification

    def own_fields(self) -> dict[str, Any]:
        return {}


def _is_pythons(parsed: TextError | None, text: str) -> bool:
    """Whether the text is Python's: it has a traceback, or its last line names a class that is known here."""
    if _HEADER in text:
        return True
    if parsed is None or is_javascript(text):
        return False
    top = parsed.module.partition(".")[0]
    return (
        top in HOMES or top in PHASES or top == "failwell" or (not top and _builtin(parsed.name) is not None)
    )


def _printed(
    text: str, policy: TracebackPolicy, origin: Origin | None
) -> tuple[BaseException, TextError] | None:
    """What another language or a command printed, as a fault with its causes; `None` if nothing is known about it."""
    facts = read_text(text)
    reading = read_saved({"message": text})
    says_so = _ERROR_LINE.search(_CLEAN.sub("", text)) is not None
    shows_so = says_so or facts.status is not None or facts.exit_code is not None or bool(facts.errors)
    if not shows_so and reading.evidence[0].basis == "message" and reading.rule.startswith("provider."):
        # The words of any text are about something.
        return None
    reading = seen_from(reading, origin or "call", "")
    if reading.kind in _UNKNOWN:
        return None
    chain = [_as_python(error.name, error.message) for error in facts.errors if error.name]
    outermost = (
        chain[0]
        if chain
        else TextError(name=facts.tool.tool if facts.tool else "PrintedError", text=text.strip())
    )
    error: BaseException = _judged(outermost, outermost.text, reading, policy)
    below = error
    for inner in chain[1:]:
        below.__cause__ = _one(inner, policy, origin or "call", is_pythons=False)
        below = below.__cause__
    return error, outermost


def _as_python(name: str, message: str) -> TextError:
    """An error of another language, its package written as a module."""
    module, _, last = _SEPARATOR.sub(".", name).rpartition(".")
    return TextError(module=module or "__main__", name=last, text=message)


def _stand_in(parsed: TextError, policy: TracebackPolicy, origin: Origin) -> BaseException:
    """Exceptions of the printed names, linked as they were printed."""
    outermost = error = _one(parsed, policy, origin)
    for _ in range(_MOST_BELOW):
        if parsed.below is None:
            break
        below = _one(parsed.below, policy, origin)
        if parsed.via == "cause":
            error.__cause__ = below
        else:
            error.__context__ = below
        error, parsed = below, parsed.below
    return outermost


def _one(
    parsed: TextError, policy: TracebackPolicy, origin: Origin, *, is_pythons: bool = True
) -> BaseException:
    _without_secrets(parsed)
    message = "\n".join([parsed.text, *parsed.rest]).strip()
    if parsed.module.partition(".")[0] == "failwell" and (ours := _our_class(parsed.name)) is not None:
        return _fault(ours, message, policy)
    members = [_stand_in(member, policy, origin) for member in parsed.members]
    cls = _same_name(parsed, message, members)
    error: BaseException = cls.__new__(cls, message, members) if members else cls.__new__(cls, message)
    facts = _facts(message)
    if not members and _is_a_providers(parsed, cls, facts):
        return _spoken(parsed, message, facts, policy)
    reading = (
        None
        if members or (parsed.below is not None and parsed.via == "cause")
        else _of_unknown_class(parsed, message, cls, origin, is_pythons=is_pythons)
    )
    if reading is not None:
        return _judged(parsed, message, reading, policy)
    for name, value in facts.items():
        setattr(error, name, value)
    return error


def _without_secrets(parsed: TextError) -> None:
    if redact_text(parsed.dotted) != parsed.dotted:
        # A token may be spelled like a name: then the exception is not called by it.
        parsed.module, parsed.name = "", "Exception"


def _is_a_providers(parsed: TextError, cls: type[BaseException], facts: dict[str, Any]) -> bool:
    top = parsed.module.partition(".")[0]
    home = HOMES.get(top)
    if home in _PLAIN_HOMES:
        return bool(parsed.module) and not entries(cls) and "status_code" in facts
    return home is not None or top in PHASES or (bool(parsed.module) and "status_code" in facts)


def _of_unknown_class(
    parsed: TextError, message: str, cls: type[BaseException], origin: Origin, *, is_pythons: bool
) -> Classification | None:
    """What an exception of an unknown class, or of one that says nothing, says in words, if a library raised it."""
    if parsed.module and entries(cls):
        return None
    row = {"exception_class": parsed.dotted, "message": message}
    # The frames of other languages do not tell libraries from programs.
    of_library = not is_pythons or (bool(parsed.frames) and is_installed_file(parsed.frames[-1].file))
    return read_unknown_row(row, origin, of_library=of_library)


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
    cls = getattr(faults, name, None)
    return cls if isinstance(cls, type) and issubclass(cls, Fault) else None


def _fault(cls: type[Fault], text: str, policy: TracebackPolicy) -> Fault:
    # Made without its constructor: the fields it would insist on were not printed.
    fault = cls.__new__(cls)
    fault.caller_facing = False
    if policy.keeps_message and text:
        fault.message = text
    return fault


def _spoken(parsed: TextError, message: str, facts: dict[str, Any], policy: TracebackPolicy) -> Fault:
    """A fault for what a provider's client printed, judged as the exception itself would have been."""
    reading = read_saved(
        {
            "http_status": facts.get("status_code"),
            "headers": headers_in(message),
            "body": body_in(message),
            "exception_class": parsed.dotted,
            "message": message,
            "cause_chain": _chain(parsed),
        }
    )
    return _judged(parsed, message, reading, policy)


def _judged(parsed: TextError, message: str, reading: Classification, policy: TracebackPolicy) -> Fault:
    """A fault that stands for a printed error whose reading is known."""
    _without_secrets(parsed)
    cls = cast("type[_Spoken]", type(parsed.name, (_Spoken,), {"__module__": parsed.module}))
    fault = cast("_Spoken", _fault(cls, message, policy))
    fault.reading = reading
    for name, value in fields_of(reading).items():
        if value is not None and (name != "message" or fault.message is None):
            setattr(fault, name, value)
    return fault


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
    status = status_in(text)
    if status is not None:
        facts["status_code"] = facts["code"] = status
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
