"""Every vendor's client with its own retries on and switched off: off, one call is one call on the wire."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import pytest

import failwell
from failwell.calls.attempt_loop import NestedRetries
from failwell.calls.backoff import Backoff
from failwell.calls.retry import retry
from failwell.calls.sdk_retries import RetriesNotSwitchable, sdk_calls, without_sdk_retries
from failwell.errors.context import Layer
from failwell.testing.laboratory.server import Lab, lab
from tests.calls.acting import caught, ledger

ASKED: dict[str, Any] = {"model": "lab", "messages": [{"role": "user", "content": "hello"}]}


class RetryingClient(NamedTuple):
    """A client that repeats, how to make one call with it, and how to close it."""

    client: Any
    call: Callable[[Any], Any]
    close: Callable[[Any], Any]


def close(client: Any) -> None:
    client.close()


def chat(client: Any) -> Any:
    return client.chat.completions.create(**ASKED)


def openai(sdk: Any, url: str) -> RetryingClient:
    return RetryingClient(sdk.OpenAI(api_key="lab", base_url=url), chat, close)


def groq(sdk: Any, url: str) -> RetryingClient:
    return RetryingClient(sdk.Groq(api_key="lab", base_url=url), chat, close)


def together(sdk: Any, url: str) -> RetryingClient:
    return RetryingClient(sdk.Together(api_key="lab", base_url=url), chat, close)


def anthropic(sdk: Any, url: str) -> RetryingClient:
    def call(client: Any) -> Any:
        return client.messages.create(**ASKED, max_tokens=5)

    return RetryingClient(sdk.Anthropic(api_key="lab", base_url=url), call, close)


def google(sdk: Any, url: str) -> RetryingClient:
    options = {"base_url": url, "retry_options": {"attempts": 3, "initial_delay": 0.001}}

    def call(client: Any) -> Any:
        return client.models.generate_content(model="lab", contents="hello")

    return RetryingClient(sdk.Client(api_key="lab", http_options=options), call, close)


def mistral(sdk: Any, url: str) -> RetryingClient:
    # Up to version 1 the client is at the top of the package.
    is_old = hasattr(sdk, "Mistral")
    made: Any = sdk.Mistral if is_old else import_module("mistralai.client").Mistral
    tools: Any = import_module("mistralai.utils" if is_old else "mistralai.client.utils")
    config = tools.RetryConfig("backoff", tools.BackoffStrategy(1, 5, 1.5, 200), retry_connection_errors=True)

    def call(client: Any) -> Any:
        return client.chat.complete(**ASKED)

    def leave(client: Any) -> None:
        client.__exit__(None, None, None)

    return RetryingClient(made(api_key="lab", server_url=url, retry_config=config).__enter__(), call, leave)


def bedrock(sdk: Any, url: str) -> RetryingClient:
    made = sdk.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="lab",
        aws_secret_access_key="lab",
    )

    def call(client: Any) -> Any:
        return client.converse(modelId="lab", messages=[{"role": "user", "content": [{"text": "hello"}]}])

    return RetryingClient(made, call, close)


def cohere(sdk: Any, url: str) -> RetryingClient:
    transport: Any = import_module("httpx").Client()

    def call(client: Any) -> Any:
        return client.chat(**ASKED)

    def leave(client: Any) -> None:
        transport.close()

    return RetryingClient(sdk.ClientV2(api_key="lab", base_url=url, httpx_client=transport), call, leave)


def requests(sdk: Any, url: str) -> RetryingClient:
    session = sdk.Session()
    repeats: Any = import_module("urllib3").Retry(3, status_forcelist=[500])
    session.mount("http://", sdk.adapters.HTTPAdapter(max_retries=repeats))

    def call(client: Any) -> Any:
        client.get(f"{url}/chat/completions").raise_for_status()

    return RetryingClient(session, call, close)


MAKERS: dict[str, tuple[str, Callable[[Any, str], RetryingClient]]] = {
    "openai": ("openai", openai),
    "anthropic": ("anthropic", anthropic),
    "groq": ("groq", groq),
    "together": ("together", together),
    "google.genai": ("google-genai", google),
    "mistralai": ("mistral", mistral),
    "boto3": ("bedrock", bedrock),
    "cohere": ("cohere", cohere),
    "requests": ("plain", requests),
}


QUICK = ("openai", "requests")
SLOW = pytest.mark.slow
"""Loading these SDKs takes seconds each."""


@pytest.fixture(scope="module")
def fake() -> Iterator[Lab]:
    with lab(stall=0.4) as running:
        yield running


@pytest.mark.acceptance("stud-cli 26")
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=SLOW) for name in MAKERS]
)
def test_a_client_without_its_retries_makes_one_call(fake: Lab, name: str) -> None:
    sdk = pytest.importorskip(name)
    dialect, make = MAKERS[name]
    retrying = make(sdk, fake.url(dialect, "server_error"))
    fake.reset()

    switched_off = without_sdk_retries(retrying.client)
    caught(lambda: retrying.call(switched_off))

    assert fake.calls() == 1
    retrying.close(retrying.client)


@pytest.mark.parametrize(
    "name", [pytest.param("google.genai", marks=SLOW), pytest.param("mistralai", marks=SLOW), "requests"]
)
def test_the_same_client_repeats_with_its_retries(fake: Lab, name: str) -> None:
    sdk = pytest.importorskip(name)
    dialect, make = MAKERS[name]
    retrying = make(sdk, fake.url(dialect, "server_error"))
    fake.reset()

    caught(lambda: retrying.call(retrying.client))

    assert fake.calls() > 1
    retrying.close(retrying.client)


@pytest.mark.parametrize("name", ["httpx", "ollama", "huggingface_hub"])
def test_a_client_that_never_repeats_is_left_as_it_is(name: str) -> None:
    module: Any = pytest.importorskip(name)
    client = {"httpx": "Client", "ollama": "Client", "huggingface_hub": "InferenceClient"}[name]
    made = getattr(module, client)()

    assert without_sdk_retries(made) is made


def test_a_client_that_cannot_be_switched_off_is_named_with_what_to_do_instead() -> None:
    fal: Any = pytest.importorskip("fal_client")

    with pytest.raises(RetriesNotSwitchable, match=r"fal_client\.SyncClient.*MAX_ATTEMPTS = 1"):
        without_sdk_retries(fal.SyncClient(key="lab"))


def test_a_client_that_nobody_knows_is_not_trusted_to_be_quiet() -> None:
    class Nobody:
        pass

    with pytest.raises(RetriesNotSwitchable, match=r"Nobody.*switch them off where the client is made"):
        without_sdk_retries(Nobody())


def test_the_calls_that_an_sdk_makes_by_itself_are_shown_and_warned_about(
    fake: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk: Any = pytest.importorskip("openai")
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)
    fake.reset()

    with sdk.OpenAI(api_key="lab", base_url=fake.url("openai", "server_error"), max_retries=2) as client:
        looped = retry(attempts=2, backoff=Backoff(first=0.0), name="ask")(lambda: chat(client))
        with pytest.warns(NestedRetries, match=r"2 × 3 = up to 6 calls.*without_sdk_retries"):
            error = caught(looped)

    assert fake.calls() == 6
    assert ledger(error).nested == ("`ask` × `openai client`: 2 × 3 = up to 6 calls",)
    reasons = [row.reason or "" for row in failwell.describe(error).attempts]
    assert all("the openai client made 3 calls by itself" in reason for reason in reasons)


def test_clients_tell_how_often_they_repeated_a_call_in_their_own_ways(fake: Lab) -> None:
    requests: Any = pytest.importorskip("requests")
    adapters: Any = import_module("requests.adapters")
    urllib3: Any = import_module("urllib3.util")
    fake.reset()

    def post() -> None:
        with requests.Session() as session:
            policy = urllib3.Retry(
                2, status_forcelist=[500, 502, 503], allowed_methods=None, raise_on_status=False
            )
            session.mount("http://", adapters.HTTPAdapter(max_retries=policy))
            session.post(
                f"{fake.url('openai', 'server_error')}/chat/completions", json=ASKED
            ).raise_for_status()

    assert sdk_calls(caught(post)) == Layer("requests client", 3, is_sdk=True)
    assert fake.calls() == 3


def test_a_failure_of_aws_tells_how_often_it_was_repeated() -> None:
    botocore: Any = pytest.importorskip("botocore.exceptions")

    def failure(retries: int) -> Any:
        reply = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"RetryAttempts": retries}}
        return botocore.ClientError(reply, "Converse")

    assert sdk_calls(failure(4)) == Layer("botocore client", 5, is_sdk=True)
    assert sdk_calls(failure(0)) is None
    assert sdk_calls(ValueError("x")) is None


def test_the_calls_of_a_client_below_a_framework_are_counted_too() -> None:
    botocore: Any = pytest.importorskip("botocore.exceptions")
    reply = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"RetryAttempts": 4}}
    framework_error = RuntimeError("the model failed")
    framework_error.__cause__ = botocore.ClientError(reply, "Converse")
    cycle = RuntimeError("a")
    cycle.__cause__ = RuntimeError("b")
    cycle.__cause__.__cause__ = cycle

    assert sdk_calls(framework_error) == Layer("botocore client", 5, is_sdk=True)
    assert sdk_calls(cycle) is None
