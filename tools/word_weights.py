r"""Trains the weights of the classifier of texts from the examples that were written for it.

    python -m tools.word_weights [--check]

writes `adapters/words/word_weights.tsv`. Each line of a file in `tools/word_examples` is an example: the kind, the class of the
exception (or nothing) and the text, separated by tabs, with `\n` for the end of a line. The examples are written by hand, in words of our own;
none is taken from the corpus or from anybody's log. `--check` changes nothing and fails if the table was trained from something else.

The model is a multinomial logistic regression, trained by stochastic gradient descent in ten seconds. What is random about it has a fixed seed.
"""

import hashlib
import math
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from failwell.adapters.guesses import text_of
from failwell.adapters.saved.reading import read_facts, saved_facts
from failwell.adapters.words.text_model import UNIT, VERDICT, WEIGHTS, features_of, said_by_rules
from failwell.errors.kind_registry import KINDS

EXAMPLES = Path(__file__).with_name("word_examples")
_LEAST = 3
"""In how many examples a word must occur to count."""
_EPOCHS, _RATE, _STRENGTH = 8, 3.0, 5.0
"""How often each example is seen, the first size of a step, and the inverse of the regularisation."""
_BIAS_RATE = 0.1
_SMALLEST = 0.4
"""A smaller weight is left out: two of three are, and nothing changes."""


class Example(NamedTuple):
    """An example as the model sees it."""

    kind: str
    features: frozenset[str]
    verdict: frozenset[str]
    """What the rules make of it."""


def examples() -> Iterator[tuple[str, str, str]]:
    """Every example: its kind, the class, the text."""
    for path in sorted(EXAMPLES.glob("*.tsv")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            columns = line.split("\t")
            if len(columns) != 3 or columns[0] not in KINDS:
                sys.exit(
                    f"{path.name}:{number}: an example is a kind, a class and a text, separated by tabs: {line[:80]!r}"
                )
            kind, name, text = columns
            yield kind, name, text.replace("\\n", "\n")


def read_example(kind: str, name: str, text: str) -> Example:
    """What speaks in an example: its words, and what the rules make of it."""
    row = {"exception_class": name or None, "message": text}
    facts = saved_facts(row)
    reading = read_facts(row, facts)
    verdict = said_by_rules(reading.kind, reading.evidence[0].basis)
    return Example(
        kind, frozenset(features_of(text_of(row, facts), name.rpartition(".")[2])), frozenset(verdict)
    )


def train(read: Iterable[Example]) -> str:
    """The table of weights for examples: a digest of them, the kinds with their biases, and a line for each feature."""
    seen = list(read)
    counts: dict[str, int] = {}
    for example in seen:
        for feature in example.features | example.verdict:
            counts[feature] = counts.get(feature, 0) + 1
    names = sorted({example.kind for example in seen})
    rows = {feature: [0.0] * len(names) for feature, count in counts.items() if count >= _LEAST}
    biases = _descend(
        [(names.index(example.kind), _vector(example, rows)) for example in seen], rows, len(names)
    )
    head = "\t".join(f"{name}={round(bias * UNIT)}" for name, bias in zip(names, biases, strict=True))
    return "\n".join([digest(seen), head, *_lines(rows), ""])


_Vector = list[tuple[list[float], float]]


def _vector(example: Example, rows: dict[str, list[float]]) -> _Vector:
    """The rows of an example's features, each with its value; the squares of the values add up to 1."""
    values = [
        (rows[feature], VERDICT if feature in example.verdict else 1.0)
        for feature in sorted(example.features | example.verdict)
        if feature in rows
    ]
    length = math.sqrt(sum(value * value for _, value in values)) or 1.0
    return [(row, value / length) for row, value in values]


def _descend(vectors: list[tuple[int, _Vector]], rows: dict[str, list[float]], kinds: int) -> list[float]:
    """Change `rows` until they fit the vectors; returns the biases."""
    shuffle = random.Random(0).shuffle  # noqa: S311  (nobody must be unable to guess it)
    biases = [0.0] * kinds
    step, steps = 0, _EPOCHS * len(vectors)
    for _ in range(_EPOCHS):
        shuffle(vectors)
        for kind, vector in vectors:
            rate = _RATE * (1 - step / steps)
            step += 1
            scores = biases[:]
            for row, value in vector:
                scores = [score + value * weight for score, weight in zip(scores, row, strict=True)]
            highest = max(scores)
            likelihoods = [math.exp(score - highest) for score in scores]
            share = -rate / sum(likelihoods)
            gradient = [share * likelihood for likelihood in likelihoods]
            gradient[kind] += rate
            for row, value in vector:
                row[:] = [weight + value * change for weight, change in zip(row, gradient, strict=True)]
            biases = [bias + _BIAS_RATE * change for bias, change in zip(biases, gradient, strict=True)]
        decay = 1 - _RATE * (1 - step / steps) / _STRENGTH
        for row in rows.values():
            row[:] = [weight * decay for weight in row]
    return biases


def _lines(rows: dict[str, list[float]]) -> Iterator[str]:
    for feature, row in sorted(rows.items()):
        entries = [
            f"{place}:{round(weight * UNIT)}" for place, weight in enumerate(row) if abs(weight) >= _SMALLEST
        ]
        if entries:
            yield f"{feature}\t{' '.join(entries)}"


def digest(read: Iterable[Example]) -> str:
    """A hash of all that the weights depend on. Two machines may round the weights themselves differently."""
    settings = (_LEAST, _EPOCHS, _RATE, _STRENGTH, _BIAS_RATE, _SMALLEST, VERDICT, UNIT)
    lines = (
        "\t".join((example.kind, *sorted(example.features), *sorted(example.verdict))) for example in read
    )
    return hashlib.sha256("\n".join((repr(settings), *lines)).encode()).hexdigest()


def all_examples() -> list[Example]:
    """Every example, read."""
    return [read_example(kind, name, text) for kind, name, text in examples()]


def main() -> None:
    """Train and write the table, or compare its digest."""
    read = all_examples()
    if "--check" not in sys.argv:
        WEIGHTS.write_text(train(read), encoding="utf-8")
    elif not WEIGHTS.read_text(encoding="utf-8").startswith(f"{digest(read)}\n"):
        sys.exit(
            "the weights were not trained from these examples and rules: run `python -m tools.word_weights`"
        )


if __name__ == "__main__":
    main()
