"""A naive Bayes classifier for texts that no rule reads.

The concepts of `lexicon.py` read what is said often and the same way. What is left is said in many ways, each of them
seldom. Here every word, pair of words and concept of a text adds its weight to the kinds in whose examples it occurs. The weights
are counted by `python -m tools.word_weights` over examples that were written for it, in `tools/word_examples`.
"""

import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from failwell.adapters.words.cells import cells_of
from failwell.adapters.words.grammar import LEXICON, concepts_of_code

WEIGHTS = Path(__file__).with_name("word_weights.tsv")
CLEAR_LEAD = 6.0
"""How far a guess must lead to count beside other words: there it is right in nine of ten cases."""
UNIT = 100
"""Weights are whole hundredths of a natural logarithm."""
_LONGEST, _HEAD = 2_400, 800
"""Characters that are read of a text; of a longer one the first ones and the last ones, where most runtimes say what failed."""
_LONGEST_NAME = 200
_MOST_WORDS = 300
_MOST_CELLS = 6
_LONGEST_WORD = 20
_MOST_TEXTS = 1024
_WORD = re.compile(r"[a-z]+(?:'t)?|[一-鿿぀-ヿ가-힯]+|[^\W\d_]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NUMBERS = str.maketrans("123456789", "000000000")
_WITHOUT_SPACES = "⿿"
"""The scripts behind this character are written without spaces, and read by pairs of characters."""


class Guess(NamedTuple):
    """The kind that a text is most likely about."""

    kind: str
    lead: float
    """How far it leads before the best kind of another category, in natural logarithms."""


class _Weights(NamedTuple):
    kinds: tuple[str, ...]
    bases: tuple[float, ...]
    """What each feature of a text adds to each kind, whether it occurs there or not."""
    features: dict[str, str]
    """Feature → the kinds in whose examples it occurs, with weights: `3:120 7:45`."""


_guesses: dict[int, tuple[Guess | None]] = {}


def features_of(text: str, class_name: str) -> set[str]:
    """What a text is counted by: its words, pairs of words that follow each other, its concepts, the words of the class."""
    words = list(_words(text))[:_MOST_WORDS]
    found = {*words, *(f"{first} {second}" for first, second in pairwise(words))}
    for word in _words(class_name):
        found |= {word, f"class:{word}"}
    hits = LEXICON.read(text.lower())
    found.update(f"concept:{concept}" for _, _, concept in (*hits, *concepts_of_code(class_name.lower())))
    found.update(f"cell:{cell.kind}:{cell.name}" for cell in cells_of(hits)[:_MOST_CELLS])
    return found


def _words(text: str) -> Iterator[str]:
    for word in _WORD.findall(_HUMPS.sub(" ", text).lower()):
        if word[0] > _WITHOUT_SPACES:
            yield from (word[place : place + 2] for place in range(max(1, len(word) - 1)))
        else:
            yield word[:_LONGEST_WORD]


def said_by_rules(kind: str, basis: str) -> set[str]:
    """What the verdict of the rules adds to a text: how often each sort of verdict is right was counted, too."""
    from failwell.fault.registry import kind as registered_kind

    return {f"rules:{kind}", f"rules:{kind}:{basis}", f"rules:{registered_kind(kind).category}:{basis}"}


def guess(text: str, class_name: str = "", said: tuple[str, str] | None = None) -> Guess | None:
    """The kind that a text is most likely about; `None` without a known word.

    Args:
        text: The text.
        class_name: The name of the exception's class.
        said: The kind that the rules decided and the basis of that, which count twice.
    """
    class_name = class_name[-_LONGEST_NAME:]
    if len(text) > _LONGEST:
        text = f"{text[:_HEAD]}\n{text[_HEAD - _LONGEST :]}"
    # The same sentence comes again with other numbers in it. Only its hash is stored, never the text.
    key = hash((text.translate(_NUMBERS), class_name, said))
    if (known := _guesses.get(key)) is not None:
        return known[0]
    weights = _weights()
    verdict = [] if said is None else [*said_by_rules(*said)]
    features = (*features_of(text, class_name), *verdict, *verdict)
    rows = [row for feature in features if (row := weights.features.get(feature))]
    found = _best(weights, rows) if rows else None
    if len(_guesses) >= _MOST_TEXTS:
        _guesses.clear()
    _guesses[key] = (found,)
    return found


def _best(weights: _Weights, rows: Iterable[str]) -> Guess:
    from failwell.fault.registry import kind as registered_kind

    sums = [0] * len(weights.kinds)
    number = 0
    for row in rows:
        number += 1
        for entry in row.split(" "):
            place, _, weight = entry.partition(":")
            sums[int(place)] += int(weight)
    scores = [total / UNIT + number * base for total, base in zip(sums, weights.bases, strict=True)]
    best = max(range(len(scores)), key=scores.__getitem__)
    category = registered_kind(weights.kinds[best]).category
    others = [
        score
        for kind, score in zip(weights.kinds, scores, strict=True)
        if registered_kind(kind).category is not category
    ]
    return Guess(weights.kinds[best], scores[best] - max(others))


def forget() -> None:
    """Drop what is remembered: the rows or the words have changed."""
    _guesses.clear()
    _weights.cache_clear()


@cache
def _weights() -> _Weights:
    head, *lines = WEIGHTS.read_text(encoding="utf-8").splitlines()
    names = [entry.rpartition("=") for entry in head.split("\t")]
    features = dict(line.split("\t", 1) for line in lines)
    return _Weights(
        tuple(name for name, _, _ in names),
        tuple(int(base) / UNIT / UNIT for _, _, base in names),
        features,
    )


# ---------------------------------------------------------------- counting

_SMOOTHING = 0.3


def weigh(examples: Iterable[tuple[str, set[str]]], *, least: int) -> str:
    """The table of weights for examples, each with its kind: those of a complement naive Bayes classifier.

    A feature weighs for a kind what is missing without that kind's examples. Features of fewer than `least` examples are left out.
    """
    counts: dict[str, dict[str, int]] = {}
    for kind, features in examples:
        for feature in features:
            of_feature = counts.setdefault(feature, {})
            of_feature[kind] = of_feature.get(kind, 0) + 1
    counts = {feature: kinds for feature, kinds in counts.items() if sum(kinds.values()) >= least}
    totals: dict[str, int] = {}
    for kinds in counts.values():
        for kind, number in kinds.items():
            totals[kind] = totals.get(kind, 0) + number
    names = sorted(totals)
    total = sum(totals.values()) + _SMOOTHING * len(counts)
    bases = [math.log((total - totals[name]) / total) for name in names]
    head = "\t".join(f"{name}={round(base * UNIT * UNIT)}" for name, base in zip(names, bases, strict=True))
    return "\n".join([head, *_lines(counts, names), ""])


def _lines(counts: dict[str, dict[str, int]], names: list[str]) -> Iterator[str]:
    for feature in sorted(counts):
        kinds = counts[feature]
        everywhere = _SMOOTHING + sum(kinds.values())
        weights = {
            names.index(kind): round(UNIT * math.log(everywhere / (everywhere - number)))
            for kind, number in kinds.items()
        }
        entries = [f"{place}:{weight}" for place, weight in sorted(weights.items()) if weight]
        if entries:
            yield f"{feature}\t{' '.join(entries)}"
