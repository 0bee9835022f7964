"""Which errors of the corpus use which word of the lexicon.

    python -m tools.word_support

prints the rows for each alternative. The corpus lies beside the checkout and is not part of it.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from failwell.adapters.log_records.reading import saved_facts
from failwell.adapters.words.grammar import alternatives, forms

CORPUS = Path(
    os.environ.get("FAILWELL_CORPUS", "")
    or Path(__file__).resolve().parents[2] / "shared/corpus/provider-errors.dev.jsonl"
)
ROWS_NEEDED = 3


def rows_by_alternative() -> dict[str, set[str]] | None:
    """Alternative → ids of the rows whose text, codes or classes use it; `None` without the corpus."""
    if not CORPUS.is_file():
        return None
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()
    ]
    texts = [(row["id"], *_texts(row)) for row in rows]
    found: dict[str, set[str]] = {}
    for table, concept, word in alternatives():
        spellings = forms(word)
        pattern = re.compile("|".join(_pattern(spelling) for spelling in spellings))
        compact = [spelling.replace(" ", "") for spelling in spellings if len(spelling) > 3]
        found[f"{table}.{concept}.{word}"] = {
            row_id
            for row_id, low, codes in texts
            if pattern.search(low) or any(piece in codes for piece in compact)
        }
    return found


def _texts(row: dict[str, Any]) -> tuple[str, str]:
    facts = saved_facts(row)
    codes = " ".join((*facts.codes, *facts.names))
    return facts.message.lower(), re.sub("[-_.]", "", codes)


def _pattern(spelling: str) -> str:
    escaped = re.escape(spelling)
    if not spelling.isascii() or spelling == "n't":
        return escaped
    return f"(?<![a-z]){escaped.replace(chr(92) + ' ', '[ -]')}(?![a-z])"


if __name__ == "__main__":
    for name, ids in (rows_by_alternative() or {}).items():
        sys.stdout.write(" ".join((str(len(ids)), name, *sorted(ids)[:ROWS_NEEDED])) + "\n")
