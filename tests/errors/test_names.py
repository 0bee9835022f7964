"""Names are API: every public fault class and every kind is on record, with what follows from it."""

import sys
from pathlib import Path

import pytest

from failwell.errors import faults
from failwell.errors.fault import Fault
from failwell.errors.faults import CapabilityError
from failwell.errors.kind_registry import find_kind
from failwell.errors.kinds_table import CATALOGUE
from tests.specimens import each

RECORD = Path(__file__).with_name("names.txt")
REGENERATE = "PYTHONPATH=src:. python -m tests.errors.test_names > tests/errors/names.txt"


def public_classes() -> list[type[Fault]]:
    """Every fault class that somebody outside may name."""
    rooms = (faults,)
    found = {
        made
        for room in rooms
        for name, made in vars(room).items()
        if isinstance(made, type) and issubclass(made, Fault) and not name.startswith("_")
    }
    return sorted(found, key=lambda made: (made.__module__, made.__name__))


def names() -> str:
    """One line for each class and one for each kind, in a stable order."""
    lines = [
        f"class {made.__module__}.{made.__name__} {made.declared_kind or '-'}" for made in public_classes()
    ]
    lines += [
        f"kind {kind.name} {kind.category} {kind.status} {kind.certainty} {kind.blame}"
        for kind in sorted(CATALOGUE, key=lambda kind: kind.name)
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.acceptance("pipelex 69")
def test_no_public_name_changes_unnoticed() -> None:
    recorded = RECORD.read_text(encoding="utf-8")

    gone = sorted(set(recorded.splitlines()) - set(names().splitlines()))
    new = sorted(set(names().splitlines()) - set(recorded.splitlines()))

    assert (gone, new) == ([], []), (
        f"kinds and classes are never renamed or reused; if this is an addition: {REGENERATE}"
    )
    assert recorded == names()


@pytest.mark.acceptance("pipelex 69")
@each("made", public_classes(), ids=lambda made: made.__name__)
def test_every_class_stands_for_a_known_kind_or_must_be_given_one(made: type[Fault]) -> None:
    if made.declared_kind is not None:
        assert find_kind(made.declared_kind) is not None
    elif made is not Fault:
        with pytest.raises(TypeError, match="needs `kind`"):
            made(message="without metadata")


@pytest.mark.acceptance("pipelex 69")
@pytest.mark.parametrize(
    "made", [c for c in public_classes() if issubclass(c, CapabilityError)], ids=lambda made: made.__name__
)
def test_a_capability_class_says_the_same_in_both_worlds(made: type[CapabilityError]) -> None:
    kind = find_kind(made.declared_kind or "")

    assert kind is not None
    assert kind.category.job == made.category
    assert kind.resubmit is made.default_retriable


if __name__ == "__main__":
    sys.stdout.write(names())
