"""What other services, tools, scripts, workers and stores say cannot pass for our word, and overflows nothing."""

import pytest

from tests.hostile.peers import ATTACKS, attack


@pytest.mark.parametrize("times", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_no_hostile_document_passes_for_our_word_or_overflows_anything(times: int) -> None:
    made = attack(0, times * len(ATTACKS))

    assert made == {each.__name__: times for each in ATTACKS}
