"""Registered secrets, encoded in every way, planted in every exception, leave by no way out."""

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.errors.redact import redact_text
from fuzz.driver import try_many
from fuzz.planted import ENCODINGS, SECRETS, check_case, pieces_of, register_all
from fuzz.secrets_fuzz import plant_anything


@pytest.mark.timeout(60)
@given(data=st.binary(min_size=6, max_size=40))
def test_a_planted_secret_comes_out_by_no_way(data: bytes) -> None:
    plant_anything(data)


@pytest.mark.timeout(60)
def test_a_short_run_of_the_generator_finds_nothing() -> None:
    ran = try_many(plant_anything, runs=1_500, seed=12, seconds=2.5, longest=40)

    assert ran.inputs > 50


def test_every_secret_is_masked_in_every_encoding() -> None:
    register_all()

    shown = {
        (number, way): redact_text(f"before {encode(secret)} after", limit=5_000)
        for (number, secret), (way, encode) in product(enumerate(SECRETS), enumerate(ENCODINGS))
    }

    leaks = [
        (SECRETS[number], way, text)
        for (number, way), text in shown.items()
        if any(piece in text for piece in pieces_of(SECRETS[number], ENCODINGS[way](SECRETS[number])))
    ]
    assert leaks == []
    assert all(text.startswith("before ") and text.endswith(" after") for text in shown.values())


def test_the_generator_finds_a_secret_that_nobody_registered() -> None:
    dice = random.Random(5)
    found = 0
    for _ in range(60):
        try:
            check_case(dice.randbytes(30))
        except AssertionError:
            found += 1

    assert found > 10
