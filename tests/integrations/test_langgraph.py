"""LangGraph, really running nodes again, on our word."""

from functools import partial
from typing import Any

import pytest

from failwell.integrations.langgraph import retry_on
from failwell.testing.builders import make_fault
from tests.calls.acting import told
from tests.installed import need

need("langgraph")


def test_the_example_repeats_one_failure_and_not_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    from examples.bridges.with_langgraph import main

    main()

    assert capsys.readouterr().out == "an answer to 'why?' after 2 calls\nprovider.auth after 1 call\n"


@pytest.mark.parametrize(
    "failure",
    [
        make_fault(kind="provider.auth"),
        make_fault(kind="provider.outcome_unknown"),
        make_fault(kind="cancel.run"),
        make_fault(not_before=told(61)),
    ],
    ids=["wrong key", "unknown outcome", "cancel", "too long"],
)
def test_a_node_whose_failure_stays_is_run_once(failure: Exception) -> None:
    from examples.bridges.with_langgraph import Model, run

    model = Model(failure)

    with pytest.raises(type(failure)):
        run(model)

    assert model.calls == 1


def test_a_node_that_stays_overloaded_is_given_up_by_langgraphs_own_count() -> None:
    from examples.bridges.with_langgraph import Model, run

    model = Model(*(make_fault(kind="provider.overloaded") for _ in range(5)))

    with pytest.raises(type(make_fault())):
        run(model)

    assert model.calls == 3


def test_a_policy_takes_the_bridge_with_its_declaration_bound() -> None:
    from langgraph.types import RetryPolicy

    policy: Any = RetryPolicy(retry_on=partial(retry_on, idempotent=True))

    assert policy.retry_on(TimeoutError("the read operation timed out")) is True
    assert retry_on(TimeoutError("the read operation timed out")) is False
