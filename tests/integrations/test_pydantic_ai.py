"""Pydantic AI, really changing models, on our word."""

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is in requirements/sdks/newest.txt")

from pydantic_ai import ModelHTTPError

from examples.bridges.with_pydantic_ai import ask, main, refusing
from failwell.integrations.pydantic_ai import fallback_on
from failwell.testing.builders import a_fault


def test_the_example_moves_on_for_one_failure_and_not_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    main()

    assert capsys.readouterr().out == "an answer of the second model\nnot sent again: provider.bad_request\n"


@pytest.mark.parametrize("status", [402, 429, 500, 502, 503, 529])
def test_the_trouble_of_one_provider_leads_to_the_next(status: int) -> None:
    assert ask(refusing(status)) == "an answer of the second model"


@pytest.mark.parametrize("status", [400, 401, 413, 422, 504])
def test_a_call_that_is_at_fault_or_may_have_been_served_is_not_made_again(status: int) -> None:
    with pytest.raises(ModelHTTPError) as caught:
        ask(refusing(status))

    assert caught.value.status_code == status


def test_a_call_declared_idempotent_moves_on_although_its_outcome_is_unknown() -> None:
    lost = a_fault(kind="provider.outcome_unknown")

    assert not fallback_on(lost)
    assert fallback_on(lost, idempotent=True)
