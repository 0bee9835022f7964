"""One reader of errors that were printed: from a message, a log or console output to typed facts.

It reads what the text itself shows and decides nothing. `adapters.text.verdict` makes a reading of the facts.
"""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from failwell.adapters.codes import is_known_everywhere
from failwell.adapters.facts import STRUCTURES, Phase, codes_in_text, codes_of
from failwell.adapters.protocols.wire import GRPC_WORDS
from failwell.adapters.registrations import is_known_code
from failwell.adapters.text.class_names import is_javascript, is_system_name, phase_in, phase_of_class
from failwell.adapters.text.commands import ToolFacts, tool_facts
from failwell.adapters.text.printed_body import body_in, headers_in
from failwell.adapters.text.protocol_words import (
    close_code_in,
    database_kind_in,
    errno_in,
    exit_in,
    grpc_in,
    timed_out_phase,
)
from failwell.adapters.text.protocol_words__http_status import status_in
from failwell.adapters.text.python_traceback import read_traceback
from failwell.adapters.text.reader__error_chain import PANIC, PrintedError, chain_in

_LARGEST_HEAD = 16_000
_LARGEST_TAIL = 48_000
_MOST_BELOW = 12
_REFINES = ("tls", "dns", "handles")
_PYTHON = "Traceback (most recent call last)"
_AWS = re.compile(
    r"\bAn error occurred \((?P<code>[\w.]{1,80})\) (?:when calling|on request)|\bA client error \((?P<old>[\w.]{1,80})\) occurred when calling|\bapi error (?P<go>[A-Z][\w.]{2,80}): |\b(?:Error Code: |ErrorCode \")(?P<java>[A-Z][\w.]{2,80})"
    # Azure's libraries for Go and PowerShell, and the Google one for Go, which puts the reason behind the message.
    r"|\bCode=\"?(?P<azure>[A-Z]\w{2,80})\"?;? Message=|\bgoogleapi: Error \d{3}: [^\n]{0,2000}, (?P<google>[a-z][A-Za-z]{3,40})(?=$| - )",
    re.MULTILINE,
)
_LABELLED = re.compile(
    r"^[ \t(]{0,8}(?:Error ?Code|Code|ERROR CODE|errorCode|error_code|code)[ \t]{0,12}[:=][ \t]{0,3}['\"]?(?P<code>[A-Za-z][\w.-]{2,60})['\"]?[,;)]?[ \t]*$",
    re.MULTILINE,
)
_BRACED = re.compile(
    r"\b(?:code|type|[eE]rrorCode|reason): ?['\"](?P<code>[A-Za-z][\w.-]{2,60})['\"]|\bcode: ?(?P<plain>[A-Z][A-Za-z.]{5,80}),?\s{1,3}message: ?"
)
_ANGLED = re.compile(
    r"^<[45]\d\d> (?P<code>[A-Z][\w.]{3,80}): |(?:^|ERROR: )\((?P<cli>[A-Z][A-Za-z]{4,60})\) |<(?:[Cc]|exceptionC|errorC)ode>(?P<xml>[A-Z][\w.]{3,80})</"
)
_HEADED = re.compile(
    # As clients in Go and command-line tools print the code before the sentence: `creating X: VcpuLimitExceeded: You have …`.
    r"(?:^|: |\n|\* |[45]\d\d )[ \t(\[]{0,4}(?P<code>[A-Z][a-z]{1,24}(?:[A-Z][A-Za-z0-9]{1,24}){1,6}(?:\.[A-Z]\w{2,40})?|[A-Z][A-Z_]{6,40})[)\]]{0,1}: (?=\S)"
)
_SYMBOL = re.compile(
    # As chat services and their SDKs print it behind a sentence: `An API error occurred: missing_scope`.
    r"\b(?:[Ee]rrors?|ERROR|occurred|failed|[Cc]ode|[Rr]eason)['\"]?[:=] ?['\"]?(?P<code>[a-z]{2,20}(?:_[a-z]{2,20}){1,5})(?=$|[\s\"'\\,;})\]])"
)
_MOST_HEADS = 4
_LOG_LINE = re.compile(
    r"^\W{0,4}(?:\d{4}[-/]\d\d[-/]\d\d[T ]?|\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)[^\n]{0,60}?",
    re.MULTILINE,
)
_LOUD = re.compile(r"\b(?:ERROR|FATAL|CRITICAL|error|fatal|ERR|panic|Exception|failed|Failed)\b")
_CALM = re.compile(
    r"[^\n]{0,100}?(?:\b(?:INFO|DEBUG|TRACE)\b|\b(?:level|severity)\W{1,3}(?:info|debug|trace)\b|\[(?:info|debug|trace)\])"
)
"""The head of a record that speaks of no failure of its own, whatever words are in it."""
_MOST_RECORDS = 4_000


@dataclass(slots=True, kw_only=True)
class TextFacts:
    """The facts that one text shows."""

    errors: tuple[PrintedError, ...] = ()
    """The errors it names, outermost first; the last is the root cause."""
    message: str = ""
    """The messages of those errors, or the text itself where it names none."""
    status: int | None = None
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    codes: tuple[str, ...] = ()
    """Machine codes, in lower case, the most specific first."""
    grpc: str | None = None
    database: tuple[str, str] | None = None
    """The kind of a database's error, and its SQLSTATE, number or word."""
    close_code: tuple[str | None, int | None, int] | None = None
    """What a WebSocket close code stands for, as a kind or a status, and the code."""
    errno: str | None = None
    exit_code: int | None = None
    """As `subprocess` has it: negative for a signal."""
    phase: Phase | None = None
    tool: ToolFacts | None = None
    in_javascript: bool = False
    """Whether the stack is one of JavaScript's, which shares the names of some classes with Python."""


