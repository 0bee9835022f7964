"""Facts in, deciding rule out: evidence has ranks, and a weaker one never overturns a stronger one.

Protocol facts come first, then machine codes, then the exception's class, then words. A status that services use
for more than its name says is generic (`GENERIC`): there, and only there, weaker evidence refines it.
It does not know the provider. What tells a quota from a rate limit is the same for every provider.
"""

import re

from failwell.adapters.classification import Phase, Rule
from failwell.adapters.codes import said_by_class, said_by_codes
from failwell.adapters.facts import NOT_SENT, Facts, Objects, ids_of, objects_of
from failwell.adapters.protocols.vendor_codes import scoped
from failwell.adapters.registrations import registered_rule
from failwell.adapters.rules import (
    ABOUT_CONNECTION,
    AUTH,
    BAD,
    CAPABILITY,
    CONNECTION,
    GENERIC,
    GIVING_WAY,
    KINDS_OF_STATUSES,
    LONG,
    MODEL,
    PERM,
    QUOTA,
    RATE,
    REFUSED,
    REJECTED,
    SERVERS_OF_ONE_STATUS,
    THROWN,
    UNSURE,
)
from failwell.adapters.words.cells import Cell, cells_of
from failwell.adapters.words.grammar import concepts_of_code
from failwell.adapters.words.reader import Statement, may_be_used_up, statement_of, words_of
from failwell.errors.facts import DENYING, NotBefore
from failwell.errors.kind_registry import kind as registered_kind
from failwell.errors.lazy_regex import lazy_regex

_LONGEST = 2_400
_SHORTEST_LONG_WAIT = 6 * 3600
"""A window that opens again after this many seconds is not a short one, whatever it is called."""

PHASES: dict[str, Rule] = {
    **{
        phase: Rule(f"phase.{phase}", "provider.connection", "phase", phase)
        for phase in ("pool", "dns", "connect", "proxy")
    },
    "tls": Rule("phase.tls", "provider.tls_failed", "phase", "tls"),
    "handles": Rule("phase.handles", "resource.file_handles", "phase", "handles"),
    **{
        phase: Rule(f"phase.{phase}", "provider.outcome_unknown", "phase", phase)
        for phase in ("write", "read", "closed")
    },
}
_BUG = Rule("bug_in_a_hook", "internal.bug", "cause")
_BROKEN_STREAM = Rule("stream_broke_off", "provider.stream_interrupted", "phase", "stream")
_MISSING_MODEL = Rule("status_404", MODEL, "status", "HTTP 404")
_MISSING_ROUTE = Rule("status_404.route", REJECTED, "status", "HTTP 404")
_MISSING_THING = Rule("status_404.thing", BAD, "status", "HTTP 404")
_MISSING_CONTAINER = Rule("status_404.container", REJECTED, "status", "HTTP 404")
"""A collection, a table or a bucket: somebody has to create it. What is looked for in one is the caller's."""
_GO_HAS_NO_ROUTE = "404 page not found"
"""What `http.NotFound` of Go writes, and so every server that is built on it."""
_NOT_AN_API = Rule("page_instead_of_answer", REJECTED, "body")
_UNUSABLE = Rule("unusable_answer", "provider.output_invalid", "status")
_ADVICE = Rule("unavailable.advice", "provider.unavailable", "message", "asks for a repeat")
_NAMED_WAIT = Rule("rate_limited.advice", RATE, "message", "names a wait")
_ASKS_FOR_REPEAT = lazy_regex(
    r"\bplease (?:retry|(?:refresh and )?try again)\b(?! with| using| after)|\b(?:retry|try again) (?:later|in a (?:few|moment|minute|while))\b",
    re.IGNORECASE,
)
"""What services add where they know of nothing that the caller could change. It counts where nothing else is known."""
_UNKNOWN = Rule("unrecognised", "provider.unknown", "default")
_BY_STATUS = {
    status: Rule(f"status_{status}", kind, "status", f"HTTP {status}")
    for status, kind in KINDS_OF_STATUSES.items()
}
_TRANSPORT_KINDS = ("provider.connection", "provider.outcome_unknown", "provider.tls_failed")
_UPSTREAM = lazy_regex(r"<(4\d\d)>|(?i:\b(?:status|http|code))\W{1,3}(4\d\d)\b")
_REPRINTED = lazy_regex(r"[\"'](?:(?:status_)?code|status)\\{0,3}[\"']: ?(4\d\d)\b")
_BY_PROXY = lazy_regex(r"\b(4\d\d) [A-Z][a-z]|\bTunnel connection failed: (4\d\d)\b")
"""How a proxy refuses a tunnel: `407 Proxy Authentication Required`."""
_NO_CREDENTIALS = "etting metadata from plugin failed"
"""What gRPC says, as UNAVAILABLE, where this side found no credentials to send."""
_REQUESTED = lazy_regex(
    r"\blimit:? (?P<limit>\d[\d,]{0,14})\b[^\n]{0,60}?\brequested:? ~?(?P<asked>\d[\d,]{0,14})\b"
)
"""How services say what a request asks for beside the whole window: `Limit 7000, Used 0, Requested ~12903`."""
_COUNTED = frozenset({"rate", "request", "concurrency", "connection", "overloaded", "tokens"})
"""What a limit counts that opens again by itself."""
_PER_WINDOW = lazy_regex(r"\d[\d,]{0,9} [a-z -]{0,40}?(?:per|/|each|every|a) ?-?(?:second|minute|hour)s?\b")
"""What so many of may come in a window: `2 calls per second`."""
_ABOVE_LIMIT = frozenset({"exceeded", "reached", "too_many"})
_SET_UP = frozenset({"extension.dependency_missing", "validation.config_invalid"})
_LENGTHS = frozenset({"prompt", "tokens", "context"})
_COUNT_OF_TOKENS = lazy_regex(r"_(?:total_tokens|seq_?len)\b")
# The look behind comes after the word, so that the word is searched for first.
_ZERO_LIMIT = lazy_regex(r"limit(?<!remaining.limit)(?:\W{1,3}|\s+(?:is|of)\s+)0\b")


