"""How right the rules are for errors that none of them was written for.

Each row is judged without the words, codes and class names that only it uses (leave one row out), and again without
those that only rows of its provider use (leave one provider out). What a specification or a vendor documents apart from
any row (statuses, SQLSTATE, gRPC, errno, signals) and the adapters that read a library's attributes stay.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from failwell.adapters import codes, rules
from failwell.adapters.log_records.log_record import classify
from failwell.adapters.log_records.reading import saved_facts
from failwell.adapters.words import grammar, reader
from tools.word_support import rows_by_alternative

Item = tuple[str, str]
"""A table and what is switched off in it: a word of the lexicon, a code, a class, a word for a status."""

_TABLES: dict[str, dict[str, Any]] = {
    "code": rules.CODES, "class": rules.CLASSES, "status": rules.STATUS_WORDS, "status code": rules.STATUS_CODES,
}  # fmt: skip
_LEXICON = grammar.LEXICON


def support_of(rows: list[dict[str, Any]]) -> dict[Item, set[str]]:
    """Each word, code and class name → ids of the rows that use it."""
    support: dict[Item, set[str]] = defaultdict(set)
    for name, ids in (rows_by_alternative() or {}).items():
        support["word", name] = ids
    for row in rows:
        facts = saved_facts(row)
        named = {*facts.codes, *facts.names}
        compact = [name.replace("_", "").replace("-", "").replace(".", "") for name in named]
        for table, entries in _TABLES.items():
            for entry in entries:
                if entry in named or (table == "status" and any(entry in name for name in compact)):
                    support[table, entry].add(row["id"])
    return support


def judge_without(rows: list[dict[str, Any]], items: Iterable[Item]) -> list[dict[str, Any]]:
    """The verdicts on `rows` with these words, codes and class names switched off."""
    off = set(items)
    removed = {table: {key: entries.pop(key) for key in list(entries) if (table, key) in off} for table, entries in _TABLES.items()}  # fmt: skip
    _install(grammar.Lexicon([row for row in grammar.alternatives() if ("word", ".".join(row)) not in off]))
    try:
        return [_verdict(row) for row in rows]
    finally:
        for table, entries in removed.items():
            _TABLES[table].update(entries)
        _install(_LEXICON)


def left_out(rows: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """The verdict on each row without what only rows of the same `key` (`id` or `provider`) use."""
    support = support_of(rows)
    group = {row["id"]: row[key] for row in rows}
    verdicts = {row["id"]: _verdict(row) for row in rows}
    items: dict[str, list[Item]] = defaultdict(list)
    for item, ids in support.items():
        groups = {group[row_id] for row_id in ids if row_id in group}
        if len(groups) == 1:
            items[groups.pop()].append(item)
    for name, off in items.items():
        some = [row for row in rows if row[key] == name]
        for row, verdict in zip(some, judge_without(some, off), strict=True):
            verdicts[row["id"]] = verdict
    return [verdicts[row["id"]] for row in rows]


def macro(rows: list[dict[str, Any]], verdicts: list[dict[str, Any]]) -> float:
    """The mean of the shares that are right in each category."""
    right: dict[str, list[bool]] = defaultdict(list)
    for row, verdict in zip(rows, verdicts, strict=True):
        right[row["category"]].append(row["category"] == verdict["category"])
    return sum(sum(hits) / len(hits) for hits in right.values()) / len(right)


def _install(lexicon: grammar.Lexicon) -> None:
    for module in (grammar, reader, codes):
        vars(module)["LEXICON"] = lexicon
    forget_words()


def forget_words() -> None:
    """Drop what is remembered of texts and codes: the words or the tables have changed."""
    reader.forget()
    grammar.concepts_of_code.cache_clear()
    codes.said_by_code.cache_clear()
    for name in ("_said_by", "_said_by_name"):
        vars(codes)[name].cache_clear()


def _verdict(row: dict[str, Any]) -> dict[str, Any]:
    report = classify(row)
    wait = report.not_before
    return {
        "category": report.category.value,
        "retryable": report.retryable,
        "model_not_found": report.kind == "provider.model_not_found",
        "retry_after_s": None if wait is None else round(wait.after, 3),
    }
