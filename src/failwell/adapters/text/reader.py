"""One reader of errors that were printed: from a message, a log or console output to typed facts.

It reads what the text itself shows and decides nothing. `adapters.text.verdict` makes a reading of the facts.

The errors that a text names, outermost first: headings, causes and printed exceptions of several languages.
"""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, cast

from failwell.adapters.classification import Phase
from failwell.adapters.codes import is_known_everywhere
from failwell.adapters.facts import STRUCTURES, codes_in_text, codes_of
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
    status_in,
    timed_out_phase,
)
from failwell.adapters.text.python_traceback import read_traceback
from failwell.errors.lazy_regex import lazy_regex


class PrintedError(NamedTuple):
    """One error of a chain."""

    name: str
    """As printed, with its package; empty where only a message is printed."""
    message: str


_MOST = 12
_LONGEST = 2_000
_PART = r"[A-Za-z_$][\w$]{0,79}+"
_QUALIFIED = rf"(?:{_PART}(?:\.|::|\\)){{0,12}}+"
_SUFFIX = r"(?:Error|Exception|Failure|Fault|Timeout|TimedOut|Panic|Interrupt|Refused|Disconnected|Unavailable|Denied|Exceeded|Limited|NotFound|Unreachable)"

_LINK = lazy_regex(
    r"^[ \t|]{0,24}Caused by:[ \t]*"  # Java, anyhow
    r"|[ \t\n]{0,8}--->[ \t]*"  # .NET
    r"|\[(?:cause|errors)\]:[ \t\n]*\[?[ \t\n]*"  # Node
    r"|^[ \t]{1,24}cause:[ \t]*(?=[A-Z])"
    r"|\(Caused by[ ]"  # urllib3
    r"|\bcaused by:?[ ](?=[A-Z])"
    r"|; nested exception is "  # Spring
    r"|\bCause:[ ](?=[A-Z][\w.$]*(?:Error|Exception))",
    re.MULTILINE,
)
_NUMBERED = lazy_regex(r"^[ ]{2,8}\d{1,2}:[ ](?=\S)", re.MULTILINE)
_PREFIX = lazy_regex(
    r"\s*(?:Exception in thread \"[^\"\n]{0,200}\" |Unhandled exception\. |Unhandled Exception: |Uncaught \(in promise\) |Uncaught "
    r"|Unhandled rejection |PHP Fatal error: {1,2}Uncaught |Fatal error: Uncaught |error: Uncaught (?:\(in promise\) )?)"
)
_HEADING = lazy_regex(
    rf"[ \t(\[]{{0,24}}(?P<name>{_QUALIFIED}[A-Z][\w$]{{0,99}}+)(?:[ ]?(?:\[(?P<code>[A-Z]\w{{2,60}})\]|\((?P<number>-?\d{{1,9}}|0x[0-9A-Fa-f]{{8}})\)))?"
    r"(?:[ ]?:[ ]?(?P<text>[^\n]*)|[ ]*(?=\n|$|\{))"
)
_SPEAKING = lazy_regex(rf"{_SUFFIX}$|^Error$|^Exception$")
_REPR = lazy_regex(
    rf"(?<![\w.])(?P<name>{_QUALIFIED}[A-Z]\w{{0,99}}?{_SUFFIX})(?=\(|: |>\]|$)|\braised (?P<raised>[A-Z]\w{{2,99}})>"
)
_ANGLED_error_chain = lazy_regex(rf"<(?P<name>{_QUALIFIED}_?[A-Z]\w{{0,99}}?{_SUFFIX})(?=: | of RPC |\()")
_FRAME = lazy_regex(
    r"^[ \t]{0,40}+(?:at [^\n]*|\.\.\. \d{1,9} (?:more|common frames omitted)|--- End of [^\n]*|goroutine \d[^\n]*)\n?",
    re.MULTILINE,
)
_RUBY = lazy_regex(
    r"^(?:\S{1,300}:\d{1,7}:in [^\n]{1,200}?: )?(?P<text>[^\n]{0,1000}) \((?P<name>(?:[A-Z]\w*::)*[A-Z]\w*)\)$",
    re.MULTILINE,
)
_RUBYS = lazy_regex(r"(?:[A-Z]\w{1,40}::){1,5}[A-Z][A-Za-z]{2,60}")
_OF_A_MODULE_OF_ERRORS = lazy_regex(r"(?:^|\.)(?:errors?|exceptions?|exc)\.[A-Z][A-Za-z]{2,60}$")
_RUST_PANIC = lazy_regex(
    r"^thread '[^'\n]{0,200}'(?: \(\d{1,20}\))? panicked at (?:'(?P<old>[^\n]{0,2000}?)', \S+|[^\n]{0,300}?:\d{1,7}:\s(?P<text>[^\n]{0,2000}))",
    re.MULTILINE,
)
PANIC = "panic"
"""What Go and Rust call the end of a program that cannot go on. Earlier lines say nothing about it."""
_GO_PANIC = lazy_regex(r"^(?P<name>panic|fatal error): (?P<text>[^\n]{0,2000})", re.MULTILINE)


