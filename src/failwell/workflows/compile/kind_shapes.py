"""Kinds in files: their spelling, which may be declared, and the selectors of routes and retries."""

from enum import StrEnum
from typing import Any

from failwell.calls.policy import Match
from failwell.errors.axes import Blame, Category, Certainty
from failwell.errors.kind_registry import (
    KIND_PATTERN,
    LONGEST_KIND,
    OWNED_PREFIXES,
    find_kind,
    is_kind,
    is_owned,
    kinds,
    near_kinds,
)
from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import Converted, Key, ListOf, Shape
from failwell.files.value_types import INVALID, Choice, Invalid, Schema, Text, name_of, quotable, type_name
from failwell.workflows.compile.step_index import WorkflowMistakes

SPELLING = "a kind is lower-case words joined by dots, such as `external.git.fetch_failed`"
_ANY = Match()
_KIND: Schema = {"type": "string", "pattern": f"^(?:{KIND_PATTERN.pattern})$"}


class KindName:
    """The name of one kind in a workflow file."""

    def __init__(self, *, authored: bool = False) -> None:
        self.authored = authored
        """Whether kinds of the runtime are refused."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if type(value) is not str:
            log.add_at(item, path, f"{name_of(path)} must name kinds, not {type_name(value)}", hint=SPELLING)
        elif len(value) > LONGEST_KIND or KIND_PATTERN.fullmatch(value) is None:
            quoted = f"`{quotable(item)}`" if quotable(item) else "the value"
            hint = "write `on_error: true` to catch every kind" if value == "*" else SPELLING
            if value == "*" and self.authored:
                hint = "leave `raises` out if any kind may be raised"
            log.add_at(item, path, f"{quoted} in {name_of(path)} is not a kind", hint=hint)
        elif self.authored and value.startswith(OWNED_PREFIXES):
            prefix = next(prefix for prefix in OWNED_PREFIXES if value.startswith(prefix))
            log.add_at(
                item,
                path,
                f"the kind `{quotable(item)}` belongs to the runtime (`{prefix}…`)",
                hint="do not declare it; routes can use it",
            )
        else:
            return value
        return INVALID

    def schema(self) -> Schema:
        if not self.authored:
            return _KIND
        owned = "|".join(prefix.rstrip(".") for prefix in OWNED_PREFIXES)
        return {**_KIND, "not": {"pattern": f"^(?:{owned})\\."}}


RAISES = ListOf(
    KindName(authored=True), min_items=1, distinct=True, hint="leave it out if any kind may be raised"
)


def _axis(axis: type[StrEnum]) -> ListOf:
    word = Converted(Choice(*sorted(axis)), lambda value, _item, _at, _on: axis(value))
    return ListOf(word, min_items=1, single=True)


def _prefix(value: str, item: Item, path: Path, log: MistakeLog) -> Any:
    prefix = value if value.endswith(".") else f"{value}."
    if is_kind(f"{prefix}x"):
        return prefix
    log.add_at(
        item, path, "`prefix` must be the beginning of kinds, up to a dot", hint="such as `external.git.`"
    )
    return INVALID


def _selector(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> Any:
    if not values:
        if all(entry.value is None for entry in item.value.values()):
            log.add_at(item, path, "`on_error` must not be empty", hint="write `true` to catch every kind")
        return INVALID
    return Match(
        kinds=frozenset(values.get("kind", ())),
        prefixes=values.get("prefix", ()),
        categories=frozenset(values.get("category", ())),
        certainties=frozenset(values.get("certainty", ())),
        blames=frozenset(values.get("blame", ())),
    )


_BY_AXES = Shape(
    "`on_error`",
    {
        "kind": Key(ListOf(KindName(), min_items=1, single=True), "kinds, by equality"),
        "prefix": Key(
            ListOf(Converted(Text(), _prefix), min_items=1, single=True), "beginnings of kinds, up to a dot"
        ),
        "category": Key(_axis(Category), "what would make the work succeed"),
        "certainty": Key(_axis(Certainty), "whether the work may have happened"),
        "blame": Key(_axis(Blame), "how far the failure reaches"),
    },
    make=_selector,
)
_KINDS = ListOf(KindName(), min_items=1, distinct=True, hint="write `true` to catch every kind, or name one")


class OnError:
    """`on_error` of a route: `true`, a kind, a list of kinds, or a mapping of axes; read as a `Match`."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if value is True:
            return _ANY
        if value is False:
            hint = "omit the field for a success route; write `true` to catch every kind"
            log.add_at(item, path, "`on_error: false` has no meaning", hint=hint)
        elif value == "":
            log.add_at(item, path, "`on_error` must not be empty", hint="name a kind, or write `true`")
        elif type(value) is str:
            kind = _ONE.read(item, path, log)
            return INVALID if isinstance(kind, Invalid) else Match(kinds=frozenset({kind}))
        elif type(item.value) is list:
            names = _KINDS.read(item, path, log)
            return INVALID if isinstance(names, Invalid) else Match(kinds=frozenset(names))
        elif item.keys is not None:
            return _BY_AXES.read(item, path, log)
        else:
            hint = "name a kind or a list of kinds, or write `true` to catch every kind"
            log.add_at(item, path, f"`on_error` cannot be {type_name(value)}", hint=hint)
        return INVALID

    def schema(self) -> Schema:
        return {"anyOf": [{"const": True}, _ONE.schema(), _KINDS.schema(), _BY_AXES.schema()]}


