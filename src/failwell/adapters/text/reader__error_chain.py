"""The errors that a text names, outermost first: headings, causes and printed exceptions of several languages.

Java prints `Caused by:`, .NET `--->`, Node `[cause]:`, Rust's anyhow a numbered list, urllib3 `(Caused by …)`; Python
prints the representation of one exception inside the message of another.
"""

import re
from itertools import islice
from typing import NamedTuple


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

_LINK = re.compile(
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
_NUMBERED = re.compile(r"^[ ]{2,8}\d{1,2}:[ ](?=\S)", re.MULTILINE)
_PREFIX = re.compile(
    r"\s*(?:Exception in thread \"[^\"\n]{0,200}\" |Unhandled exception\. |Unhandled Exception: |Uncaught \(in promise\) |Uncaught "
    r"|Unhandled rejection |PHP Fatal error: {1,2}Uncaught |Fatal error: Uncaught |error: Uncaught (?:\(in promise\) )?)"
)
_HEADING = re.compile(
    rf"[ \t(\[]{{0,24}}(?P<name>{_QUALIFIED}[A-Z][\w$]{{0,99}}+)(?:[ ]?(?:\[(?P<code>[A-Z]\w{{2,60}})\]|\((?P<number>-?\d{{1,9}}|0x[0-9A-Fa-f]{{8}})\)))?"
    r"(?:[ ]?:[ ]?(?P<text>[^\n]*)|[ ]*(?=\n|$|\{))"
)
_SPEAKING = re.compile(rf"{_SUFFIX}$|^Error$|^Exception$")
_REPR = re.compile(
    rf"(?<![\w.])(?P<name>{_QUALIFIED}[A-Z]\w{{0,99}}?{_SUFFIX})(?=\(|: |>\]|$)|\braised (?P<raised>[A-Z]\w{{2,99}})>"
)
_ANGLED = re.compile(rf"<(?P<name>{_QUALIFIED}_?[A-Z]\w{{0,99}}?{_SUFFIX})(?=: | of RPC |\()")
_FRAME = re.compile(
    r"^[ \t]{0,40}+(?:at [^\n]*|\.\.\. \d{1,9} (?:more|common frames omitted)|--- End of [^\n]*|goroutine \d[^\n]*)\n?",
    re.MULTILINE,
)
_RUBY = re.compile(
    r"^(?:\S{1,300}:\d{1,7}:in [^\n]{1,200}?: )?(?P<text>[^\n]{0,1000}) \((?P<name>(?:[A-Z]\w*::)*[A-Z]\w*)\)$",
    re.MULTILINE,
)
_RUBYS = re.compile(r"(?:[A-Z]\w{1,40}::){1,5}[A-Z][A-Za-z]{2,60}")
_OF_A_MODULE_OF_ERRORS = re.compile(r"(?:^|\.)(?:errors?|exceptions?|exc)\.[A-Z][A-Za-z]{2,60}$")
_RUST_PANIC = re.compile(
    r"^thread '[^'\n]{0,200}'(?: \(\d{1,20}\))? panicked at (?:'(?P<old>[^\n]{0,2000}?)', \S+|[^\n]{0,300}?:\d{1,7}:\s(?P<text>[^\n]{0,2000}))",
    re.MULTILINE,
)
PANIC = "panic"
"""What Go and Rust call the end of a program that cannot go on. Earlier lines say nothing about it."""
_GO_PANIC = re.compile(r"^(?P<name>panic|fatal error): (?P<text>[^\n]{0,2000})", re.MULTILINE)


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
    for pattern in (_REPR, _ANGLED):
        for match in islice(pattern.finditer(message), _MOST):
            name = match["name"] or match["raised"] if pattern is _REPR else match["name"]
            errors.append(PrintedError(name, message[match.end() :][:400]))
    return errors


def _without_repeats(chain: list[PrintedError]) -> list[PrintedError]:
    """The chain, each name once."""
    by_name = {error.name or f"\0{place}": error for place, error in reversed(list(enumerate(chain)))}
    return [error for place, error in enumerate(chain) if by_name[error.name or f"\0{place}"] is error]
