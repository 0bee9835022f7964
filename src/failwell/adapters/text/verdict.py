"""What the facts of a text mean: protocol facts first, then tools and codes, then classes.

A weaker fact is looked at only where the stronger ones are missing.
"""

import re
from dataclasses import replace
from datetime import datetime
from typing import Any

from failwell.adapters.classification import Classification, Phase
from failwell.adapters.classify import classify, shortfall_of
from failwell.adapters.facts import Facts, Objects, as_objects, message_of
from failwell.adapters.protocols.devices import device_status
from failwell.adapters.protocols.rpc import read_rpc
from failwell.adapters.protocols.system_errors import PHASE_BY_NAME, is_ntstatus, read_errno
from failwell.adapters.registrations import is_known_code
from failwell.adapters.text.class_names import CANCELLED, is_system_name, kind_of_class
from failwell.adapters.text.commands import ToolFacts
from failwell.adapters.text.protocol_words import timed_out_phase
from failwell.adapters.text.reader import TextFacts
from failwell.adapters.vendors.process import read_exit
from failwell.errors.known_libraries import HOMES
from failwell.errors.lazy_regex import lazy_regex

_LAUNCH_CODES = range(124, 193)
"""Exit codes of launchers and shells, and those above 128 that stand for a signal."""


_THREADS = lazy_regex(
    r"\b(?:create|start)\w{0,4} (?:a |new |native )*thread|\bpthread_create\b|\bfork\b", re.IGNORECASE
)
_DEVICE_WORDS = ("cu", "hip", "mps", "nccl", "nvidia", "xpu")
"""A piece of every status and sentence of a GPU runtime."""


def read_printed(
    facts: TextFacts, base: Facts | None = None, now: datetime | None = None
) -> Classification | None:
    """The reading that the facts of a text decide alone; `None` where only words are left.

    `base` holds what is known beside the text: the provider, the SDK, the class of the exception.
    """
    known = base or Facts()
    tool = facts.tool
    status = facts.status or (tool.status if tool is not None else None)
    if status is not None:
        return classify(_merged(facts, known, status=status), now)
    if facts.grpc is not None and not _says_more(facts):
        name = known.exception_type or _outermost(facts)
        return read_rpc(
            facts.grpc, facts.message, sdk=known.sdk or "grpc", name=name, provider=known.provider
        )
    if facts.close_code is not None:
        kind, close_status, code = facts.close_code
        if kind is not None:
            return _rule(kind, f"close_code_{code}", f"close code {code}", "code")
        return classify(_merged(facts, known, status=close_status), now)
    if facts.database is not None:
        kind, code = facts.database
        return _rule(kind, "database_code", code, "code")
    if tool is not None and (tool.kind or tool.phase or tool.exit_code):
        return _by_tool(tool, facts, known)
    if (device := _by_device(facts)) is not None:
        return device
    if has_known_code(facts):
        return classify(_merged(facts, known), now)
    return _by_system(facts, known) or _by_class(facts, known)


def _says_more(facts: TextFacts) -> bool:
    """Whether the text shows what gRPC calls unknown or internal: a server that wraps the error of another library."""
    if facts.grpc == "INTERNAL":
        return facts.database is not None
    return facts.grpc == "UNKNOWN" and (facts.phase or facts.errno or facts.database) is not None


def has_known_code(facts: TextFacts) -> bool:
    """Whether the text holds a code of a service that a rule knows."""
    return any(is_known_code(code) for code in facts.codes)


def _by_tool(tool: ToolFacts, facts: TextFacts, known: Facts) -> Classification:
    """What a command-line tool or a library is known to print."""
    if tool.tool == "assert" and (device := _by_device(facts)) is not None:
        # A library asserts that a call of the GPU's runtime succeeded.
        return device
    if tool.tool == "pydantic":
        # As the exception itself would be read: who gave the data is known where it arose.
        return Classification.from_rule(
            kind=tool.kind or "", rule="pydantic.ValidationError", saw="ValidationError"
        )
    if tool.kind is not None:
        return _rule(tool.kind, tool.rule, tool.tool, "message")
    if tool.exit_code is not None:
        return read_exit(tool.exit_code)
    return classify(_merged(facts, known, phase=tool.phase))


