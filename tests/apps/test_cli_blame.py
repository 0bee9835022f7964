"""A defect of a capability is told as its author's, and one of this program as ours."""

from pathlib import Path

import pytest

from tests.apps.job_place import Place

BROKEN = """
def recursing():
    return recursing()

def raising():
    raise RuntimeError("wrong on purpose")

def stumbling():
    return None.text
"""


@pytest.mark.parametrize(
    ("name", "error"),
    [("recursing", "RecursionError"), ("raising", "RuntimeError"), ("stumbling", "AttributeError")],
)
def test_what_a_capability_was_not_written_for_is_its_authors_to_correct(
    tmp_path: Path, name: str, error: str
) -> None:
    place = Place(tmp_path)
    place.path("broken.py").write_text(BROKEN)
    place.path("broken.toml").write_text(f'name = "broken"\nobject = "broken:{name}"\n')
    place("capability", "add", str(place.path("broken.toml")))

    done = place("job", "submit", "broken", "--wait")

    first, *_, last = [line for line in done.err.splitlines() if line.startswith(("error:", "hint:"))]
    assert first == f"error: capability `broken` has a defect: it raised {error}"
    assert last.startswith("hint: see where with `failwell job show ")
    assert last.endswith(", and correct it, or tell whoever wrote `broken`")
