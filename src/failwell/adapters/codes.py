"""What a code or the name of a class says: a kind, or the status that it stands for."""

import builtins
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from failwell.adapters.classification import Rule
from failwell.adapters.rules import (
    BAD,
    CAPABILITY,
    CLASS_FAMILIES,
    CLASSES,
    CODE_FAMILIES,
    CODES,
    EXISTING,
    LATE_CODE_FAMILIES,
    MODEL,
    RATE,
    REFUSED_INPUT,
    STATUS_CODES,
    STATUS_WORDS,
    UNSURE,
)
from failwell.adapters.words.cells import cells_of
from failwell.adapters.words.grammar import LEXICON, concepts_of_code
from failwell.errors.lazy_regex import lazy_regex

_MOST_NAMES = 1024
_CODE = lazy_regex(r"[a-z0-9][a-z0-9_.\-]{1,79}")
_INVALID_REQUEST = ("invalidrequest", "badrequest", "invalidargument", "validation")
_SEPARATORS = str.maketrans("", "", "_-. ")
_COUNTED = lazy_regex(
    r"(?!.{0,60}?(?:size|data|payload|length|depth|time|duration|tokens|rows|column|field|nest|hour|minute|second|burst))[a-z]{3,60}limitexceeded(?:exception|fault|error)?"
)
"""How AWS and others name the quota for a sort of thing: `VcpuLimitExceeded`. How large one thing may be is no quota."""
_SUFFIX = lazy_regex(r"(?:error|exception|fault|warning|result)+$")
_PYTHONS = frozenset(
    name.lower()
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
) - {"timeouterror", "permissionerror", "memoryerror"}
"""Python's own classes are read by their table. Three of them say the same in any other place."""
_OF_A_NAME = ("", "name", "id", "exception")
"""What may stand in a code beside a model that is not valid. `InvalidTemplateDeployment` speaks of another thing."""


class Said(NamedTuple):
    """What codes or a class name say: a kind, or the status that they stand for."""

    rule: Rule | None = None
    status: int | None = None
    saw: str = ""
    """The code that stands for the status."""


_NOTHING = Said()


def said_by_codes(codes: tuple[str, ...]) -> Said:
    """What the codes of a reply say together, the most specific first."""
    return _said_by(codes, said_by_code) if codes else _NOTHING


@lru_cache(maxsize=_MOST_NAMES)
def _said_by(codes: tuple[str, ...], read: Callable[[str], Said]) -> Said:
    rule: Rule | None = None
    status: int | None = None
    saw = ""
    for code in codes:
        said = read(code)
        if rule is None or rule.kind == UNSURE:
            rule = said.rule or rule
        if said.status is not None and (
            status is None or (status in (400, 500) and said.status not in (400, 500))
        ):
            status, saw = said.status, said.saw
        if rule is not None and rule.kind != UNSURE:
            break
    return Said(rule, status, saw)


@lru_cache(maxsize=_MOST_NAMES)
def said_by_code(code: str) -> Said:
    """What one code says."""
    if len(code) == 3 and code.isdecimal():
        return Said(None, int(code), code) if "400" <= code < "600" else _NOTHING
    kind = CODES.get(code)
    if kind is not None:
        return Said(Rule(f"{kind.partition('.')[2]}.code", kind, "code", code, is_documented=True))
    if code in STATUS_CODES:
        return Said(None, STATUS_CODES[code], code)
    return _said_by_words_of(code, "code") if _CODE.fullmatch(code) else _NOTHING


@lru_cache(maxsize=_MOST_NAMES)
def _said_by_name(name: str) -> Said:
    kind = CLASSES.get(name) or CODES.get(name)
    if kind is not None:
        return Said(Rule(f"{kind.partition('.')[2]}.code", kind, "code", name, is_documented=True))
    return _NOTHING if name in _PYTHONS else _said_by_words_of(name, "class")


def _said_by_kind(kind: str, basis: str, saw: str) -> Said:
    """What a family of names says. Of a rate limit and of a bad request the words beside the name may say more."""
    status = {RATE: 429, BAD: 400}.get(kind)
    rule = None if status is not None else Rule(f"{kind.partition('.')[2]}.{basis}", kind, basis, saw)
    return Said(rule, status, saw)