def _by_device(facts: TextFacts) -> Classification | None:
    """What the runtime of a GPU said."""
    low = facts.message.lower()
    device = device_status(facts.message) if any(word in low for word in _DEVICE_WORDS) else None
    if device is None:
        return None
    reading = _rule(device[0], "device_status", device[1], "code")
    return replace(reading, resource_shortfall=shortfall_of(device[0], facts.message))


def _by_system(facts: TextFacts, known: Facts) -> Classification | None:
    """What the transport, the operating system or the process said."""
    phase = facts.phase
    if phase is None and facts.errno is not None:
        phase = (
            timed_out_phase(facts.message) if facts.errno == "ETIMEDOUT" else PHASE_BY_NAME.get(facts.errno)
        )
    if phase == "closed" and facts.errno in ("ENOENT", "ECONNREFUSED", "EACCES"):
        # The connection broke while it was made: there is no socket at that address.
        phase = "connect"
    if phase != "read" and any(sentence in facts.message for sentence in CANCELLED):
        return _rule("cancel.run", "cancelled", "context canceled", "message")
    if phase is not None:
        return classify(_merged(facts, known, phase=phase))
    if facts.errno == "EAGAIN" and _THREADS.search(facts.message) is not None:
        return _rule("resource.exhausted", "thread_limit", "EAGAIN", "errno")
    if facts.errno is not None:
        return read_errno(facts.errno)
    if facts.exit_code is not None and (
        facts.exit_code < 0 or facts.exit_code in _LAUNCH_CODES or is_ntstatus(facts.exit_code)
    ):
        return read_exit(facts.exit_code)
    return None


def _by_class(facts: TextFacts, known: Facts) -> Classification | None:
    """What the classes of the chain say, the root cause first; last, that a process failed at all."""
    for error in reversed(facts.errors):
        if not error.name or error.name.partition(".")[0] in HOMES:
            continue
        kind = kind_of_class(error.name, facts.message, in_javascript=facts.in_javascript)
        if kind is not None:
            # The class's own name is one of a table; its package is foreign text.
            name = _last(error.name).rpartition("$")[2]
            return Classification.from_rule(kind=kind, rule=f"class.{name}", saw=name)
    if facts.errors and facts.errors[0].name.partition(".")[0] in HOMES:
        return None
    # A name may stand for a status or a code of a service.
    names = tuple(_last(error.name).lower() for error in facts.errors if error.name)
    if names and classify(Facts(names=names)).kind != "provider.unknown":
        return classify(_merged(facts, known))
    return None if facts.exit_code is None else read_exit(facts.exit_code)


def _merged(
    facts: TextFacts, known: Facts, *, status: int | None = None, phase: Phase | None = None
) -> Facts:
    names = (*known.names, *(_last(error.name).lower() for error in facts.errors if error.name))
    body: Any = known.body if known.body is not None else as_objects(facts.body)
    return Facts(
        provider=known.provider,
        sdk=known.sdk or (facts.tool.tool if facts.tool is not None else None),
        exception_type=known.exception_type or _outermost(facts),
        names=tuple(dict.fromkeys(names)),
        status=status,
        codes=tuple(code for code in dict.fromkeys((*known.codes, *facts.codes)) if not is_system_name(code)),
        message=_sentences(known.message or facts.message, body),
        headers=known.headers or facts.headers,
        body=body,
        phase=phase,
        in_stream=known.in_stream,
        request_id=known.request_id,
        model=known.model,
        cause_bug=known.cause_bug,
    )


def _sentences(text: str, body: Any) -> str:
    """What is said: the sentence of a printed body first, which is hard to find between its quotes."""
    said = message_of(body) if type(body) is Objects else ""
    return f"{said}\n{text}"[:4_000] if said and not text.startswith(said) else text[:4_000]


def _rule(kind: str, rule: str, saw: str, basis: str) -> Classification:
    return Classification.from_rule(kind=kind, rule=f"text.{rule}", basis=basis, saw=saw)


def _outermost(facts: TextFacts) -> str:
    return _last(facts.errors[0].name) if facts.errors else ""


def _last(dotted: str) -> str:
    return dotted.replace("::", ".").replace("\\", ".").rpartition(".")[2]
