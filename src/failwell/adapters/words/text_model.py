"""A classifier for texts that no rule reads: logistic regression over their words.

The concepts of `lexicon.py` read what is said often and the same way. What is left is said in many ways, each of them
seldom. Here every word, pair of words and concept of a text, and what the rules make of it, speaks for some kinds and against others. The weights
are trained by `python -m tools.word_weights` from examples that were written for it, in `tools/word_examples`.
"""

import math
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from failwell.adapters.words.cells import cells_of
from failwell.adapters.words.grammar import LEXICON, concepts_of_code
from failwell.errors.axes import Category

WEIGHTS = Path(__file__).with_name("word_weights.tsv")
CLEAR_LEAD = 3.0
"""How far a guess must lead to count beside a status: there it is right in nine of ten cases."""
UNIT = 100
"""Weights are whole hundredths."""
VERDICT = 2.0
"""How much a feature of the verdict of the rules counts. A feature of the text counts 1."""
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
    """How much likelier its category is than the next one, as a natural logarithm."""


class _Weights(NamedTuple):
    kinds: tuple[str, ...]
    categories: tuple[Category, ...]
    """Of each kind."""
    biases: tuple[float, ...]
    features: dict[str, str]
    """Feature → what it adds to kinds by their places: `3:120 7:-45`."""


_guesses: dict[int, tuple[Guess | None]] = {}


def features_of(text: str, class_name: str) -> set[str]:
    """What speaks in a text: its words, pairs of words that follow each other, its concepts, the words of the class."""
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
    """What the verdict of the rules adds to a text: how often each sort of verdict is right was learned, too."""
    from failwell.errors.kind_registry import kind as registered_kind

    return {f"rules:{kind}", f"rules:{kind}:{basis}", f"rules:{registered_kind(kind).category}:{basis}"}


def guess(text: str, class_name: str = "", said: tuple[str, str] | None = None) -> Guess | None:
    """The kind that a text is most likely about; `None` without a known word.

    Args:
        text: The text.
        class_name: The name of the exception's class.
        said: The kind that the rules decided, and the basis of that.
    """
    class_name = class_name[-_LONGEST_NAME:]
    if len(text) > _LONGEST:
        text = f"{text[:_HEAD]}\n{text[_HEAD - _LONGEST :]}"
    # The same sentence comes again with other numbers in it. Only its hash is stored, never the text.
    key = hash((text.translate(_NUMBERS), class_name, said))
    if (known := _guesses.get(key)) is not None:
        return known[0]
    vector = dict.fromkeys(features_of(text, class_name), 1.0)
    if said is not None:
        vector |= dict.fromkeys(said_by_rules(*said), VERDICT)
    found = _best(_weights(), vector)
    if len(_guesses) >= _MOST_TEXTS:
        _guesses.clear()
    _guesses[key] = (found,)
    return found


def _best(weights: _Weights, vector: dict[str, float]) -> Guess | None:
    sums = [0.0] * len(weights.kinds)
    square = 0.0
    for feature, value in vector.items():
        row = weights.features.get(feature)
        if row is None:
            continue
        square += value * value
        for entry in row.split(" "):
            place, _, weight = entry.partition(":")
            sums[int(place)] += value * int(weight)
    if not square:
        return None
    scale = 1 / math.sqrt(square) / UNIT
    scores = [bias + total * scale for bias, total in zip(weights.biases, sums, strict=True)]
    highest = max(scores)
    likelihoods: dict[Category, float] = {}
    for category, score in zip(weights.categories, scores, strict=True):
        likelihoods[category] = likelihoods.get(category, 0.0) + math.exp(score - highest)
    best, second = sorted(likelihoods, key=likelihoods.__getitem__, reverse=True)[:2]
    kind = max(
        (score, kind)
        for score, kind, of in zip(scores, weights.kinds, weights.categories, strict=True)
        if of is best
    )[1]
    return Guess(kind, math.log(likelihoods[best] / likelihoods[second]))


def forget() -> None:
    """Drop what is remembered: the rows or the words have changed."""
    _guesses.clear()
    _weights.cache_clear()


@cache
def _weights() -> _Weights:
    from failwell.errors.kind_registry import kind as registered_kind

    _digest, head, *lines = WEIGHTS.read_text(encoding="utf-8").splitlines()
    names = [entry.rpartition("=") for entry in head.split("\t")]
    return _Weights(
        tuple(name for name, _, _ in names),
        tuple(registered_kind(name).category for name, _, _ in names),
        tuple(int(bias) / UNIT for _, _, bias in names),
        dict(line.split("\t", 1) for line in lines),
    )
