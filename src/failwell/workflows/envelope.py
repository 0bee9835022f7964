"""Reads the typed errors that authors raise in a script's error file.

An envelope is a JSON object with `kind`, `message` and optional `details`. A valid one becomes a
`Failure` without secrets; anything else is `Malformed` with a reason.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from sys import get_int_max_str_digits
from types import MappingProxyType
from typing import Any, Final, cast

from failwell.errors.facts import Evidence, NotBefore
from failwell.errors.json_walk import map_texts
from failwell.errors.kind_registry import KIND_PATTERN, LONGEST_KIND, OWNED_PREFIXES
from failwell.errors.report import Scene
from failwell.files.finite_json import NotFinite, load_finite
from failwell.workflows.failure import Failure
from failwell.workflows.plan import DeclaredKind

LARGEST = 65_536
"""Bytes of an error file."""
NO_KINDS: Final[Mapping[str, DeclaredKind]] = MappingProxyType({})
_SCRIPT = Evidence(rule="script.envelope", basis="declared")
AGENT_EVIDENCE = Evidence(rule="agent.envelope", basis="declared")
MARKERS = ("failwell_error", "conductor_error")
"""Keys of an agent's answer that say, with the value `true`, that it is an envelope."""
_DEEPEST = 300
"""Levels of brackets: few enough to be read and written at any depth of Python's stack, with those that the journal adds."""
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]')
"""Strings, also one that has no end, and brackets."""
_BOM = b"\xef\xbb\xbf"


class Malformed(ValueError):
    """The error file is not a valid envelope. The message quotes only the kind."""


class NotStorable(Malformed):
    """A text is JSON as programs print it, but holds what cannot be recorded. The message names the number or the limit."""


def read_file(
    raw: bytes, now: datetime, *, kinds: Mapping[str, DeclaredKind] = NO_KINDS, scene: Scene | None = None
) -> Failure | None:
    """The failure in a script's error file; `None` if the file is empty.

    Args:
        raw: The content of the file.
        now: The time that a `retry_after` is counted from.
        kinds: What the workflow file declares about its own kinds.
        scene: Where it happened.

    Raises:
        Malformed: the file contains something else.
    """
    if len(raw) > LARGEST:
        raise Malformed(f"the error file holds more than {LARGEST} bytes; keep `details` small")
    raw = raw.removeprefix(_BOM)
    if not raw.strip():
        return None
    return failure_of(parse(raw), now, kinds=kinds, scene=scene)


def failure_of(
    wire: object,
    now: datetime,
    *,
    kinds: Mapping[str, DeclaredKind] = NO_KINDS,
    scene: Scene | None = None,
    evidence: Evidence = _SCRIPT,
) -> Failure:
    """The failure that an envelope describes. Unknown keys are ignored. `evidence` says who wrote it.

    Raises:
        Malformed: it is invalid; the message names the rule.
    """
    if not isinstance(wire, Mapping):
        raise Malformed("malformed envelope: it is not a JSON object")
    fields = cast("Mapping[str, Any]", wire)
    kind, message, details = fields.get("kind"), fields.get("message"), fields.get("details")
    if not isinstance(kind, str) or not kind:
        raise Malformed("malformed envelope: `kind` is missing or not a text")
    if len(kind) > LONGEST_KIND or KIND_PATTERN.fullmatch(kind) is None:
        raise Malformed(
            "malformed envelope: `kind` must be lower-case words joined by dots, such as `external.git.drift`"
        )
    if kind.startswith(OWNED_PREFIXES):
        raise Malformed(
            f"malformed envelope: `{kind}` has the prefix `{kind.partition('.')[0]}.`, which is reserved for the "
            "runtime; raise a kind of your own"
        )
    if not isinstance(message, str) or not message.strip():
        raise Malformed("malformed envelope: `message` is missing, empty or not a text")
    if details is None:
        details = {}
    if not isinstance(details, Mapping):
        raise Malformed("malformed envelope: `details` is not an object")
    facts = cast("Mapping[str, Any]", details)
    declared = kinds.get(kind)
    return Failure.of(
        kind,
        message,
        details=facts,
        typed=True,
        category=None if declared is None else declared.category,
        not_before=_wait(facts["retry_after"], now) if "retry_after" in facts else None,
        scene=scene,
        # Whoever reads the report sees that a script or an agent says so, and not the runtime.
        evidence=evidence,
    )


def violation(node: str, source: str, reason: str, **details: Any) -> tuple[str, dict[str, Any]]:
    """Message and details of an `internal.schema_violation`."""
    message = f"{source} '{node}' output failed schema validation: {reason}"
    return message, {"node": node, "source": source, "original_message": reason, **details}


def parse(raw: bytes) -> Any:
    """The value of the strict JSON text that a step wrote.

    Raises:
        NotStorable: it is JSON as programs print it, but for a number or its depth.
        Malformed: it is not JSON.
    """
    from json import JSONDecodeError

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"the text is not valid JSON: byte {error.start} is not UTF-8") from None
    if text.count("[") + text.count("{") > _DEEPEST and _levels(text) > _DEEPEST:
        raise NotStorable("the text is nested too deeply; write fewer levels")
    try:
        value = load_finite(text)
    except NotFinite as error:
        raise NotStorable(f"{error}; write null or a text instead") from None
    except JSONDecodeError as error:
        reason = f"{error.msg} (line {error.lineno}, column {error.colno})"
        raise Malformed(f"the text is not valid JSON: {reason}") from None
    except ValueError:
        digits = get_int_max_str_digits()
        raise NotStorable(f"an integer has more than {digits} digits; write it as text") from None
    # Escapes can produce lone surrogates, which cannot be stored.
    return map_texts(value, _replace_surrogates, deepest=len(raw)) if b"\\u" in raw else value


def _levels(text: str) -> int:
    """How deep the brackets of a JSON text are nested, without those in its strings."""
    deepest = level = 0
    for token in _TOKENS.finditer(text):
        if token[0] in "[{":
            level += 1
            deepest = max(deepest, level)
        elif token[0] in "]}":
            level -= 1
    return deepest


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _wait(value: object, now: datetime) -> NotBefore | None:
    from failwell.adapters.retry_after import read_waits

    latest = read_waits({}, {"retry_after": value}, "", now).latest
    return None if latest is None else NotBefore(after=latest.seconds, source="details retry_after")
