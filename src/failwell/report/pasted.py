"""A pasted traceback becomes a report, as if its exception had been described where it was raised.

Each printed exception is given a stand-in: a class of the same name in the same module, never the
vendor's own, which is not imported. `describe` reads stand-ins like any other exception.
"""

import builtins
import re
from dataclasses import replace
from typing import Any, cast

from failwell.adapters.registry import entries
from failwell.fault import capability, classes
from failwell.fault.base import Fault
from failwell.fault.classes import Validation
from failwell.fault.facts import ProviderMetadata
from failwell.report.describe import describe
from failwell.report.fingerprint import fingerprint
from failwell.report.policy import TracebackPolicy, default_policy
from failwell.report.record import ErrorReport, Evidence, Internal
from failwell.report.redact import redact_text
from failwell.report.reply import judge
from failwell.report.traceback_text import TextError, TextFrame, read_traceback

_FACTS = (
    re.compile(r"\[Errno (?P<errno>-?\d{1,9})\]"),
    re.compile(r"No module named '(?P<name>[\w.]{1,200})'"),
    re.compile(r"returned non-zero exit status (?P<returncode>\d{1,9})"),
    re.compile(r"line (?P<lineno>\d{1,9}) column (?P<colno>\d{1,9}) \(char \d"),
    re.compile(r"(?:^|Error code: |HTTP Error |(?:Client|Server) error ')(?P<status_code>[45]\d\d)\b"),
)
"""Sentences of the standard library and of common clients whose numbers a doorway would read."""
_CODE = re.compile(r"""["'](?:code|type)["']: ?["']([A-Za-z][\w.\-]{1,63})["']""")
_MOST_BELOW = 32
_TRACEBACK_CAP = 12_000
_LIBRARY = re.compile(
    r"(?:site|dist)-packages|^<frozen|[/\\]lib[/\\]python\d|[/\\]failwell[/\\](?:runtime|report)[/\\]"
)


def describe_pasted(text: str, *, policy: TracebackPolicy | str | None = None) -> ErrorReport:
    """What the last exception in `text` means, with its causes.

    Its words are recorded only as far as `policy` allows, and are never shown to users or models.

    Raises:
        Validation: no line of the text names an exception.
    """
    kept = default_policy() if policy is None else TracebackPolicy(policy)
    found = read_traceback(text)
    if found is None:
        raise Validation(
            kind="validation.shape_invalid",
            message="no line of the text names an exception, such as `ValueError: …`",
        )
    error = _stand_in(found, kept)
    report = describe(error, policy=kept)
    metadata = report.provider_metadata
    return replace(
        report,
        fingerprint=fingerprint(
            report.kind,
            report.error_type,
            report.provider,
            metadata.status_code if metadata else None,
            metadata.code if metadata else None,
            _site(found.frames),
        ),
        evidence=_evidence(error, report),
        internal=None if kept is TracebackPolicy.STRICT else _internal(found, text, kept),
    )


class _Spoken(Fault):
    """Something failed whose class nobody knows, but whose words name a status."""


def _stand_in(found: TextError, policy: TracebackPolicy) -> BaseException:
    """Exceptions of the printed names, linked as they were printed."""
    outermost = error = _one(found, policy)
    for _ in range(_MOST_BELOW):
        if found.below is None:
            break
        below = _one(found.below, policy)
        if found.via == "cause":
            error.__cause__ = below
        else:
            error.__context__ = below
        error, found = below, found.below
    return outermost


def _one(found: TextError, policy: TracebackPolicy) -> BaseException:
    said = "\n".join([found.text, *found.rest]).strip()
    if found.module.partition(".")[0] == "failwell" and (ours := _our_class(found.name)) is not None:
        return _fault(ours, said, policy)
    members = [_stand_in(member, policy) for member in found.members]
    cls = _same_name(found, said, members)
    error: BaseException = cls.__new__(cls, said, members) if members else cls.__new__(cls)
    facts = _facts(said)
    if not entries(cls) and "status_code" in facts and found.module and not members:
        return _spoken(found, said, facts, policy)
    for name, value in facts.items():
        setattr(error, name, value)
    return error


def _same_name(found: TextError, said: str, members: list[BaseException]) -> type[BaseException]:
    base: type[BaseException] = Exception
    builtin = None if found.module else _builtin(found.name)
    if members:
        plain = all(isinstance(member, Exception) for member in members)
        base = ExceptionGroup if plain else BaseExceptionGroup
    elif builtin is not None and not issubclass(builtin, BaseExceptionGroup):
        base = builtin
    module = "builtins" if builtin is not None else found.module or "__main__"

    def __str__(_self: BaseException) -> str:  # noqa: N807  (it becomes the method)
        return said

    return cast("type[BaseException]", type(found.name, (base,), {"__module__": module, "__str__": __str__}))


def _builtin(name: str) -> type[BaseException] | None:
    cls = cast("object", getattr(builtins, name, None))
    return cls if isinstance(cls, type) and issubclass(cls, BaseException) else None


def _our_class(name: str) -> type[Fault] | None:
    for home in (classes, capability):
        cls = getattr(home, name, None)
        if isinstance(cls, type) and issubclass(cls, Fault):
            return cls
    return None


def _fault(cls: type[Fault], said: str, policy: TracebackPolicy) -> Fault:
    # Made without its constructor: the fields it would insist on were not printed.
    fault = cls.__new__(cls)
    fault.caller_facing = False
    if policy.keeps_message and said:
        fault.message = said
    return fault


def _spoken(found: TextError, said: str, facts: dict[str, Any], policy: TracebackPolicy) -> Fault:
    fault = _fault(type(found.name, (_Spoken,), {"__module__": found.module}), said, policy)
    codes = _CODE.findall(said)
    fault.kind = judge(facts["status_code"], codes).kind
    fault.provider_metadata = ProviderMetadata(
        exception_type=found.name, status_code=facts["status_code"], code=next(iter(codes), None)
    )
    return fault


def _facts(said: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for pattern in _FACTS:
        if (match := pattern.search(said)) is not None:
            facts |= {k: int(v) if v.lstrip("-").isdecimal() else v for k, v in match.groupdict().items()}
    if codes := _CODE.findall(said):
        facts["code"] = codes[0]
    elif "status_code" in facts:
        facts["code"] = facts["status_code"]
    return facts


def _evidence(error: BaseException, report: ErrorReport) -> tuple[Evidence, ...]:
    if not isinstance(error, _Spoken) or report.provider_metadata is None:
        return report.evidence
    status = report.provider_metadata.status_code
    return (Evidence(rule="pasted.status", basis="message", saw=str(status)),)


def _internal(found: TextError, text: str, policy: TracebackPolicy) -> Internal:
    name = f"{found.module}.{found.name}" if found.module else found.name
    whole = redact_text(text.strip()[-_TRACEBACK_CAP:], _TRACEBACK_CAP)
    return Internal(
        repr=redact_text(f"{name}: {found.text}" if found.text else name),
        traceback=whole if policy is TracebackPolicy.FULL else None,
    )


def _site(frames: list[TextFrame]) -> str:
    """The deepest frame in the application's own code, or else the deepest one."""
    own = [frame for frame in frames if not _LIBRARY.search(frame.file)]
    if not frames:
        return ""
    frame = (own or frames)[-1]
    stem = frame.file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
    return f"{stem}:{frame.function}"