def read_text(text: str) -> TextFacts:
    """The facts that `text` shows, in time that grows with its length alone; of a long text, head and tail are read."""
    if len(text) > _LARGEST_HEAD + _LARGEST_TAIL:
        text = f"{text[:_LARGEST_HEAD]}\n{text[-_LARGEST_TAIL:]}"
    text = _deciding_record(text)
    errors = _python_chain(text) if _PYTHON in text else chain_in(text)
    message = "\n".join(error.message for error in errors if error.message) if errors else text
    shown = _reprinted(errors) if errors and (_PYTHON in text or errors[0].name == PANIC) else text
    body = body_in(shown)
    tool = tool_facts(text)
    facts = TextFacts(
        errors=tuple(errors),
        message=message.strip(),
        status=status_in(shown),
        body=body,
        headers=headers_in(shown),
        codes=printed_codes(shown, body),
        tool=tool,
        in_javascript=is_javascript(text),
    )
    if facts.status is None:
        _add_protocol_facts(facts, shown)
    return facts


def _add_protocol_facts(facts: TextFacts, text: str) -> None:
    facts.grpc = grpc_in(text) or _grpc_of(facts.body)
    facts.database = database_kind_in(text)
    facts.close_code = close_code_in(text)
    facts.errno = errno_in(text)
    facts.exit_code = exit_in(text)
    facts.phase = _phase(facts.errors) or phase_in(text)
    if facts.phase == "read" and facts.errno == "ETIMEDOUT":
        facts.phase = timed_out_phase(text)


def _grpc_of(body: Any) -> str | None:
    """The status of a `google.rpc.Status`, which gateways to gRPC answer with: a number, a message and details."""
    if not isinstance(body, dict):
        return None
    fields = cast("dict[str, Any]", body)
    number = fields.get("code")
    if type(number) is not int or not isinstance(fields.get("details"), list) or "message" not in fields:
        return None
    return GRPC_WORDS[number] if 0 < number < len(GRPC_WORDS) else None


def _phase(errors: tuple[PrintedError, ...]) -> Phase | None:
    """The phase that the classes of a chain show: the outermost one's, or what a cause knows better."""
    phase: Phase | None = None
    for error in errors:
        step = phase_of_class(error.name, error.message) if error.name else None
        if step is not None and (phase is None or step in _REFINES):
            phase = step
    return phase


def printed_codes(text: str, body: Any = None) -> tuple[str, ...]:
    """The machine codes in a text, and in the body that was found in it, in lower case, the most specific first."""
    codes = list(codes_of(body)) if isinstance(body, STRUCTURES) else []
    for pattern in (
        (_AWS, _ANGLED, _LABELLED, _BRACED)
        if ":" in text or "=" in text or "(" in text or "ode>" in text
        else ()
    ):
        codes += [next(filter(None, match.groups())).lower() for match in pattern.finditer(text[:4_000])][:8]
    codes += codes_in_text(text)
    heads = [match["code"].lower() for match in islice(_HEADED.finditer(text[:4_000]), _MOST_HEADS)]
    codes += [head for head in heads if not head.endswith(("error", "exception")) and is_known_code(head)]
    if "_" in text:
        symbols = [match["code"] for match in islice(_SYMBOL.finditer(text[:4_000]), _MOST_HEADS)]
        # Names of any sort are written so, too: a word that nobody knows would be shown as a code.
        codes += [symbol for symbol in symbols if is_known_everywhere(symbol)]
    return tuple(
        code
        for code in dict.fromkeys(codes)
        if code not in ("error", "none", "null") and not is_system_name(code)
    )[:16]


def _python_chain(text: str) -> list[PrintedError]:
    """The chain of a Python traceback, outermost first, with members of groups and exceptions in messages."""
    chain: list[PrintedError] = []
    waiting = [read_traceback(text)]
    while waiting and len(chain) < _MOST_BELOW:
        error = waiting.pop(0)
        if error is None:
            continue
        message = "\n".join([error.text, *error.rest]).strip()
        chain.append(PrintedError(error.dotted, message))
        chain += [inner for inner in chain_in(message) if inner.name and inner.name != error.dotted]
        waiting[:0] = [*error.members, error.below]
    return chain[:_MOST_BELOW]


def _reprinted(errors: list[PrintedError]) -> str:
    """What decides about a Python traceback or a panic, without its stack: its last exception, or the members of a group.

    As with a live exception, a status below another library's exception does not count.
    """
    deciding = errors if errors[0].name.endswith("Group") else errors[:1]
    return "\n".join(f"{error.name}: {error.message}" for error in deciding)


def _deciding_record(text: str) -> str:
    """Of a log with several records, the last that speaks of a failure, with the lines that belong to it."""
    starts = [match.start() for _, match in zip(range(_MOST_RECORDS), _LOG_LINE.finditer(text), strict=False)]
    if len(starts) < 2:
        return text
    loud: str | None = None
    end = len(text)
    for start in reversed(starts):
        record = text[start:end]
        if _LOUD.search(record) is not None:
            if _CALM.match(record) is None:
                return record
            loud = loud or record
        end = start
    return loud or text
