"""Reads and classifies a saved failure, a row with status, headers, body, class and causes, as a live exception would be.

For people who only have a log: by the provider rules where a reply or a transport is involved, by Python's own table where it is not.
"""

import builtins
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from failwell.adapters.classification import Classification, Phase
from failwell.adapters.classify import classify
from failwell.adapters.facts import (
    STRUCTURES,
    Facts,
    as_objects,
    codes_in_text,
    codes_of,
    message_of,
    parse_body,
)
from failwell.adapters.origin import VERDICTS
from failwell.adapters.registry import find, read, registered
from failwell.adapters.sdk_exceptions import BUGS, REFINES, id_in, phase_of, refined
from failwell.adapters.text.class_names import is_javascript, kind_of_class, phase_of_class
from failwell.adapters.text.message import without_prefixes
from failwell.adapters.text.printed_body import body_in
from failwell.adapters.text.protocol_words import close_code_in, database_kind_in
from failwell.adapters.text.reader import printed_codes, read_text
from failwell.adapters.text.verdict import read_printed
from failwell.adapters.vendors.process import read_exit
from failwell.errors.foreign_objects import safe_call
from failwell.errors.headers import lower_headers
from failwell.errors.known_libraries import HOMES
from failwell.errors.lazy_regex import lazy_regex

_INTERPRETERS = lazy_regex(
    r"unsupported operand type|not supported between instances of|object (?:of type \S{1,80} )?(?:does not support|is not|has no|cannot be|can't be)"
    r"|(?:positional|unexpected keyword) argument|release (?:un-?acquired|unlocked) lock|changed size during iteration|released too many times"
)
"""What Python's interpreter says of a program's own mistake, whatever its words would mean elsewhere."""
_OF_INTERPRETERS = ("TypeError", "RuntimeError")
_OF_OPERATIONS = lazy_regex(
    r"'[\w.]{1,80}' object (?:is not (?:subscriptable|iterable|callable|reversible|an iterator)|has no attribute|does not support)"
    r"|a bytes-like object is required, not '|can only concatenate \w{1,20} \(not \"|(?:list|tuple|string|byte) indices must be integers|expected str, bytes or os\.PathLike object, not "
    r"|(?:not enough|too many) values to unpack \(expected|cannot unpack non-iterable"
    r"|unsupported operand type\(s\) for|not supported between instances of '|object of type '[\w.]{1,80}' has no len\(\)"
)
"""What it says of an operation, which is a mistake in the program also where another class repeats it."""
_TRANSPORT_NAMES = ("connect", "timeout", "timedout", "disconnect")
_ERRNO = lazy_regex(r"\[(?:Errno|WinError) (\d{1,5})\]", re.IGNORECASE)
_EXIT = lazy_regex(r"exit (?:status|code) (-?\d{1,10})|Signals\.SIG[A-Z0-9]+: (\d{1,2})>")
_DB_API = frozenset(
    {"DatabaseError", "DataError", "IntegrityError", "InterfaceError", "InternalError", "OperationalError"}
)
"""Subclasses of `Error` in every module that follows PEP 249."""
GENERAL_CLASSES = frozenset(
    {
        "AssertionError",
        "ConnectionError",
        "Exception",
        "KeyError",
        "LookupError",
        "OSError",
        "RuntimeError",
        "TypeError",
        "ValueError",
    }
)
"""Classes of Python that programs raise for anything."""
_DRIVERS_ERROR = lazy_regex(r"\(((?:\w{1,60}\.){1,6}\w{1,60})\) ([^\n]{1,2000})")
"""How SQLAlchemy prints the exception of the driver that it wraps."""
VAGUE_CLASSES = frozenset({"Exception", "OSError", "RuntimeError", "LookupError"})
"""Those of them that do not even say whose mistake it was."""
NO_LIBRARY = (None, "", "python", *sys.stdlib_module_names)
_RUNTIMES = ("jax.",)
"""Libraries that begin the messages of this machine's own device with the words of gRPC statuses."""
_ONLY_WRAPPING = frozenset(
    {
        "TypeInitializationException", "TargetInvocationException", "AggregateException", "InvocationTargetException",
        "ExecutionException", "CompletionException", "UndeclaredThrowableException",
    }
)  # fmt: skip
"""Classes of .NET and Java that a runtime puts around whatever was thrown."""
_BUG = Classification.from_rule(
    kind="internal.bug", rule="python.interpreter", basis="message", saw="an operation"
)
_LONGEST_SEARCHED = 4_000
_SAY_LITTLE = ("provider.unknown", "provider.bad_request")
UNKNOWN_KINDS = ("provider.unknown", "internal.unknown")
_SYMBOL = lazy_regex(r"[A-Z][A-Z_]{3,60}|[a-z]{2,20}(?:_[a-z]{2,20}){1,5}")


