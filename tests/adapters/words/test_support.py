"""Every word stands on several errors or on a document, and there are fewer of them than there were."""

import tomllib
from pathlib import Path

import pytest

from failwell.adapters.words.grammar import alternatives
from tools.word_support import ROWS_NEEDED, rows_by_alternative

SUPPORT = Path(__file__).with_name("support.toml")
MOST_ALTERNATIVES = 188
"""There were 189 when each was written for a sentence."""


def support() -> dict[str, list[str]]:
    return tomllib.loads(SUPPORT.read_text(encoding="utf-8"))


def test_every_alternative_names_three_rows_or_a_document() -> None:
    known = support()
    names = [f"{table}.{concept}.{word}" for table, concept, word in alternatives()]

    assert len(names) == len(set(names)) <= MOST_ALTERNATIVES
    assert sorted(known) == sorted(names)
    weak = [name for name, sources in known.items() if not _is_enough(sources)]
    assert weak == []


def _is_enough(sources: list[str]) -> bool:
    rows = [source for source in sources if source.startswith("pe-")]
    return len(rows) >= ROWS_NEEDED or any(source.startswith("https://") for source in sources)


def test_the_rows_that_are_named_are_rows_that_use_the_word() -> None:
    found = rows_by_alternative()
    if found is None:
        pytest.skip("the corpus is not beside this checkout")
    for name, sources in support().items():
        rows = {source for source in sources if source.startswith("pe-")}

        assert rows <= found[name], name