def chain_in(text: str) -> list[PrintedError]:
    """The errors that `text` names, outermost first; empty if it names none."""
    panic = _panic(text)
    if panic is not None:
        return [panic, *_reprs(panic.message)][:_MOST]
    chain: list[PrintedError] = []
    parts = _parts(_FRAME.sub("", text) if "\n" in text else text)
    for part in parts:
        error = _heading(part)
        if error is None and (chain or len(parts) > 1) and _REPR.match(part) is None:
            error = PrintedError("", _first_line(part))
        if error is not None:
            chain.append(error)
            chain += _reprs(error.message)
        else:
            chain += _reprs(part[:_LONGEST])
        if len(chain) >= _MOST:
            break
    return _without_repeats(chain)[:_MOST]


def _parts(text: str) -> list[str]:
    """The text at each link of its chain, the outermost first."""
    links = (
        list(islice(_LINK.finditer(text), _MOST))
        if ":" in text or ">" in text or "(C" in text or ";" in text
        else []
    )
    if not links:
        return [text]
    ends = [link.start() for link in links]
    parts = [text[: ends[0]]]
    for place, link in enumerate(links):
        inside = text[link.end() : ends[place + 1] if place + 1 < len(links) else len(text)]
        numbers = [match.end() for match in islice(_NUMBERED.finditer(inside), _MOST)]
        parts += [inside[start : start + _LONGEST] for start in numbers] or [inside]
    return parts


def _heading(part: str) -> PrintedError | None:
    """The first line of `part` that names an error, with its message."""
    for line in islice(_lines(part), 200):
        prefix = _PREFIX.match(line)
        start = 0 if prefix is None else prefix.end()
        match = _HEADING.match(line, start)
        if match is not None and (prefix is not None or _names_an_error(match["name"]) or _is_a_class(match)):
            code = match["code"] or (f"({match['number']})" if match["number"] else "")
            if match["code"] and _names_an_error(match["code"]):
                return PrintedError(match["code"], match["text"] or "")
            message = " ".join(piece for piece in (code, match["text"] or "") if piece)
            rest = part[part.find(line) + len(line) :].strip("\n")
            return PrintedError(match["name"], f"{message}\n{rest}".strip()[:_LONGEST])
    ruby = _RUBY.search(part[:_LONGEST]) if ")" in part else None
    if ruby is not None and (_names_an_error(ruby["name"]) or "::" in ruby["name"]):
        return PrintedError(ruby["name"], ruby["text"])
    return None


def _lines(part: str) -> list[str]:
    return part[: 40 * _LONGEST].split("\n")


def _names_an_error(name: str) -> bool:
    last = re.split(r"\.|::|\\", name)[-1].split("$")[-1]
    return _SPEAKING.search(last) is not None or name.startswith("Errno::") or "Exception$" in name


def _is_a_class(match: re.Match[str]) -> bool:
    """Whether a heading is a class without an ending: one of Ruby (`ActiveRecord::RecordInvalid: …`), or of a module of errors (`acme.errors.Gone: …`)."""
    name = match["name"]
    is_class = _RUBYS.fullmatch(name) is not None or _OF_A_MODULE_OF_ERRORS.search(name) is not None
    return is_class and bool(match["text"])


def _first_line(part: str) -> str:
    return next((line.strip() for line in _lines(part) if line.strip()), "")[:_LONGEST]


def _panic(text: str) -> PrintedError | None:
    if "panicked at" in text and (rust := _RUST_PANIC.search(text)) is not None:
        return PrintedError(PANIC, rust["text"] or rust["old"] or "")
    go = _GO_PANIC.search(text) if "panic: " in text or "fatal error: " in text else None
    if go is not None and (go["name"] == PANIC or "goroutine" in text):
        return PrintedError(PANIC, go["text"])
    return None


