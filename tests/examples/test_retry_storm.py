"""A provider goes down for a minute: careless retries keep it down, ours do not."""

import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest

from examples.retry_storm import BACK, CLIENTS, DOWN, EVERY, STRATEGIES, Outcome, main, simulate

NAIVE = ["every second, 10 calls", "exponential, 6 calls"]
OURS = ["failwell, guard per client", "failwell, guard per 25 clients"]


@cache
def outcome(name: str) -> Outcome:
    return simulate(STRATEGIES[name])


@pytest.mark.slow
def test_every_strategy_is_given_the_same_work() -> None:
    wanted = {name: outcome(name).wanted for name in STRATEGIES}

    assert all(one == wanted["no retries"] for one in wanted.values())
    assert sum(wanted["no retries"][DOWN:BACK]) == CLIENTS * (BACK - DOWN) / EVERY


def test_without_retries_nothing_is_amplified() -> None:
    assert outcome("no retries").amplification == 1.0


@pytest.mark.parametrize("name", OURS)
def test_our_retries_hardly_add_to_an_outage_and_let_it_end(name: str) -> None:
    ours = outcome(name)

    assert ours.amplification <= 1.2
    assert ours.recovery is not None
    # A breaker rests for thirty seconds, and its client's next call may be ten more away.
    assert ours.recovery <= 40
    assert sum(ours.sent[-20:]) == sum(ours.served[-20:]) == sum(ours.wanted[-20:])


@pytest.mark.parametrize("name", [pytest.param(NAIVE[0], marks=pytest.mark.slow), NAIVE[1]])
def test_naive_retries_multiply_the_calls_and_hold_the_provider_down(name: str) -> None:
    naive, ours = outcome(name), outcome(OURS[0])

    assert naive.amplification >= 4 * ours.amplification
    assert naive.recovery is None or (ours.recovery is not None and naive.recovery > 2 * ours.recovery)


def test_our_retries_are_made_while_there_is_hope() -> None:
    sent, wanted = outcome(OURS[0]).sent, outcome(OURS[0]).wanted

    assert sum(sent[DOWN : DOWN + 10]) > sum(wanted[DOWN : DOWN + 10])


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run() -> None:
    again = simulate(STRATEGIES[OURS[0]])

    assert again == outcome(OURS[0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_result_does_not_depend_on_the_seed(seed: int) -> None:
    ours = simulate(STRATEGIES[OURS[0]], seed=seed)

    assert ours.amplification <= 1.2
    assert ours.recovery is not None


@pytest.mark.slow
def test_the_example_prints_a_table_and_a_plot_and_draws_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawing = tmp_path / "storm.svg"

    main(["--svg", str(drawing)])

    printed = capsys.readouterr().out
    lines = ET.parse(drawing).getroot().findall("{http://www.w3.org/2000/svg}polyline")
    assert [printed.count(name) for name in STRATEGIES] == [2] * len(STRATEGIES)
    assert "█" in printed
    assert [len(line.attrib["points"].split()) for line in lines] == [300] * len(STRATEGIES)