def rules_for(facts: Facts, wait: NotBefore | None = None) -> list[Rule]:
    """The rule that classifies these facts, followed by those that would classify them without it.

    `wait` is what the reply says about when to come back.
    """
    if facts.cause_bug is not None:
        return [_BUG]
    if facts.codes and (registered := registered_rule(facts.codes)) is not None:
        return [registered]
    own, phase = facts.status, facts.phase
    codes = said_by_codes(scoped(facts.provider, facts.codes))
    if own is None and phase is not None and codes.rule is None:
        # No reply, so the class is the client's own, and it calls a connection that never came about
        # a time-out just as well.
        return [_transport(phase, in_stream=facts.in_stream, message=facts.message)]
    names = said_by_class(facts.names)
    status = _status(own, codes.status, names.status)
    if status in (424, 502) or (own == 500 and "code" in facts.message):
        status = _reprinted(status, facts.message[:_LONGEST]) or status
    base = _by_status(
        facts, status, "" if status == own else codes.saw if codes.status == status else names.saw
    )
    if base is not None and status != own:
        base = Rule(base.name, base.kind, "code", codes.saw if codes.status == status else names.saw)
    by_name = names.rule
    if by_name is not None and _is_refuted(by_name, names.status, facts):
        by_name = None
    decided = (codes.rule and _by_machine(codes.rule, status)) or (by_name and _by_machine(by_name, status))
    if decided is not None and decided.is_soft and _names_short_window(facts):
        decided = None
    if facts.message:
        # Clients name every error that the server reports a `ServerError`: such a class is no fault of the server yet.
        is_any = status == 500 and own is None and codes.status is None
        decided = _with_words(decided, facts, None if is_any else status)
    if decided is None and base is None:
        decided = _otherwise(facts, own, wait)
    if wait is not None and wait.after >= _SHORTEST_LONG_WAIT and (decided or base or _UNKNOWN).kind == RATE:
        decided = Rule("quota_exhausted.wait", QUOTA, "header", "a wait of hours")
    if decided is None:
        return [base or _UNKNOWN]
    return [decided] if base is None or base.kind == decided.kind else [decided, base]


