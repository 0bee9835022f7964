"""What other services, tools, scripts, workers and stores say cannot pass for our word, and overflows nothing."""

import pytest

from tests.hostile.peers import ATTACKS, attack


@pytest.mark.slow
def test_no_hostile_document_passes_for_our_word_or_overflows_anything() -> None:
    made = attack(0, 1_200)

    assert made == {each.__name__: 200 for each in ATTACKS}
