"""Which rows of words fit a text, without looking for each of their hundred words in it.

A text is taken apart at its spaces. Most of its pieces were met before in other messages and are known
to be part of none of the rows' words; only what the others could be part of is looked for. Rows are then
tried in the order of the table, as if there had been no such shortcut.
"""

import re
from collections.abc import Iterable
from functools import cache

from failwell.adapters.rules import WORDS, Rule

_MOST_NEW = 24
"""New pieces that are examined in one text. With more of them, searching for every word is cheaper."""
_MOST_PIECES = 4096
_LONGEST_PIECE = 24
_ID = re.compile(r"(?:[0-9][^0-9]*+){4}")
_plain: set[str] = set()
"""Pieces of texts that contain no part of a word. Pieces with many digits are not stored: they do not repeat."""


def matching(rules: Iterable[Rule], low: str) -> list[Rule]:
    """Those of `rules` whose words occur in a lower-cased text, and none of whose excluded words do."""
    fits: list[Rule] = []
    for rule in rules:
        if rule.pattern is not None:
            for word in rule.words:
                if word in low:
                    break
            else:
                continue
            if rule.pattern.search(low) is None:
                continue
        if rule.unless is None or rule.unless.search(low) is None:
            fits.append(rule)
    return fits


def first_match(low: str) -> Rule | None:
    """The first row of words that fits a lower-cased text."""
    parts, pattern = _parts()
    new = [piece for piece in low.split() if piece not in _plain]
    parts_found: set[str] = set()
    for piece in new[:_MOST_NEW]:
        if pattern.search(piece) is None:
            _remember(piece)
        else:
            parts_found.update([part for part in parts if part in piece])
    if len(new) > _MOST_NEW:
        parts_found.update(parts)
    if not parts_found:
        return None
    for place in sorted({place for part in parts_found for word, place in parts[part] if word in low}):
        if matching((WORDS[place],), low):
            return WORDS[place]
    return None


def remembered() -> frozenset[str]:
    """The pieces that are known to be plain, to check that no user text is stored."""
    return frozenset(_plain)


def _remember(piece: str) -> None:
    if len(piece) <= _LONGEST_PIECE and _ID.search(piece) is None:
        if len(_plain) >= _MOST_PIECES:
            _plain.clear()
        _plain.add(piece)


@cache
def _parts() -> tuple[dict[str, list[tuple[str, int]]], re.Pattern[str]]:
    """The longest piece of every word, with the words and rows that it is part of; and what finds any of them."""
    index: dict[str, list[tuple[str, int]]] = {}
    for place, rule in enumerate(WORDS):
        for word in rule.words:
            index.setdefault(max(word.split(" "), key=len), []).append((word, place))
    return index, re.compile(_tree(sorted(index)))


def _tree(words: list[str]) -> str:
    """A pattern for any of `words`, by their first letters, theirs by the second, and so on."""
    if "" in words:
        return ""
    firsts = dict.fromkeys(word[0] for word in words)
    branches = [
        re.escape(first) + _tree([word[1:] for word in words if word[0] == first]) for first in firsts
    ]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