def _is_refuted(rule: Rule, status: int | None, facts: Facts) -> bool:
    """Whether a class only repeats a status beside one that was sent, or speaks of a connection although a reply came."""
    has_reply = facts.status is not None and facts.status >= 400
    if has_reply and status is not None:
        return True
    return rule.kind in _TRANSPORT_KINDS and (has_reply or type(facts.body) is Objects)


def _reprinted(status: int | None, text: str) -> int | None:
    """The status of another service that a reply repeats: one behind a gateway or a tool, or that of a program which answers 500 to everything."""
    match = _REPRINTED.search(text) if status == 500 else _UPSTREAM.search(text)
    return None if match is None else int(next(filter(None, match.groups())))


def _with_words(decided: Rule | None, facts: Facts, status: int | None) -> Rule | None:
    """What the codes decided, where the words say no more."""
    if status == 503 and _NO_CREDENTIALS in facts.message:
        return Rule("auth.credentials_plugin", AUTH, "message", "no metadata from the credentials plugin")
    if (decided is None or decided.kind == CAPABILITY) and _is_generic(facts, status):
        return _by_words(facts, status) or decided
    if decided is not None and decided.kind == THROWN and status in (None, 424):
        # A failure of a model may be a refusal, or a model that took too long.
        words = _by_words(facts, None)
        return words if words is not None and words.kind in (REFUSED, UNSURE) else decided
    if decided is not None and decided.kind in (PERM, REJECTED) and status in (None, 400, 403, 409):
        # A denial, or a feature that is switched off, is what some services call an empty account.
        words = _by_words(facts, status)
        return words if words is not None and words.kind == QUOTA else decided
    return decided


def status_of(facts: Facts) -> int | None:
    """The status that counts: the reply's, or the one that a code or the class stands for."""
    return _status(
        facts.status,
        said_by_codes(scoped(facts.provider, facts.codes)).status,
        said_by_class(facts.names).status,
    )


def _status(own: int | None, by_code: int | None, by_name: int | None) -> int | None:
    if own is None or own < 400:
        return by_code or (by_name if own is None else None) or own
    if own in (400, 403) and by_code is None and by_name == 429:
        # Services that answer 400 to everything, or 403 to who asks too often, name the rate limit in the class alone.
        return by_name
    return by_code if own in GIVING_WAY and by_code in GIVING_WAY[own] else own


def _is_generic(facts: Facts, status: int | None) -> bool:
    if status is None or status < 400 or status in GENERIC:
        return True
    # A status word of gRPC stands for what the transport saw, too: a socket that was closed.
    # The class of a client calls a connection that never came about a time-out, too.
    return (status == 500 and facts.provider in SERVERS_OF_ONE_STATUS) or (
        status in (408, 503) and facts.status is None
    )


def _by_machine(rule: Rule, status: int | None) -> Rule | None:
    """The rule of a code, unless the status says otherwise."""
    if status is None or status < 400:
        return rule
    if status in DENYING and registered_kind(rule.kind).category.retryable:
        # A machine code may say that a 403 is a rate limit, as some vendors document; it is not repeated.
        return rule if status == 403 and rule.kind == RATE else None
    if rule.is_documented:
        return rule if status != 413 and (status != 401 or rule.kind not in (LONG, REFUSED)) else None
    if status == 401:
        return rule if rule.kind in (QUOTA, MODEL, PERM) else None
    if status == 429:
        return rule if rule.kind in GENERIC[429] else None
    if rule.kind == BAD and status >= 500:
        # The server says that the fault is its own, and the words of a code do not blame the caller.
        return None
    return rule if status not in (402, 413) else None