def read_saved(row: Mapping[str, Any], now: datetime | None = None) -> Classification:
    """The reading of one saved row. Missing and malformed values are ignored.

    Where the row has no status, code or phase of its own, its texts are read for them.
    """
    row = _unwrapped(row)
    facts = saved_facts(row)
    module, _, name = str(row.get("exception_class") or "").rpartition(".")
    if module and (known := registered(module, name)) is not None:
        return known.classified(classify(facts, now))
    class_name = str(row.get("exception_class") or "")
    is_reply = facts.status is not None or isinstance(facts.body, STRUCTURES) or bool(facts.headers)
    own = (
        None
        if is_reply
        else _own(*_own_message(_with_home(class_name, facts.sdk), facts.message), facts.body)
    )
    certain = _without_text(facts, own, class_name, now, is_reply=is_reply)
    if certain is not None:
        return certain
    text = read_text("\n".join(_texts_of(row)))
    if not class_name and text.errors and _is_pythons(text.errors[0].name):
        # The text names the class that the row does not.
        return read_saved({**row, "exception_class": text.errors[0].name}, now)
    if text.database is None and name:
        # A runtime prints the class before the message, and some replies are known by both.
        text.database = database_kind_in(f"{class_name}: {facts.message}")
    printed = read_printed(text, facts, now)
    if printed is not None and printed.kind not in (*UNKNOWN_KINDS, "internal.script_error"):
        return printed
    reading = classify(facts, now)
    if printed is not None and reading.kind in UNKNOWN_KINDS:
        return printed
    if reading.kind == "provider.unknown" and (own is None or own.rule == "python.RuntimeError"):
        inner = _inside(row, now)
        if inner is not None:
            return inner
    if own is None and reading.kind == "provider.unknown":
        bugs = [error.name for error in text.errors if error.name in BUGS]
        return Classification.from_rule(kind="internal.bug", rule="cause", saw=bugs[-1]) if bugs else reading
    is_refused = _is_of_a_library(row, class_name, reading)
    # A class that a library made for one failure says more than words; Python's own classes say less.
    is_own = own is not None and (own.evidence[0].basis == "errno" or class_name not in GENERAL_CLASSES)
    is_own = is_own and not (own is not None and own.kind == "internal.bug" and is_refused)
    is_vague = reading.kind in _SAY_LITTLE and not is_refused
    return (
        own
        if own is not None and (is_vague or (is_own and reading.evidence[0].basis in ("message", "default")))
        else reading
    )


def is_misuse(message: str) -> bool:
    """Whether a text holds what Python's interpreter says of a program's own mistake."""
    text = message[:_LONGEST_SEARCHED]
    return _INTERPRETERS.search(text) is not None or _OF_OPERATIONS.search(text) is not None


def _without_text(
    facts: Facts, own: Classification | None, class_name: str, now: datetime | None, *, is_reply: bool
) -> Classification | None:
    """What a reply, the transport or a class of Python's own decides, before the text is searched for facts."""
    if (
        facts.phase == "closed"
        and own is not None
        and not own.evidence[0].rule.startswith(("provider.", "python."))
    ):
        # Its library reads the broken connection as what it means there: no daemon listens.
        return own
    is_closed = facts.phase == "closed" and close_code_in(facts.message) is not None
    if is_reply or (facts.phase is not None and not is_closed) or facts.cause_bug is not None:
        reply = classify(facts, now)
        is_bare = facts.status is None and not facts.headers and facts.cause_bug is None
        return (_by_text_of(facts, now) or reply) if is_bare and reply.kind in UNKNOWN_KINDS else reply
    if _OF_OPERATIONS.search(facts.message[:_LONGEST_SEARCHED]) is not None:
        # Of Python's own classes the border decides.
        return own if own is not None and own.rule.startswith("python.") else _BUG
    if own is None:
        return None
    is_device = own.rule.startswith(_RUNTIMES) and own.kind not in UNKNOWN_KINDS
    is_bug = class_name in _OF_INTERPRETERS and is_misuse(facts.message)
    return own if class_name.startswith("subprocess.") or is_device or is_bug else None


