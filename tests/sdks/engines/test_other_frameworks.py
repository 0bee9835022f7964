"""Frameworks that do not fit beside the others: dspy, agent-framework and crewai."""

from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.report import ErrorReport
from tests.sdks.frameworks.replies import NO_KEY, NO_QUOTA, OVERLOADED, Reply, script

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


def test_dspy_a_model_that_fails_is_what_the_provider_said() -> None:
    dspy: Any = pytest.importorskip("dspy", reason="`make test-sdks` runs it with dspy")

    def failure(reply: Reply) -> ErrorReport:
        with script(reply) as server:
            model = dspy.LM("openai/m", api_base=server.url, api_key="key", num_retries=0, cache=False)
            with dspy.context(lm=model), pytest.raises(Exception) as caught:
                dspy.Predict("question -> answer")(question="text")
            return describe(caught.value)

    kinds = [failure(reply).kind for reply in (NO_KEY, NO_QUOTA, OVERLOADED)]

    assert kinds == ["provider.auth", "provider.quota_exhausted", "provider.overloaded"]


def test_agent_framework_an_envelope_is_what_it_carries() -> None:
    errors: Any = pytest.importorskip(
        "agent_framework.exceptions", reason="`make test-sdks` runs it with agent-framework"
    )
    carried = errors.ChatClientException("text", inner_exception=MemoryError())
    carried.__cause__ = MemoryError()

    assert describe(carried).kind == "resource.system_memory"
    assert describe(errors.AgentInvalidAuthException("text")).kind == "provider.auth"
    assert describe(errors.WorkflowConvergenceException("text")).kind == "limit.iterations"


def test_crewai_an_error_of_another_agent_is_what_its_class_says() -> None:
    errors: Any = pytest.importorskip("crewai.a2a.errors", reason="`make test-sdks` runs it with crewai")

    assert describe(errors.RateLimitExceededError()).retryable
    assert describe(errors.AuthenticationRequiredError()).kind == "provider.auth"
    assert describe(errors.TaskNotFoundError(task_id="t")).kind == "provider.bad_request"