def _by_words(facts: Facts, status: int | None) -> Rule | None:
    """The rule of the words, where the status leaves something to say."""
    if (status == 404 and _is_page(facts)) or (status == 401 and not _speaks_of_money(facts.message)):
        return None
    low = words_of(facts.message)
    if status == 429:
        if (never := _never_fits(low, facts)) is not None:
            return never
        if facts.status is not None and not may_be_used_up(low):
            return None
    said = statement_of(low)
    is_local = any(cell.kind.startswith("resource.") for cell in said.cells)
    if status is None and said.was_stopped and not is_local:
        return Rule("cancelled.words", "cancel.run", "message", "stopped by a person")
    for cell in _without_assertion(said.cells):
        kind = _in_window(cell, said, facts, status)
        if (kind == BAD and status in (400, 422)) or (kind == PERM and status == 403):
            # The words say what the status says.
            if "out_of_bounds" in cell.subjects and (length := _by_numbers(said, low, status)) is not None:
                return length
            return _by_parameter(facts) if kind == BAD else None
        if _may_mean(kind, cell, said, facts, status):
            return Rule(f"{kind.partition('.')[2]}.words", kind, "message", cell.name)
    return (
        _by_windows(said, low, status)
        or _by_numbers(said, low, status)
        or (_by_parameter(facts) if status in (400, 422) else None)
    )


def _by_windows(said: Statement, low: str, status: int | None) -> Rule | None:
    """The rule of a window, or of a limit of nothing, that no row speaks of."""
    if status is None and not said.concepts.isdisjoint(_ABOVE_LIMIT) and _PER_WINDOW.search(low) is not None:
        return Rule("rate_limited.words", RATE, "message", "more than a short window allows")
    if status == 429 and said.names_long_window:
        return Rule("quota_exhausted.words", QUOTA, "message", "a long window")
    if status in (None, 400) and ("limit of 0 " in low or "limit is 0" in low):
        return Rule("quota_exhausted.words", QUOTA, "message", "a limit of zero")
    return None


