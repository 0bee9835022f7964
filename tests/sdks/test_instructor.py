"""instructor's errors are what they carry, whichever attempt it was, and tell nothing of the conversation."""

import asyncio
import json
import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.axes import Category, Certainty
from failwell.errors.report import ErrorReport
from failwell.logging import JsonFormatter, ReportFilter, log_report
from tests.sdks.instructor_replies import (
    ANSWER,
    CUT,
    LIMITED,
    NO_CALL,
    NO_KEY,
    PROMPT,
    REFUSAL,
    REFUSED,
    UNFIT,
    Script,
)

instructor: Any = pytest.importorskip("instructor", reason="`make test-sdks` runs it with instructor")
openai: Any = pytest.importorskip("openai")
pydantic: Any = pytest.importorskip("pydantic")
errors: Any = pytest.importorskip("instructor.v2.core.errors")

pytestmark = pytest.mark.filterwarnings("ignore")

User = pydantic.create_model("User", name=(str, ...), age=(int, ...))


@pytest.fixture(params=["sync", "async"])
def call_model(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Ask for a `User` while the server follows a script: what was raised, and how often it was called."""
    scripts: list[Script] = []

    def ask(
        *replies: tuple[int, dict[str, Any]], mode: str = "TOOLS", tries: int = 2
    ) -> tuple[Exception, int]:
        script = Script(*replies)
        scripts.append(script)
        call = {
            "model": "lab-model",
            "messages": [{"role": "user", "content": PROMPT}],
            "response_model": User,
            "max_retries": tries,
        }
        made = {"api_key": "sk-lab", "base_url": script.url, "max_retries": 0}
        with pytest.raises(Exception) as caught:
            if request.param == "sync":
                with openai.OpenAI(**made) as client:
                    instructor.from_openai(client, mode=instructor.Mode[mode]).chat.completions.create(**call)
            else:
                asyncio.run(_later(made, mode, call))
        return caught.value, script.calls

    logging.getLogger("instructor").setLevel(logging.CRITICAL)
    yield ask
    for script in scripts:
        script.stop()


async def _later(made: dict[str, Any], mode: str, call: dict[str, Any]) -> None:
    async with openai.AsyncOpenAI(**made) as client:
        await instructor.from_openai(client, mode=instructor.Mode[mode]).chat.completions.create(**call)


def everything_in(report: ErrorReport) -> str:
    return report.to_json() + "".join(
        json.dumps(report.view(who)) for who in ("user", "model", "operator", "audit")
    )


@pytest.mark.acceptance("pipelex 39")
def test_a_rate_limit_is_one_call_and_a_rate_limit(call_model: Any) -> None:
    error, calls = call_model(LIMITED)

    # The script answers on a host of nobody's, so only the caller knows whom it called.
    report = describe(error, provider="openai")

    assert describe(error).provider is None
    assert type(error).__name__ == "InstructorRetryException"
    assert calls == 1
    assert (report.kind, report.category, report.retryable) == (
        "provider.rate_limited",
        Category.TRANSIENT,
        True,
    )
    assert report.error_type == "InstructorRetryException"
    assert report.causes[0].type == "RateLimitError"
    assert report.not_before is not None
    assert report.not_before.after == 7.0
    assert report.provider == "openai"
    assert report.provider_metadata is not None
    assert report.provider_metadata.status_code == 429


@pytest.mark.acceptance("pipelex 40")
def test_an_answer_that_never_fits_is_content_and_its_text_is_nowhere(call_model: Any) -> None:
    error, calls = call_model(UNFIT)

    report = describe(error)

    assert calls == 3
    assert (report.kind, report.category) == ("provider.output_invalid", Category.CONTENT)
    assert report.fields_invalid == ("age",)
    assert report.details["attempts"] == 3
    assert ANSWER in str(error)
    for text in (ANSWER, PROMPT):
        assert text not in everything_in(report)
        assert text not in logged(error)


def logged(error: BaseException) -> str:
    """What the logs hold of `error`: as a line with its exception, as JSON, and as a report of its own."""
    text = StringIO()
    plain, as_json = logging.StreamHandler(text), logging.StreamHandler(text)
    plain.addFilter(ReportFilter())
    as_json.setFormatter(JsonFormatter())
    logger = logging.getLogger("tests.sdks.instructor")
    for handler in (as_json, plain):
        logger.addHandler(handler)
    try:
        logger.error("the call failed", exc_info=error)
        log_report(logger, describe(error))
    finally:
        for handler in (as_json, plain):
            logger.removeHandler(handler)
    assert text.getvalue().count(type(error).__name__) >= 2
    return text.getvalue()


@pytest.mark.acceptance("pipelex 41")
def test_a_rate_limit_after_a_bad_answer_is_a_rate_limit(call_model: Any) -> None:
    error, calls = call_model(UNFIT, LIMITED)

    report = describe(error)

    assert calls == 2
    assert [type(one.exception).__name__ for one in error.failed_attempts] == ["ValidationError"]
    assert (report.kind, report.category) == ("provider.rate_limited", Category.TRANSIENT)


@pytest.mark.acceptance("pipelex 42")
def test_an_answer_that_was_cut_names_its_model_its_stop_reason_and_its_tokens(call_model: Any) -> None:
    error, _ = call_model(CUT)

    report = describe(error)

    assert (report.kind, report.category) == ("provider.output_truncated", Category.CONTENT)
    assert report.model == "lab-model"
    assert report.details["stop_reason"] == "length"
    assert (report.details["input_tokens"], report.details["output_tokens"]) == (11, 16)
    assert "`lab-model`" in report.message
    assert "`length`" in report.message
    assert "16 tokens" in report.message
    assert ANSWER not in everything_in(report)


@pytest.mark.acceptance("pipelex 43")
def test_an_answer_without_the_tool_call_is_a_bad_answer(call_model: Any) -> None:
    error, calls = call_model(NO_CALL)

    report = describe(error)

    assert calls == 3
    assert (report.kind, report.category) == ("provider.output_invalid", Category.CONTENT)
    assert ANSWER not in everything_in(report)


@pytest.mark.parametrize("mode", ["TOOLS", "TOOLS_STRICT", "JSON"])
@pytest.mark.acceptance("pipelex 43")
def test_a_refusal_is_refused_content_and_its_words_stay_inside(call_model: Any, mode: str) -> None:
    error, _ = call_model(REFUSED, mode=mode, tries=0)

    report = describe(error)

    assert (report.kind, report.category) == ("provider.content_refused", Category.CONTENT)
    assert report.certainty is Certainty.PARTIAL
    assert REFUSAL not in everything_in(report)


@pytest.mark.acceptance("pipelex 44")
def test_a_wrapper_around_nothing_is_unknown_and_names_only_its_class() -> None:
    error = errors.InstructorRetryException(
        PROMPT, n_attempts=1, total_usage=0, messages=[{"content": PROMPT}], create_kwargs={"prompt": PROMPT}
    )

    report = describe(error)

    assert (report.kind, report.category, report.retryable) == ("provider.unknown", Category.UNKNOWN, False)
    assert report.user_action is not None
    assert report.user_action.kind == "contact_support"
    assert report.evidence[0].saw == "InstructorRetryException"
    assert PROMPT not in everything_in(report)


def test_the_last_failed_attempt_speaks_where_there_is_no_cause() -> None:
    failed = errors.FailedAttempt(1, openai.APIConnectionError(request=None), None)
    error = errors.InstructorRetryException("gave up", n_attempts=1, total_usage=0, failed_attempts=[failed])

    report = describe(error)

    assert report.provider_metadata is not None
    assert report.provider_metadata.exception_type == "APIConnectionError"


def test_a_bad_key_is_a_bad_key(call_model: Any) -> None:
    error, calls = call_model(NO_KEY)

    assert calls == 1
    assert describe(error).kind == "provider.auth"


def test_each_class_of_instructor_is_known() -> None:
    listed = [getattr(errors, name) for name in dir(errors)]
    found = [cls for cls in listed if isinstance(cls, type) and issubclass(cls, errors.InstructorError)]
    found.remove(errors.InstructorError)

    unknown = [cls.__name__ for cls in found if describe(made(cls)).kind == "internal.unknown"]

    assert len(found) >= 12
    assert unknown == []


def made(cls: Any) -> BaseException:
    """One of `cls`, whatever its constructor wants."""
    return cls.__new__(cls)
