"""Memory on a real CUDA card: shipped probe, real torch, real workers. Skipped where there is no such card."""

import asyncio
from pathlib import Path

import pytest

from tests.jobs import gpu_scenes as scenes
from tests.jobs.gpu_scenes import Card

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="session")
def card() -> Card:
    found = scenes.find_card()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.mark.acceptance("cjm-substrate 43")
def test_on_a_card_two_that_do_not_fit_together_never_run_at_once(card: Card, tmp_path: Path) -> None:
    asyncio.run(scenes.large_ones_take_turns(card, tmp_path))


@pytest.mark.acceptance("cjm-substrate 44")
def test_on_a_card_what_can_never_fit_fails_at_once_with_numbers(card: Card, tmp_path: Path) -> None:
    asyncio.run(scenes.what_never_fits_fails_at_once(card, tmp_path))


@pytest.mark.acceptance("cjm-substrate 45", "cjm-substrate 47")
def test_on_a_card_the_largest_idle_holder_makes_room_and_nobody_else(card: Card, tmp_path: Path) -> None:
    asyncio.run(scenes.the_largest_idle_one_makes_room(card, tmp_path))


@pytest.mark.acceptance("cjm-substrate 45")
def test_on_a_card_room_that_another_program_makes_is_noticed(card: Card, tmp_path: Path) -> None:
    asyncio.run(scenes.room_made_outside_is_noticed(card, tmp_path))


@pytest.mark.acceptance("cjm-substrate 48", "cjm-substrate 50")
def test_on_a_card_everybody_idle_goes_for_an_unmeasured_job_and_it_ends_well(
    card: Card, tmp_path: Path
) -> None:
    asyncio.run(scenes.an_unmeasured_one_gets_all_that_idles(card, tmp_path))


@pytest.mark.acceptance("cjm-substrate 50")
def test_on_a_card_the_second_attempt_reports_and_heeds_a_cancel(card: Card, tmp_path: Path) -> None:
    asyncio.run(scenes.a_second_attempt_can_be_cancelled(card, tmp_path))
