"""The published assertions of the job world's error taxonomy hold here as they are written."""

from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "seeds"
DOCUMENTS = sorted(FOLDER.glob("000*.txt"))
FIRST_LINE = "# MRO discipline"
PRINTED = "✓"


def program_in(document: str) -> str:
    """The program at the end of the document, without what it printed."""
    lines = document.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(FIRST_LINE))
    return "\n".join(line for line in lines[start:] if not line.startswith(PRINTED))


@pytest.mark.skipif(not DOCUMENTS, reason="the source document is not beside this checkout")
def test_every_assertion_of_the_source_document_holds(capsys: pytest.CaptureFixture[str]) -> None:
    [document] = DOCUMENTS
    program = program_in(document.read_text(encoding="utf-8"))
    room: dict[str, Any] = {}
    exec("from failwell.capability import *", room)

    exec(compile(program, document.name, "exec"), room)

    assert program.count("\nassert ") > 60
    assert capsys.readouterr().out.count(PRINTED) == program.count("print(")
