"""The tour leads through files and functions that exist."""

import builtins
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "docs/tour.md").read_text("utf-8")
SOURCE = ROOT / "src/failwell"
STEPS = [line for line in TOUR.splitlines() if line.startswith("| `")]
FILE = re.compile(r"`([a-z_0-9/]+\.py)`")
CALL = re.compile(r"`(?:\w+\.)?(\w+)\(\)`")
CLASS = re.compile(r"`([A-Z]\w+[a-z]\w*)(?:\.\w+\(\))?`")


def test_every_file_that_the_tour_names_exists() -> None:
    named = FILE.findall(TOUR)

    assert len(named) > 60
    assert [path for path in named if not (SOURCE / path).is_file()] == []


@pytest.mark.parametrize("step", STEPS, ids=lambda step: FILE.findall(step)[0])
def test_what_a_step_names_is_defined_in_its_file(step: str) -> None:
    files = "\n".join((SOURCE / path).read_text("utf-8") for path in FILE.findall(step))
    classes = [name for name in CLASS.findall(step) if not hasattr(builtins, name)]

    functions = [name for name in CALL.findall(step) if not re.search(rf"\bdef {name}\(", files)]

    assert functions == []
    assert [name for name in classes if not re.search(rf"^class {name}\b", files, re.MULTILINE)] == []


def test_the_tour_is_short_enough_to_be_read() -> None:
    assert len(TOUR.splitlines()) <= 250
    assert TOUR.count("\n## ") == 6


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/index.md"])
def test_a_newcomer_finds_the_tour(page: str) -> None:
    assert "tour.md)" in (ROOT / page).read_text("utf-8")