@lru_cache(maxsize=_MOST_NAMES)
def _said_by_family(name: str) -> Said:
    """What the name of a class says by the way in which libraries name such classes."""
    bare = _SUFFIX.sub("", name.translate(_SEPARATORS))
    if not bare or name in _PYTHONS:
        return _NOTHING
    for kind, family in CLASS_FAMILIES:
        if family.search(bare) is not None:
            return _said_by_kind(kind, "class", name[:80])
    return _NOTHING if REFUSED_INPUT.search(bare) is None else Said(None, 400, name[:80])


def said_by_class(names: tuple[str, ...]) -> Said:
    """What the names of an exception's classes say, the nearest first."""
    return _said_by_classes(names) if names else _NOTHING


@lru_cache(maxsize=_MOST_NAMES)
def _said_by_classes(names: tuple[str, ...]) -> Said:
    said = _said_by(names, _said_by_name)
    if said.rule is not None:
        return said
    nearest = _said_by_family(names[0])
    if nearest.rule is not None:
        # `ServerSelectionTimeoutError` says more than that something took too long.
        return nearest
    if said.status is not None:
        return said
    return next((found for name in names if (found := _said_by_family(name)) is not _NOTHING), said)


_DECIDING = frozenset({
    "provider.quota_exhausted", "provider.context_too_long", "provider.model_not_found", "provider.content_refused",
    "provider.capability_missing", "provider.auth", "provider.permission", "resource.gpu_memory", "resource.system_memory",
    "provider.overloaded",
})  # fmt: skip


def _status_word(compact: str, basis: str) -> tuple[str, int | None]:
    """The first word that stands for a status, and the status."""
    for word, status in STATUS_WORDS.items():
        if word in compact:
            # The internals of a library are no server's failure: `InternalWorkflowTaskException`.
            is_inside = basis == "class" and word == "internal" and _SUFFIX.sub("", compact) != word
            return word, None if is_inside else status
    return "", None


def _said_by_words_of(code: str, basis: str) -> Said:
    """What the words of a code say: `insufficient_quota`, `DeploymentNotFound`."""
    compact = code.translate(_SEPARATORS)
    word, status = _status_word(compact, basis)
    if status == 401 and compact.removesuffix("error").removesuffix("exception") == word:
        # `unauthorized` is the name of the status, and not a word about what somebody may do.
        return Said(None, status, code[:80])
    bare = _SUFFIX.sub("", compact) if basis == "code" else ""
    for kind, family in CODE_FAMILIES if bare else ():
        if family.search(bare) is not None:
            return _said_by_kind(kind, "code", code[:80])
    if word == "alreadyexists" or EXISTING.search(bare) is not None:
        # Services put it under the status of a conflict, but what exists is there at the next try too.
        return Said(Rule(f"bad_request.{basis}", BAD, basis, code[:80]), status, code[:80])
    for cell in cells_of(concepts_of_code(code)):
        if (
            cell.kind == MODEL
            and "invalid" in cell.states
            and (word in _INVALID_REQUEST or LEXICON.rest_of(compact) not in _OF_A_NAME)
        ):
            continue
        if cell.kind in _DECIDING and not (basis == "class" and cell.kind == CAPABILITY):
            rule = Rule(
                f"{cell.kind.partition('.')[2]}.{basis}", cell.kind, basis, code[:80], is_soft=cell.soft
            )
            return Said(rule, None if word == "invalid" else status, code[:80])
        if cell.kind in (RATE, BAD) and not cell.without_status:
            return Said(None, status or (429 if cell.kind == RATE else 400), code[:80])
    if status is None and _COUNTED.fullmatch(compact):
        status = 402
    for kind, family in LATE_CODE_FAMILIES if bare and status is None else ():
        if family.search(bare) is not None:
            return _said_by_kind(kind, "code", code[:80])
    return Said(None, status, code[:80])


def is_documented(code: str) -> bool:
    """Whether a code is a row of the tables, and not read from its words."""
    return code in CODES or code in CLASSES or code in STATUS_CODES


def is_known_everywhere(code: str) -> bool:
    """Whether a code means the same for every provider: a row of the tables, or words that all have a meaning."""
    if is_documented(code):
        return True
    said = said_by_code(code)
    return (said.rule is not None or said.status is not None) and LEXICON.covers(code)