def _reprs(message: str) -> list[PrintedError]:
    """The exceptions that are printed inside a message, the outer ones first."""
    if "Error" not in message and "Exception" not in message and "(" not in message and ">" not in message:
        return []
    errors: list[PrintedError] = []
    for pattern in (_REPR, _ANGLED_error_chain):
        for match in islice(pattern.finditer(message), _MOST):
            name = match["name"] or match["raised"] if pattern is _REPR else match["name"]
            errors.append(PrintedError(name, message[match.end() :][:400]))
    return errors


def _without_repeats(chain: list[PrintedError]) -> list[PrintedError]:
    """The chain, each name once."""
    by_name = {error.name or f"\0{place}": error for place, error in reversed(list(enumerate(chain)))}
    return [error for place, error in enumerate(chain) if by_name[error.name or f"\0{place}"] is error]


_LARGEST_HEAD = 16_000
_LARGEST_TAIL = 48_000
_MOST_BELOW = 12
_REFINES = ("tls", "dns", "handles")
_PYTHON = "Traceback (most recent call last)"
_AWS = lazy_regex(
    r"\bAn error occurred \((?P<code>[\w.]{1,80})\) (?:when calling|on request)|\bA client error \((?P<old>[\w.]{1,80})\) occurred when calling|\bapi error (?P<go>[A-Z][\w.]{2,80}): |\b(?:Error Code: |ErrorCode \")(?P<java>[A-Z][\w.]{2,80})"
    # Azure's libraries for Go and PowerShell, and the Google one for Go, which puts the reason behind the message.
    r"|\bCode=\"?(?P<azure>[A-Z]\w{2,80})\"?;? Message=|\bgoogleapi: Error \d{3}: [^\n]{0,2000}, (?P<google>[a-z][A-Za-z]{3,40})(?=$| - )",
    re.MULTILINE,
)
_LABELLED = lazy_regex(
    r"^[ \t(]{0,8}(?:Error ?Code|Code|ERROR CODE|errorCode|error_code|code)[ \t]{0,12}[:=][ \t]{0,3}['\"]?(?P<code>[A-Za-z][\w.-]{2,60})['\"]?[,;)]?[ \t]*$",
    re.MULTILINE,
)
_BRACED = lazy_regex(
    r"\b(?:code|type|[eE]rrorCode|reason): ?['\"](?P<code>[A-Za-z][\w.-]{2,60})['\"]|\bcode: ?(?P<plain>[A-Z][A-Za-z.]{5,80}),?\s{1,3}message: ?"
)
_ANGLED = lazy_regex(
    r"^<[45]\d\d> (?P<code>[A-Z][\w.]{3,80}): |(?:^|ERROR: )\((?P<cli>[A-Z][A-Za-z]{4,60})\) |<(?:[Cc]|exceptionC|errorC)ode>(?P<xml>[A-Z][\w.]{3,80})</"
)
_HEADED = lazy_regex(
    # As clients in Go and command-line tools print the code before the sentence: `creating X: VcpuLimitExceeded: You have …`.
    r"(?:^|: |\n|\* |[45]\d\d )[ \t(\[]{0,4}(?P<code>[A-Z][a-z]{1,24}(?:[A-Z][A-Za-z0-9]{1,24}){1,6}(?:\.[A-Z]\w{2,40})?|[A-Z][A-Z_]{6,40})[)\]]{0,1}: (?=\S)"
)
_SYMBOL = lazy_regex(
    # As chat services and their SDKs print it behind a sentence: `An API error occurred: missing_scope`.
    r"\b(?:[Ee]rrors?|ERROR|occurred|failed|[Cc]ode|[Rr]eason)['\"]?[:=] ?['\"]?(?P<code>[a-z]{2,20}(?:_[a-z]{2,20}){1,5})(?=$|[\s\"'\\,;})\]])"
)
_MOST_HEADS = 4
_LOG_LINE = lazy_regex(
    r"^\W{0,4}(?:\d{4}[-/]\d\d[-/]\d\d[T ]?|\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)[^\n]{0,60}?",
    re.MULTILINE,
)
_ERROR_LINE = lazy_regex(r"\b(?:ERROR|FATAL|CRITICAL|error|fatal|ERR|panic|Exception|failed|Failed)\b")
_INFO_LINE = lazy_regex(
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
        if _ERROR_LINE.search(record) is not None:
            if _INFO_LINE.match(record) is None:
                return record
            loud = loud or record
        end = start
    return loud or text
