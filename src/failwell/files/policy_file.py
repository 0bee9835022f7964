"""Reads policies from TOML, YAML or mappings. Every mistake is reported with its place in the file.

name = "patient"
in_process_limit = 60

[budget]
attempts = 10
seconds = 120

[[rule]]
name = "rate limits"
match = { kind = "provider.rate_limited" }
max_attempts = 4
backoff = { curve = "exponential", first = 2, longest = 30, jitter = 0.2 }

[[rule]]
match = { category = ["content", "fatal"] }
retryable = false
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

from failwell.calls.backoff import Backoff
from failwell.calls.budget import NO_BUDGET, Budget
from failwell.calls.policy import SCHEDULES, Match, Policy, Rule, Schedule
from failwell.errors.axes import ActionKind, Blame, Category, Certainty
from failwell.errors.facts import UserAction
from failwell.errors.faults import Validation
from failwell.errors.kind_registry import KindError, check_kind, check_prefix, is_kind
from failwell.files.documents import read_document, read_values
from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import Converted, Key, ListOf, Shape
from failwell.files.value_types import INVALID, Choice, Flag, Number, Text

_LARGEST = 1e9
_LISTED = re.compile(r"(\.\w+)\[\d+\]$")
"""One of several words under a key: the key is the field."""


def read_policy(source: str | PathLike[str] | Mapping[str, Any]) -> Policy:
    """The policy in a TOML file, or in a YAML file if its name ends in `.yaml` or `.yml`; or in what such a file says.

    Args:
        source: The path of the file, or its data.

    Raises:
        OSError: the file cannot be read.
        Validation: it cannot be used; every mistake is named with its key, and with line and column in a file.
    """
    if isinstance(source, Mapping):
        document = read_values(source, POLICY)
    else:
        document = read_document(FilePath(source).read_bytes(), str(source), POLICY)
    if document.value is not None:
        return document.value
    raise Validation(
        kind="validation.config_invalid",
        message=f"the policy cannot be used: {'; '.join(document.lines)}",
        fields_invalid=list(dict.fromkeys(_LISTED.sub(r"\1", field) for field in document.fields)),
        user_action=UserAction(ActionKind.FIX_CONFIGURATION, "Correct the named keys."),
        details={"mistakes": document.lines},
    )


def _kind(value: str, item: Item, path: Path, log: MistakeLog) -> Any:
    """A kind, or the beginning of some up to a dot."""
    if not (is_kind(value) or is_kind(f"{value}x")):
        log.add_at(
            item,
            path,
            "`kind` must be a kind or the beginning of kinds",
            hint="lower-case words joined by dots",
        )
        return INVALID
    try:
        (check_prefix if value.endswith(".") else check_kind)(value)
    except KindError as error:
        message, _, hint = str(error).partition("; ")
        log.add_at(item, path, message, hint=hint)
        return INVALID
    return value


def _axis(axis: type[StrEnum]) -> ListOf:
    word = Converted(Choice(*sorted(axis)), lambda value, _item, _at, _on: axis(value))
    return ListOf(word, single=True)


def _match(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Match:
    kinds: tuple[str, ...] = values.get("kind", ())
    return Match(
        kinds=frozenset(kind for kind in kinds if not kind.endswith(".")),
        prefixes=tuple(kind for kind in kinds if kind.endswith(".")),
        categories=frozenset(values.get("category", ())),
        certainties=frozenset(values.get("certainty", ())),
        blames=frozenset(values.get("blame", ())),
        statuses=frozenset(values.get("status", ())),
    )


MATCH = Shape(
    "`match`",
    {
        "kind": Key(
            ListOf(Converted(Text(), _kind), single=True), "kinds; one that ends in a dot is a prefix"
        ),
        "category": Key(_axis(Category), "what would make the work succeed"),
        "certainty": Key(_axis(Certainty), "whether the work may have happened"),
        "blame": Key(_axis(Blame), "how far the failure reaches"),
        "status": Key(ListOf(Number(100, 599, integer=True), single=True), "HTTP statuses"),
    },
    make=_match,
)


def _backoff(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Backoff:
    return Backoff(**values)


BACKOFF = Shape(
    "`backoff`",
    {
        "curve": Key(Choice("fixed", "linear", "exponential"), "how the waits grow"),
        "first": Key(Number(0, _LARGEST), "seconds of the first wait"),
        "longest": Key(Number(0, _LARGEST), "seconds of the longest wait"),
        "jitter": Key(Number(0, 1), "each wait is spread by this share of itself"),
    },
    make=_backoff,
)


def _rule(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Rule:
    schedule = None
    if values.keys() & {"schedule", "max_attempts", "backoff"}:
        default = SCHEDULES[values.get("schedule", "server")]
        schedule = Schedule(
            max_attempts=values.get("max_attempts", default.max_attempts),
            backoff=values.get("backoff", default.backoff),
        )
    return Rule(
        match=values.get("match", Match()),
        schedule=schedule,
        retryable=values.get("retryable"),
        name=values.get("name", ""),
    )


RULE = Shape(
    "a rule",
    {
        "name": Key(Text(), "how the rule is called in explanations"),
        "match": Key(MATCH, "which failures it is for; all of them if left out"),
        "max_attempts": Key(Number(1, integer=True), "calls, the first one included"),
        "backoff": Key(BACKOFF, "the waits"),
        "schedule": Key(Choice(*sorted(SCHEDULES)), "a named schedule instead of numbers"),
        "retryable": Key(Flag(), "false never repeats; true repeats what its category would not"),
    },
    make=_rule,
)


def _budget(values: dict[str, Any], _item: Item, _path: Path, _log: MistakeLog) -> Any:
    budget = Budget(**values)
    return NO_BUDGET if budget == NO_BUDGET else budget


BUDGET = Shape(
    "`budget`",
    {
        "attempts": Key(Number(0, integer=True), "calls in all"),
        "seconds": Key(Number(0, _LARGEST), "seconds in all"),
        "usd": Key(Number(0, _LARGEST), "cost in all, in US dollars"),
        "unpriced": Key(Choice("refuse", "allow"), "whether a model without a known price may be called"),
    },
    make=_budget,
)


def _policy(values: dict[str, Any], _item: Item, _at: Path, _on: MistakeLog) -> Policy:
    scalars = {key: values[key] for key in ("name", "in_process_limit", "repeat_exhausted") if key in values}
    return Policy(rules=values.get("rule", ()), budget=values.get("budget", NO_BUDGET), **scalars)


POLICY = Shape(
    "a policy",
    {
        "name": Key(Text(), "how the policy is called"),
        "in_process_limit": Key(Number(0, _LARGEST), "seconds; a longer wait is parked and not slept"),
        "repeat_exhausted": Key(Flag(), "true repeats what a loop inside has repeated up to its limit"),
        "budget": Key(BUDGET, "what all attempts together may use up"),
        "rule": Key(
            ListOf(RULE, instead="write `[[rule]]`"), "the rules, in order; the first that fits decides"
        ),
    },
    make=_policy,
    about="A retry policy.",
)
