"""Pydantic AI, really changing models, on our word."""

import pytest

from failwell.integrations.pydantic_ai import fallback_on
from failwell.testing.builders import make_fault
from tests.installed import need

need("pydantic_ai")


def test_the_example_moves_on_for_one_failure_and_not_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    from examples.bridges.with_pydantic_ai import main

    main()

    assert capsys.readouterr().out == "an answer of the second model\nnot sent again: provider.bad_request\n"


@pytest.mark.parametrize("status", [402, 429, 500, 502, 503, 529])
def test_the_trouble_of_one_provider_leads_to_the_next(status: int) -> None:
    from examples.bridges.with_pydantic_ai import ask, refusing

    assert ask(refusing(status)) == "an answer of the second model"


@pytest.mark.parametrize("status", [400, 401, 413, 422, 504])
def test_a_call_that_is_at_fault_or_may_have_been_served_is_not_made_again(status: int) -> None:
    from pydantic_ai import ModelHTTPError

    from examples.bridges.with_pydantic_ai import ask, refusing

    with pytest.raises(ModelHTTPError) as caught:
        ask(refusing(status))

    assert caught.value.status_code == status


def test_a_call_declared_idempotent_moves_on_although_its_outcome_is_unknown() -> None:
    lost = make_fault(kind="provider.outcome_unknown")

    assert not fallback_on(lost)
    assert fallback_on(lost, idempotent=True)
