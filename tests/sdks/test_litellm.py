"""litellm's errors are read through to what it caught, and only to that."""

import os
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.axes import Certainty
from failwell.testing.laboratory.server import Lab
from tests.sdks.callers.litellm import close_clients

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
litellm: Any = pytest.importorskip("litellm", reason="`make test-sdks` runs it with litellm")
openai: Any = pytest.importorskip("openai")

pytestmark = pytest.mark.filterwarnings("ignore")

PROMPT = "the-prompt-nobody-may-see"


def raised_by(url: str, model: str = "openai/gpt-4o-mini", **more: Any) -> Exception:
    asked: dict[str, Any] = {
        "messages": [{"role": "user", "content": PROMPT}],
        "api_key": "sk-lab",
        "num_retries": 0,
        "max_retries": 0,
    }
    with pytest.raises(Exception) as caught:
        litellm.completion(model=model, api_base=url, **asked, **more)
    close_clients()
    return caught.value


def test_a_status_that_litellm_rewrote_is_seen_as_it_was() -> None:
    with Lab() as lab:
        error: Any = raised_by(lab.url("anthropic", "overloaded"), "anthropic/claude-sonnet-4-5")

    report = describe(error)

    assert error.status_code == 500
    assert report.kind == "provider.overloaded"
    assert report.provider_metadata is not None
    assert report.provider_metadata.status_code == 529
    assert report.model == "claude-sonnet-4-5"


def test_the_wait_is_read_although_litellm_drops_the_headers() -> None:
    with Lab() as lab:
        error = raised_by(lab.url("openai", "rate_limited@ms"))

    report = describe(error)

    assert report.not_before is not None
    assert report.not_before.after == 6.5


def test_a_refused_connection_is_not_the_servers_error_that_litellm_makes_of_it() -> None:
    with Lab() as lab:
        error: Any = raised_by(lab.url("openai", "refused"))

    report = describe(error)

    assert error.status_code == 500
    assert (report.kind, report.certainty) == ("provider.connection", Certainty.NOT_SENT)


def test_the_prompt_is_in_no_report() -> None:
    with Lab() as lab:
        error: Any = raised_by(lab.url("openai", "bad_schema"))
        error.litellm_debug_info = PROMPT

    report = describe(error)

    assert PROMPT not in report.to_json()


def test_what_the_caller_was_dealing_with_before_is_not_taken_for_the_cause() -> None:
    before = openai.APITimeoutError(request=None)

    with pytest.raises(Exception) as caught:
        try:
            raise before
        except openai.APITimeoutError:
            litellm.completion(model="no-such-provider/x", messages=[{"role": "user", "content": "hi"}])
    report = describe(caught.value)

    assert "APITimeoutError" in [cause.type for cause in report.causes]
    assert report.kind != "provider.outcome_unknown"
    assert report.retryable is False


@pytest.mark.parametrize(
    ("name", "made", "kind"),
    [
        ("BudgetExceededError", {"current_cost": 2.0, "max_budget": 1.0}, "limit.budget_exceeded"),
        (
            "ContextWindowExceededError",
            {"message": "", "model": "m", "llm_provider": "p"},
            "provider.context_too_long",
        ),
        (
            "ContentPolicyViolationError",
            {"message": "", "model": "m", "llm_provider": "p"},
            "provider.content_refused",
        ),
        (
            "UnsupportedParamsError",
            {"message": "", "model": "m", "llm_provider": "p"},
            "provider.capability_missing",
        ),
        ("RateLimitError", {"message": "", "model": "m", "llm_provider": "p"}, "provider.rate_limited"),
        ("GuardrailRaisedException", {}, "provider.content_refused"),
    ],
)
def test_an_error_of_litellms_own_is_known_by_its_class(name: str, made: dict[str, Any], kind: str) -> None:
    error = getattr(litellm.exceptions, name)(**made)

    assert describe(error).kind == kind


def test_a_router_whose_deployments_are_all_cooling_down_says_until_when() -> None:
    router: Any = pytest.importorskip("litellm.types.router")
    error = router.RouterRateLimitError(
        model="m", cooldown_time=5.0, enable_pre_call_checks=False, cooldown_list=[]
    )

    report = describe(error)

    assert (report.kind, report.certainty, report.retryable) == (
        "provider.unavailable",
        Certainty.NOT_SENT,
        True,
    )
    assert report.not_before is not None
    assert report.not_before.after == 5.0


def test_each_class_of_litellm_is_known() -> None:
    listed = [getattr(litellm.exceptions, name) for name in dir(litellm.exceptions)]
    own = [cls for cls in listed if getattr(cls, "__module__", "") == "litellm.exceptions"]
    found = {cls for cls in own if isinstance(cls, type) and issubclass(cls, Exception)}

    unknown = sorted(cls.__name__ for cls in found if describe(made(cls)).kind == "internal.unknown")

    assert len(found) > 25
    assert unknown == []


def made(cls: Any) -> BaseException:
    """One of `cls`, whatever its constructor wants."""
    return cls.__new__(cls)