_ONE = KindName()

REPEATABLE = frozenset(
    {Category.TRANSIENT, Category.RESOURCE, Category.AMBIGUOUS, Category.CAPACITY, Category.UNKNOWN}
)
"""Categories whose failures can be retried; the others need a change first.

Capacity is included because a failure may say when the quota is renewed.
"""
_WORDS = ("provider_error", "timeout")


class RetryOn:
    """One entry of `retry_on`: a kind, a category, or one of two words for groups of kinds."""

    def read(self, item: Item, path: Path, log: MistakeLog) -> Any:
        value = item.value
        if type(value) is not str:
            log.add_at(item, path, f"`retry_on` must name kinds or categories, not {type_name(value)}")
        elif value in _WORDS:
            return _group(value)
        elif value in Category.__members__.values():
            if Category(value) in REPEATABLE:
                return (value,)
            self._not_repeatable(item, path, log, value)
        elif not is_kind(value):
            quoted = f"`{quotable(item)}`" if quotable(item) else "the value"
            words = ", ".join(sorted(REPEATABLE))
            hint = f"name a kind, one of the categories {words}, or one of {', '.join(_WORDS)}"
            log.add_at(item, path, f"{quoted} in `retry_on` is neither a kind nor a category", hint=hint)
        else:
            registered = find_kind(value)
            declared = log.declared.get(value) if isinstance(log, WorkflowMistakes) else None
            category = declared if registered is None else registered.category
            if category is None and is_owned(value):
                self._unknown_kind(item, path, log)
            elif category is None or category in REPEATABLE:
                return (value,)
            else:
                self._not_repeatable(item, path, log, category)
        return INVALID

    def _unknown_kind(self, item: Item, path: Path, log: MistakeLog) -> None:
        quoted = f"`{quotable(item)}`" if quotable(item) else "the entry"
        near = (
            "" if item.from_env or log.is_full else ", ".join(f"`{name}`" for name in near_kinds(item.value))
        )
        hint = f"similar kinds are {near}" if near else "`failwell kinds` lists them"
        log.add_at(item, path, f"{quoted} in `retry_on` is not a kind of the runtime", hint=hint)

    def _not_repeatable(self, item: Item, path: Path, log: MistakeLog, category: str) -> None:
        quoted = f"`{quotable(item)}`" if quotable(item) else "the entry"
        log.add_at(
            item,
            path,
            f"{quoted} in `retry_on` is never retried: failures that are {category} need a change first",
            hint="remove it; to run the step again after a change, use an error route",
        )

    def schema(self) -> Schema:
        excluded = [kind.name for kind in kinds() if kind.owned and kind.category not in REPEATABLE]
        return {
            "anyOf": [{"enum": [*_WORDS, *sorted(REPEATABLE)]}, {**_KIND, "not": {"enum": excluded}}],
        }


def _group(word: str) -> tuple[str, ...]:
    """The kinds that a word of a step's `retry_on` covers: `provider_error` or `timeout`."""
    if word == "timeout":
        timeouts = (kind for kind in kinds() if kind.owned and kind.name.endswith("timeout"))
        return tuple(kind.name for kind in timeouts if kind.category in REPEATABLE)
    return tuple(
        kind.name
        for kind in kinds()
        if kind.name.startswith("provider.") and kind.category is Category.TRANSIENT
    )


def retry_on(groups: tuple[tuple[str, ...], ...], _item: Item, _at: Path, _on: MistakeLog) -> tuple[str, ...]:
    """The entries of `retry_on` as one list without repetitions."""
    return tuple(dict.fromkeys(name for names in groups for name in names))


RETRY_ON = Converted(
    ListOf(RetryOn(), min_items=1, hint="leave it out to repeat whatever can be repeated"), retry_on
)