def _by_text_of(facts: Facts, now: datetime | None) -> Classification | None:
    """The reading of what a body without a status says in its sentence and its codes, as a program would print both."""
    printed = read_printed(
        read_text("\n".join((facts.message, *facts.codes, *map(str.upper, facts.codes)))), facts, now
    )
    return None if printed is None or printed.kind in UNKNOWN_KINDS else printed


def _unwrapped(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row of what a runtime only wrapped, if the row holds nothing of a reply."""
    if any(row.get(name) is not None for name in ("http_status", "body")) or row.get("headers"):
        return row
    causes = _dicts(row.get("cause_chain"))
    name = str(row.get("exception_class") or "").rpartition(".")[2]
    while causes and name in _ONLY_WRAPPING:
        first, causes = causes[0], causes[1:]
        if hasattr(builtins, str(first.get("class"))):
            # A plain error of Python's below another runtime's class says nothing.
            break
        row = {
            **row,
            "exception_class": first.get("class"),
            "message": first.get("message"),
            "cause_chain": causes,
        }
        name = str(row["exception_class"] or "").rpartition(".")[2]
    return row


def _inside(row: Mapping[str, Any], now: datetime | None) -> Classification | None:
    """The reading of the cause of a row whose own class says nothing; `None` if that is a plain error of Python's, or unknown."""
    causes = _dicts(row.get("cause_chain"))
    if not causes:
        return None
    first, *rest = causes
    below = read_saved(
        {"exception_class": first.get("class"), "message": first.get("message"), "cause_chain": rest}, now
    )
    is_plain = below.rule.startswith("python.") and below.kind in VERDICTS
    return None if is_plain or below.kind in UNKNOWN_KINDS else below


def _is_of_a_library(row: Mapping[str, Any], class_name: str, reading: Classification) -> bool:
    """Whether a library refused its input with a class of Python that says nothing: a `RuntimeError` about two shapes."""
    if reading.kind != "provider.bad_request":
        return False
    if class_name.rpartition(".")[2] in _DB_API:
        # A statement that a database refuses.
        return True
    if class_name not in VAGUE_CLASSES:
        return False
    return row.get("sdk") not in NO_LIBRARY


def _is_pythons(name: str) -> bool:
    return "." in name and name.partition(".")[0] in HOMES


def _texts_of(row: Mapping[str, Any]) -> list[str]:
    """The message of a row and those of its causes."""
    own = row.get("message")
    causes = [str(cause.get("message", "")) for cause in _dicts(row.get("cause_chain"))]
    return [part for part in (without_prefixes(own) if isinstance(own, str) else "", *causes) if part]


def saved_facts(row: Mapping[str, Any]) -> Facts:
    """The facts of one saved row."""
    headers = lower_headers(row.get("headers") or {})
    own_text = row.get("message")
    class_name = str(row.get("exception_class") or "")
    message = without_prefixes(own_text) if isinstance(own_text, str) else ""
    if class_name:
        # A runtime prints the class before the message.
        message = message.removeprefix(f"{class_name}: ")
    status = _status(row.get("http_status"))
    # Without a status, `read_text` looks for both.
    body = as_objects(_body(row.get("body"), "" if status is None else message))
    causes = [(str(c.get("class", "")), str(c.get("message", ""))) for c in _dicts(row.get("cause_chain"))]
    text = "\n".join(dict.fromkeys(part for part in (message_of(body), message) if part))
    codes = list(codes_of(body))
    kind = headers.get("x-amzn-errortype")
    if kind:
        codes.insert(0, kind.partition(":")[0].lower())
    # Words at the head of a line are no codes where the server says that the fault is its own.
    is_read = status is not None and status < 500 and not isinstance(body, STRUCTURES)
    printed = printed_codes(message) if is_read else codes_in_text(message)
    if isinstance(body, str) and (status is None or status < 500):
        printed += printed_codes(body)
    codes.extend(code for code in printed if code not in codes)
    if _SYMBOL.fullmatch(message):
        codes.append(message.lower())
    phase, bug = transport([(class_name, text), *causes])
    return Facts(
        provider=_text(row.get("provider")),
        sdk=_text(row.get("sdk")),
        exception_type=class_name.rpartition(".")[2],
        names=tuple(_name(cls) for cls in (class_name, *(cls for cls, _ in causes)) if cls),
        status=status,
        codes=tuple(codes),
        message=text,
        headers=headers,
        body=body,
        phase=phase,
        in_stream=row.get("transport") == "stream",
        request_id=id_in(headers),
        cause_bug=bug,
    )


def _status(saved: object) -> int | None:
    """The HTTP status as a number; `None` where a table has none, or something else in its place."""
    number = int(saved) if isinstance(saved, str) and saved.isdecimal() and len(saved) == 3 else saved
    return number if type(number) is int and 100 <= number < 600 else None


def _body(saved: object, message: str) -> Any:
    """The body of a row: as it was saved, or as a program printed it there or into the message."""
    body = parse_body(saved)
    printed = body if isinstance(body, str) else message if body is None else ""
    inner = body_in(printed) if "{" in printed else None
    return inner if isinstance(inner, STRUCTURES) else body


def transport(chain: list[tuple[str, str]]) -> tuple[Phase | None, str | None]:
    """The phase that a chain of (class, message) shows, and the name of a programming error in it, if any."""
    phase: Phase | None = None
    bug: str | None = None
    for place, (dotted, message) in enumerate(chain):
        module, _, name = dotted.rpartition(".")
        step = phase_of(module or "builtins", name) or (phase_of_class(dotted, message) if dotted else None)
        if step or phase:
            step = refined(step, message)
        if step is not None and (phase is None or step in REFINES):
            phase = step
        wrapped = place > 0 and any(word in chain[0][0].lower() for word in _TRANSPORT_NAMES)
        if wrapped and phase is None and not module and name in BUGS:
            bug = name
    return phase, bug


def _own_message(dotted: str, text: str) -> tuple[str, str]:
    """The class and the message of a printed error, without the lines before it, its heading and SQLAlchemy's wrapping."""
    heading = f"{dotted}: " if dotted else ""
    name = heading.rpartition(".")[2]
    start = max(text.rfind(f"\n{heading}"), text.rfind(f"\n{name}")) if heading else -1
    line = text[start + 1 :]
    for beginning in (heading, name):
        if beginning and line.startswith(beginning):
            text = line[len(beginning) :]
            break
    driver = _DRIVERS_ERROR.match(text)
    return (dotted, text) if driver is None else (driver[1], driver[2])


def _with_home(name: str, sdk: str | None) -> str:
    """A class that was saved without its module, with that of the library that the row names, if it has such a class."""
    if not name or "." in name or not sdk or sdk not in HOMES or hasattr(builtins, name):
        return name
    is_known = find(sdk, name) is not None or (name in _DB_API and find(sdk, "Error") is not None)
    return f"{sdk}.{name}" if is_known else name


def _own(dotted: str, message: str, output: object = None) -> Classification | None:
    """The reading of a class of the standard library that is known by name only."""
    module, _, name = dotted.rpartition(".")
    if module == "subprocess" and (code := _EXIT.search(message)):
        number, signal = code.groups()
        return read_exit(int(number) if number else -int(signal), output)
    if not module:
        cls = getattr(builtins, name, None)
        if is_javascript(message) or not (isinstance(cls, type) and issubclass(cls, BaseException)):
            kind = kind_of_class(name, message, in_javascript=is_javascript(message)) if name else None
            return (
                None if kind is None else Classification.from_rule(kind=kind, rule=f"class.{name}", saw=name)
            )
        if issubclass(cls, BaseExceptionGroup):
            # What it is depends on its members, which its name does not tell.
            return None
        # Of the built-in classes only this one is read by its message.
        error = cls.__new__(cls, message) if cls is ImportError else cls.__new__(cls)
        if isinstance(error, OSError) and (number := _ERRNO.search(message)):
            error.errno = int(number.group(1))
        return read(error)
    entry = find(module, name) or (find(module, "Error") if name in _DB_API else None)
    if entry is None and (kind := kind_of_class(dotted, message)) is not None:
        return Classification.from_rule(kind=kind, rule=f"class.{name}", saw=name)
    if entry is None or isinstance(entry, Classification):
        return entry
    # An adapter reads an exception, so it gets one of that name.
    error = type(name, (Exception,), {"__module__": module})(message)
    reading = safe_call(entry, None, error)
    return None if reading is None or reading.kind in UNKNOWN_KINDS else reading


def _name(dotted: str) -> str:
    return dotted.rpartition(".")[2].lower()


def _dicts(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    items = cast("list[object]", value)[:12]
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
