r"""Counts the weights of the naive Bayes classifier from the examples that were written for it.

    python -m tools.word_weights [--check]

writes `adapters/words/word_weights.tsv`. Each line of a file in `tools/word_examples` is an example: the kind, the class of the
exception (or nothing) and the text, separated by tabs, with `\n` for the end of a line. The examples are written by hand, in words of our own;
none is taken from the corpus or from anybody's log. `--check` changes nothing and fails if the table is not what the examples give.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from failwell.adapters.guesses import text_of
from failwell.adapters.saved import read_facts, saved_facts
from failwell.adapters.words.bayes import WEIGHTS, features_of, said_by_rules, weigh
from failwell.fault.registry import KINDS

EXAMPLES = Path(__file__).with_name("word_examples")
LEAST = 3
"""In how many examples a word must occur to be counted."""


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


def features(name: str, text: str) -> set[str]:
    """What an example is counted by: its words, and what the rules make of it."""
    row = {"exception_class": name or None, "message": text}
    facts = saved_facts(row)
    reading = read_facts(row, facts)
    said = said_by_rules(reading.kind, reading.evidence[0].basis)
    return features_of(text_of(row, facts), name.rpartition(".")[2]) | said


def table() -> str:
    """The weights that the examples give."""
    return weigh(((kind, features(name, text)) for kind, name, text in examples()), least=LEAST)


def main() -> None:
    """Write the table, or compare it."""
    new = table()
    if "--check" not in sys.argv:
        WEIGHTS.write_text(new, encoding="utf-8")
    elif new != WEIGHTS.read_text(encoding="utf-8"):
        sys.exit("the weights are not what the examples give: run `python -m tools.word_weights`")


if __name__ == "__main__":
    main()
