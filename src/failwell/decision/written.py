"""A policy as it is written down: TOML, or the same as mappings. Every mistake is named with its key.

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

from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from typing import Any, TypeVar, cast

from failwell.decision.backoff import Backoff
from failwell.decision.budget import NO_BUDGET, Budget
from failwell.decision.match import Match
from failwell.decision.policy import SCHEDULES, Policy, Rule, Schedule
from failwell.fault.axes import ActionKind, Blame, Category, Certainty
from failwell.fault.classes import Validation
from failwell.fault.facts import UserAction
from failwell.fault.registry import is_kind

_Axis = TypeVar("_Axis", bound=StrEnum)
_CURVES = ("fixed", "linear", "exponential")


def read_toml(content: bytes) -> Policy:
    """The policy in a TOML document."""
    from tomllib import TOMLDecodeError, loads

    try:
        data = loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise _refusal(["the file is not UTF-8 text"]) from None
    except TOMLDecodeError as error:
        raise _refusal([f"the file is not TOML: {str(error)[:200]}"]) from None
    return read_policy(data)


def read_yaml(content: bytes) -> Policy:
    """The policy in a YAML document."""
    # By name: the core imports nothing but the standard library, and this is read only when asked for.
    yaml: Any = import_module("yaml")
    try:
        data = yaml.safe_load(content)
    except yaml.YAMLError as error:
        # Its message quotes the file; the place is all that is needed.
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
        raise _refusal([f"the file is not YAML{where}"]) from None
    if not isinstance(data, dict):
        raise _refusal(["the file must hold keys and values, such as `name: patient`"])
    return read_policy(cast("dict[str, Any]", data))


def read_policy(data: Mapping[str, Any]) -> Policy:
    """The policy that `data` writes down."""
    found = _Reader()
    top = found.table(data, "", ("name", "in_process_limit", "budget", "rule"))
    name = found.text(top, "", "name")
    limit = found.number(top, "", "in_process_limit")
    budget = found.table(top.get("budget", {}), "budget", ("attempts", "seconds", "cost"))
    spend = Budget(
        attempts=found.whole(budget, "budget", "attempts", least=0),
        seconds=found.number(budget, "budget", "seconds"),
        cost=found.whole(budget, "budget", "cost", least=0),
    )
    rules = [
        found.rule(one, f"rule[{place}]") for place, one in enumerate(found.sequence(top.get("rule"), "rule"))
    ]
    if found.mistakes:
        raise _refusal(found.mistakes)
    kept: dict[str, Any] = {} if limit is None else {"in_process_limit": limit}
    if name is not None:
        kept["name"] = name
    return Policy(rules=tuple(rules), budget=NO_BUDGET if spend == NO_BUDGET else spend, **kept)


def _refusal(mistakes: list[str]) -> Validation:
    return Validation(
        kind="validation.config_invalid",
        message=f"the policy cannot be used: {'; '.join(mistakes)}",
        fields_invalid=[mistake.split(" ", 1)[0].strip("`:") for mistake in mistakes],
        user_action=UserAction(ActionKind.FIX_CONFIGURATION, "Correct the named keys."),
    )


class _Reader:
    """Reads what can be read, and keeps a line for everything else."""

    def __init__(self) -> None:
        self.mistakes: list[str] = []

    def rule(self, value: object, key: str) -> Rule:
        """One rule; a wrong part of it reads as if it had been left out."""
        known = ("name", "match", "max_attempts", "backoff", "schedule", "retryable")
        table = self.table(value, key, known)
        retryable = table.get("retryable")
        if retryable is not None and not isinstance(retryable, bool):
            self.wrong(f"{key}.retryable", "must be true or false")
            retryable = None
        return Rule(
            match=self.match(table.get("match", {}), f"{key}.match"),
            schedule=self.schedule(table, key),
            retryable=retryable,
            name=self.text(table, key, "name") or "",
        )

    def schedule(self, table: Mapping[str, Any], key: str) -> Schedule | None:
        """How often and with which waits: a name, or numbers, or both."""
        named = self.text(table, key, "schedule")
        if named is not None and named not in SCHEDULES:
            self.wrong(f"{key}.schedule", f"must be one of {', '.join(sorted(SCHEDULES))}")
            named = None
        calls = self.whole(table, key, "max_attempts", least=1)
        backoff = self.backoff(table["backoff"], f"{key}.backoff") if "backoff" in table else None
        if named is None and calls is None and backoff is None:
            return None
        default = SCHEDULES[named or "server"]
        return Schedule(
            max_attempts=default.max_attempts if calls is None else calls,
            backoff=default.backoff if backoff is None else backoff,
        )

    def backoff(self, value: object, key: str) -> Backoff:
        """The waits of one rule."""
        table = self.table(value, key, ("curve", "first", "longest", "jitter"))
        curve = self.text(table, key, "curve")
        if curve is not None and curve not in _CURVES:
            self.wrong(f"{key}.curve", f"must be one of {', '.join(_CURVES)}")
            curve = None
        given: dict[str, Any] = {
            name: number
            for name, most in (("first", None), ("longest", None), ("jitter", 1.0))
            if (number := self.number(table, key, name, most=most)) is not None
        }
        return Backoff(**given) if curve is None else Backoff(curve=cast("Any", curve), **given)

    def match(self, value: object, key: str) -> Match:
        """Which failures one rule is about."""
        table = self.table(value, key, ("kind", "category", "certainty", "blame", "status"))
        kinds = [kind for kind in self.words(table, key, "kind") if self.kind(kind, f"{key}.kind")]
        return Match(
            kinds=frozenset(kind for kind in kinds if not kind.endswith(".")),
            prefixes=tuple(kind for kind in kinds if kind.endswith(".")),
            categories=self.axis(Category, table, key, "category"),
            certainties=self.axis(Certainty, table, key, "certainty"),
            blames=self.axis(Blame, table, key, "blame"),
            statuses=self.statuses(table, key),
        )

    def kind(self, kind: str, key: str) -> bool:
        """Whether `kind` is one, or the beginning of some up to a dot."""
        if is_kind(kind) or is_kind(f"{kind}x"):
            return True
        self.wrong(key, f"has no kind in `{kind}`: use lower-case words joined by dots")
        return False

    def axis(self, axis: type[_Axis], table: Mapping[str, Any], key: str, name: str) -> frozenset[_Axis]:
        """The members of a closed set that one key names."""
        found: set[_Axis] = set()
        for word in self.words(table, key, name):
            if word in axis.__members__.values():
                found.add(axis(word))
            else:
                self.wrong(f"{key}.{name}", f"must be one of {', '.join(sorted(axis))}")
        return frozenset(found)

    def statuses(self, table: Mapping[str, Any], key: str) -> frozenset[int]:
        """HTTP statuses."""
        found: set[int] = set()
        for status in _several(table.get("status")):
            if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
                found.add(status)
            else:
                self.wrong(f"{key}.status", "must be a status between 100 and 599, or a list of them")
        return frozenset(found)

    def words(self, table: Mapping[str, Any], key: str, name: str) -> list[str]:
        """One text, or several."""
        several = _several(table.get(name))
        if not all(isinstance(one, str) for one in several):
            self.wrong(f"{key}.{name}", "must be a text, or a list of texts")
        return [one for one in several if isinstance(one, str)]

    def table(self, value: object, key: str, known: tuple[str, ...]) -> Mapping[str, Any]:
        """A table with no other keys than those."""
        if not isinstance(value, Mapping):
            self.wrong(key or "policy", "must be a table")
            return {}
        held = cast("Mapping[str, Any]", value)
        for name in held:
            if name not in known:
                self.wrong(
                    f"{key}.{name}" if key else str(name), f"is not known here: use {', '.join(known)}"
                )
        return held

    def sequence(self, value: object, key: str) -> list[object]:
        """A list of tables; nothing if it is left out."""
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            self.wrong(key, "must be a list of tables: write `[[rule]]`")
            return []
        return [*cast("list[object]", value)]

    def text(self, table: Mapping[str, Any], key: str, name: str) -> str | None:
        """A text that is not empty."""
        return self._one(table, key, name, "must be a text", lambda value: isinstance(value, str) and value)

    def whole(self, table: Mapping[str, Any], key: str, name: str, *, least: int) -> int | None:
        """A whole number."""
        return self._one(
            table,
            key,
            name,
            f"must be a whole number, at least {least}",
            lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
        )

    def number(
        self, table: Mapping[str, Any], key: str, name: str, *, most: float | None = None
    ) -> float | None:
        """A number that is not negative."""
        limit = 1e9 if most is None else most
        return self._one(
            table,
            key,
            name,
            "must be a number that is not negative" if most is None else f"must lie between 0 and {most:g}",
            lambda value: (
                isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= limit
            ),
        )

    def _one(
        self, table: Mapping[str, Any], key: str, name: str, must: str, fits: Callable[[Any], Any]
    ) -> Any:
        value = table.get(name)
        if value is None or fits(value):
            return value
        self.wrong(f"{key}.{name}" if key else name, must)
        return None

    def wrong(self, key: str, must: str) -> None:
        """Keep one mistake."""
        line = f"`{key}` {must}"
        if line not in self.mistakes:
            self.mistakes.append(line)


def _several(value: object) -> list[Any]:
    if value is None:
        return []
    return [*cast("list[Any]", value)] if isinstance(value, list | tuple) else [value]