def _without_assertion(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """The rows of a text, but not that an assertion failed where it says what was too long: nothing is wrong with the engine."""
    if len(cells) < 2 or cells[0].kind != _BUG.kind or all(cell.kind != LONG for cell in cells):
        return cells
    return cells[1:]


def _never_fits(low: str, facts: Facts) -> Rule | None:
    """The rule of a limit that no wait opens for this request."""
    if _is_larger_than_window(facts):
        return Rule("context_too_long.headers", LONG, "header", "the whole window was free")
    if _ZERO_LIMIT.search(low) is not None:
        return Rule("quota_exhausted.words", QUOTA, "message", "a limit of zero")
    match = _REQUESTED.search(low) if "requested" in low else None
    if match is not None and _number(match["asked"]) > _number(match["limit"]):
        return Rule("context_too_long.words", LONG, "message", "more requested than the whole limit")
    return None


def _number(digits: str) -> int:
    return int(digits.replace(",", ""))


def _speaks_of_money(text: str) -> bool:
    """Whether it is worth reading what is said about a refused key: only an empty account is something else."""
    return "redit" in text or "alance" in text or "und" in text or "ayment" in text


def _in_window(cell: Cell, said: Statement, facts: Facts, status: int | None) -> str:
    """The kind of a row: the window that the text names tells a quota from a rate limit."""
    if cell.weak and (
        (cell.kind == LONG and ("rate" in said.concepts or said.names_short_window))
        or (cell.kind == REFUSED and {"rate", "exceeded"} <= said.concepts)
    ):
        return RATE
    if cell.kind == QUOTA and (
        (cell.soft and _names_short_window(facts))
        or (
            cell.weak and _counts_what_comes_in(said) and said.has(RATE, beside_a_status=(status or 0) >= 400)
        )
        or (cell.soft and "rate" in said.concepts)
    ):
        return RATE
    if cell.kind == RATE and status is None and said.names_long_window:
        return QUOTA
    if cell.kind == RATE and cell.without_status and status is None and not _counts_what_comes_in(said):
        # A limit that is not said to count what comes in: the number of things that an account may have.
        return QUOTA
    return cell.kind


def _counts_what_comes_in(said: Statement) -> bool:
    """Whether a text speaks of what a window counts: requests, tokens, a rate."""
    return said.names_short_window or not said.concepts.isdisjoint(_COUNTED)


def _by_numbers(said: Statement, low: str, status: int | None) -> Rule | None:
    """The rule of numbers that a text compares: lengths, or the sizes of two shapes."""
    is_length = said.compares_numbers and (
        said.concepts & _LENGTHS or _COUNT_OF_TOKENS.search(low) is not None
    )
    if is_length and status in (None, 400, 422):
        return Rule("context_too_long.words", LONG, "message", "a length above another")
    if said.compares_shapes and status is None:
        return Rule("bad_request.words", BAD, "message", "two sizes of a shape")
    return None


def _may_mean(kind: str, cell: Cell, said: Statement, facts: Facts, status: int | None) -> bool:
    """Whether the words of a row may turn the status into `kind`."""
    if status == 503:
        return kind in _TRANSPORT_KINDS
    if status == 408:
        return kind == CONNECTION
    if status == 401:
        return kind == QUOTA and not cell.weak and not cell.soft and not said.has(AUTH)
    if status == 429:
        if cell.elsewhere and facts.status is not None:
            return False
        is_machine = facts.status is None and kind.startswith("resource.")
        return kind == QUOTA or (kind == LONG and cell.strong) or is_machine
    if cell.without_status and (facts.status or 0) >= 400:
        return False
    if status == 403 and cell.weak:
        # A plan that does not include it is a missing permission; an empty account is said in other words.
        return False
    is_local = facts.provider in SERVERS_OF_ONE_STATUS
    allowed = None if status is None or (status == 500 and is_local) else GENERIC.get(status)
    if allowed is not None and status == 404 and facts.status is None and facts.body is None:
        # A name alone says it, and a name that ends in `NotFound` is also given to what is not installed.
        allowed = allowed | _SET_UP
    if allowed is not None and kind not in allowed and not (cell.strong and status == 400):
        return False
    # A reply tells nothing about this machine.
    is_foreign = (facts.body is not None or (status or 0) >= 400) and not is_local
    return not (is_foreign and kind.startswith(("resource.", "internal.")))


def _is_larger_than_window(facts: Facts) -> bool:
    """Whether a service that forbids a repeat shows that nothing of the window was used: the request alone is too big."""
    headers = facts.headers
    if headers.get("x-should-retry", "").lower() != "false":
        return False
    pairs = [
        (name, value, headers.get(name.removesuffix("remaining") + "limit"))
        for name, value in headers.items()
        if name.endswith("-remaining") and "ratelimit" in name
    ]
    is_free = any("tokens" in name and remaining == limit for name, remaining, limit in pairs)
    return is_free and all(remaining != "0" for _, remaining, _ in pairs)


def _names_short_window(facts: Facts) -> bool:
    """Whether the sentence, or an id beside it, names a window that opens again soon."""
    said = statement_of(words_of(facts.message))
    if said.names_long_window:
        return False
    return said.names_short_window or any(
        statement_of(name).names_short_window for name in ids_of(facts.body)
    )


def _by_parameter(facts: Facts) -> Rule | None:
    """The model, where the reply names it as the parameter whose value is not accepted."""
    if "invalid_value" in facts.codes and type(facts.body) is not str:
        for holder in objects_of(facts.body):
            if holder.get("param") == "model":
                return Rule("model_not_found.parameter", MODEL, "code", "model")
    return None


_ADDRESS = lazy_regex(r"\b(?:url|uri|path): ?\S+")
"""Where a client prints the address that it called, which is no word about what is missing."""
_NAMED_THING = lazy_regex(
    r"(?!(?:model|deployment|page|url|uri|route|path|endpoint|method|api|http|resource)?_?not_?found)[a-z0-9_.]*?[a-z][_.]?not_?found"
)
"""A code or a class that names what is missing: `channel_not_found`, `ColumnNotFoundError`."""
_NOTHING_SAID = lazy_regex(
    r"\b(?:not|found|error|code|status|resource|page|the|requested|was|url|uri|path|route|endpoint|method|api|server|client"
    r"|for|http|no|detail|message|matched|with|those|values|unknown|invalid|this|on|is|response|backend|service|rules|non"
    r"|existent|notfound|get|post|put|delete|cannot|a|of|to|does|exist|does not|it|in|and|or|model)\b|\d+|https?://\S+|/\S*|\W+|_"
)


def _by_status(facts: Facts, status: int | None, code: str) -> Rule | None:
    if status is None:
        return None
    if status == 404:
        if _NAMED_THING.match(code) is not None:
            return (
                _MISSING_CONTAINER if _names_container(cells_of(concepts_of_code(code))) else _MISSING_THING
            )
        return _missing(facts)
    if status < 400:
        return _NOT_AN_API if _is_page(facts) else None
    return _BY_STATUS.get(status)


def _missing(facts: Facts) -> Rule:
    """What a 404 misses: the model, something else that was named, or the address itself."""
    if _is_page(facts) or _GO_HAS_NO_ROUTE in facts.message[:400]:
        return _MISSING_ROUTE
    # The client's own text has the headers around a body that is plain text.
    low = (facts.body if type(facts.body) is str and facts.body else facts.message)[:400].lower()
    low = _ADDRESS.sub(" ", low)
    said = statement_of(low)
    concepts = said.concepts
    if concepts & {"model", "model_name"} or (facts.provider and not low.strip()):
        return _MISSING_MODEL
    if _names_container(said.cells):
        return _MISSING_CONTAINER
    names_something = "missing" in concepts or facts.body is not None
    if concepts & {"url", "endpoint", "no_route"} or not names_something:
        return _MISSING_ROUTE
    return _MISSING_THING if _NOTHING_SAID.sub("", low) else _MISSING_ROUTE


def _names_container(cells: tuple[Cell, ...]) -> bool:
    """Whether what is missing is said to be a place for things."""
    return any("container" in cell.subjects or "container" in cell.states for cell in cells)


def _is_page(facts: Facts) -> bool:
    kind = facts.headers.get("content-type", "")
    return (
        "text/html" in kind
        or "mimetype: text/html" in facts.message
        or facts.message.lstrip()[:9].lower() == "<!doctype"
    )


def _otherwise(facts: Facts, status: int | None, wait: NotBefore | None) -> Rule:
    """The rule for facts that nothing fits. Who says how long to wait counts what comes in."""
    if facts.phase is not None:
        return _transport(facts.phase, in_stream=facts.in_stream)
    if facts.in_stream:
        return _BROKEN_STREAM
    if status is None and wait is not None:
        return _NAMED_WAIT
    if status is None and _ASKS_FOR_REPEAT.search(facts.message[:_LONGEST]) is not None:
        return _ADVICE
    if status is None and facts.names and ABOUT_CONNECTION.search(facts.names[0]) is not None:
        return Rule("outcome_unknown.class", UNSURE, "class", facts.names[0][:80])
    # The status was good and the client complains all the same: it could not use the answer.
    return _UNUSABLE if status is not None and 200 <= status < 300 else _UNKNOWN


def _transport(phase: Phase, *, in_stream: bool, message: str = "") -> Rule:
    if phase == "proxy" and (refused := _BY_PROXY.search(message[:_LONGEST])) is not None:
        return _BY_STATUS[int(refused[1] or refused[2])]
    return _BROKEN_STREAM if in_stream and phase not in NOT_SENT else PHASES[phase]


def is_denied(facts: Facts) -> bool:
    """Whether the reply denies access: then nothing about it may be repeated."""
    own = facts.status
    if own is not None and own >= 400 and own not in GIVING_WAY:
        return own in DENYING
    return status_of(facts) in DENYING
