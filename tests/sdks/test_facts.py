"""What real clients hand over beside the failure itself: ids, waits, codes, and that nothing was sent."""

import asyncio
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

import failwell
from failwell.adapters.headers import lower_headers
from failwell.adapters.sdk import id_in
from failwell.apps.lab.dialects.table import dialect
from failwell.apps.lab.lab_reply import LabCall
from failwell.testing.laboratory import Lab
from tests.sdks.matrix import Case, caller, caller_names, is_installed, judge, make, modes

pytestmark = pytest.mark.filterwarnings("ignore")

_LOSES_HEADERS = {"ollama", "replicate", "linkup"}
"""SDKs whose exceptions keep no header of the reply."""
_WRAPS = {"instructor", "litellm", "litellm_anthropic", "pydantic_ai"}
"""Libraries around another SDK; what they keep of it is their own tests' business."""
_NAMES = [
    name
    for name in caller_names()
    if is_installed(one := caller(name))
    and "rate_limited" not in one.NOT_HERE
    and name not in _WRAPS | _LOSES_HEADERS
]
_GUARDED = {
    "openai": ("OpenAI", "AsyncOpenAI", "chat.completions"),
    "groq": ("Groq", "AsyncGroq", "chat.completions"),
    "anthropic": ("Anthropic", "AsyncAnthropic", "messages"),
}
CODES: list[tuple[str, str, str | None]] = [
    ("openai", "bad_key", "invalid_api_key"),
    ("azure_openai", "bad_key", None),
    ("azure_openai", "rate_limited", "ratelimitreached"),
    ("anthropic", "bad_key", "authentication_error"),
    ("groq", "bad_key", "invalid_api_key"),
    ("google_genai", "bad_key", "api_key_invalid"),
    ("mistralai", "rate_limited", "rate_limited"),
    ("bedrock", "bad_key", "unrecognizedclientexception"),
    ("fal_client", "overloaded", "runner_scheduling_failure"),
    ("huggingface_hub", "overloaded", "overloaded"),
]
"""Caller, scenario, and the code that the vendor sends there; Azure answers a bad key with the status alone."""
_HERE = [name for name in _GUARDED if find_spec(name) is not None]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as opened:
        yield opened


def _sent_id(name: str) -> str | None:
    """The request id that the laboratory sends with a rate limit in this dialect."""
    spoken = dialect(name)
    reply = None if spoken is None else spoken.reply("rate_limited", LabCall())
    return None if reply is None else id_in(lower_headers(dict(reply.headers)))


def _incomplete(name: str, url: str, *, wait: bool) -> BaseException:
    """What the client raises for a call without its messages."""
    plain, waiting, path = _GUARDED[name]
    client: Any = getattr(import_module(name), waiting if wait else plain)(
        api_key="lab", base_url=url, max_retries=0
    )
    create: Any = client
    for part in (*path.split("."), "create"):
        create = getattr(create, part)
    with pytest.raises(Exception) as caught:
        if wait:
            asyncio.run(create())
        else:
            create()
    return caught.value


@pytest.mark.acceptance("pipelex 32")
def test_the_facts_below_are_read_for_every_vendor_of_the_list() -> None:
    vendors = {
        "openai",
        "anthropic",
        "google_genai",
        "mistralai",
        "azure_openai",
        "bedrock",
        "fal_client",
        "huggingface_hub",
    }
    newest = {name for name in vendors if is_installed(caller(name))}

    assert newest <= set(_NAMES)
    assert vendors <= {name for name, _, _ in CODES}


@pytest.mark.acceptance("pipelex 32")
@pytest.mark.parametrize("name", _NAMES)
def test_status_wait_and_request_id_are_read_off_a_real_exception(lab: Lab, name: str) -> None:
    one = caller(name)
    case = Case(name, "rate_limited@seconds", modes(one)[0])

    reply, error = make(case, lab.url(one.DIALECT, case.scenario))
    report = judge(case, reply, error)

    assert report is not None
    said = report.provider_metadata
    assert said is not None
    assert (said.status_code, said.retry_after) == (429, 7.0)
    assert said.request_id == _sent_id(one.DIALECT)


@pytest.mark.acceptance("pipelex 32")
@pytest.mark.parametrize(
    ("name", "scenario", "code"), CODES, ids=[f"{name}-{scenario}" for name, scenario, _ in CODES]
)
def test_the_code_of_a_real_exception_is_read(lab: Lab, name: str, scenario: str, code: str | None) -> None:
    one = caller(name)
    if not is_installed(one):
        pytest.skip(f"{one.DISTRIBUTION} is not installed here")
    case = Case(name, scenario, "sync")

    reply, error = make(case, lab.url(one.DIALECT, case.scenario))
    report = judge(case, reply, error)

    assert report is not None
    assert report.provider_metadata is not None
    assert report.provider_metadata.code == code


@pytest.mark.acceptance("relavium 6")
@pytest.mark.parametrize("name", _HERE)
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
def test_what_a_client_refuses_to_send_was_not_sent_and_is_the_callers_to_change(
    lab: Lab, name: str, wait: bool
) -> None:
    lab.reset()

    report = failwell.describe(_incomplete(name, lab.url(name, "ok"), wait=wait))

    assert lab.calls() == 0
    assert (report.category, report.certainty, report.retryable) == ("user_input", "not_sent", False)


@pytest.mark.acceptance("relavium 7")
@pytest.mark.parametrize(
    "name", [name for name in ("openai", "anthropic", "groq") if find_spec(name) is not None]
)
def test_a_stream_that_ends_without_its_last_event_is_no_clean_end(lab: Lab, name: str) -> None:
    case = Case(name, "truncated_stream", "sync stream")

    chunks, error = make(case, lab.url(name, case.scenario))
    assert error is None, "the client itself takes it for a clean end"
    stream = failwell.checked(name, chunks)
    with pytest.raises(failwell.Fault) as caught:
        list(stream)

    assert failwell.describe(caught.value).kind == "provider.stream_interrupted"
