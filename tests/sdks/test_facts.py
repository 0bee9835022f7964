"""What real clients hand over beside the failure itself: ids, waits, codes, and that nothing was sent."""

import asyncio
import json
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from typing import Any, NamedTuple

import pytest

import failwell
from failwell.adapters.sdk_exceptions import id_in
from failwell.errors.headers import lower_headers
from failwell.errors.json_walk import map_texts
from failwell.testing.laboratory.dialects.table import dialect
from failwell.testing.laboratory.lab_reply import LabCall
from failwell.testing.laboratory.server import Lab
from tests.sdks.matrix import Case, caller, caller_names, has_module, is_installed, judge, make, modes

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


class Guard(NamedTuple):
    """How one client is made to refuse a call before it is sent: a call without what it needs."""

    module: str
    client: str
    method: str
    async_client: str
    async_method: str | None = None
    key: str | None = "api_key"
    address: str | None = "base_url"
    arguments: tuple[str, ...] = ()

    def made(self, url: str, *, wait: bool) -> Any:
        settings = {
            name: value for name, value in ((self.key, "lab"), (self.address, url)) if name is not None
        }
        client = self.async_client if wait else self.client
        module = import_module(self.module)
        # Earlier releases have it at the top of their package.
        holder = module if hasattr(module, client) else import_module(self.module.partition(".")[0])
        return getattr(holder, client)(**settings)


_GUARDS = {
    "openai": Guard("openai", "OpenAI", "chat.completions.create", "AsyncOpenAI"),
    "groq": Guard("groq", "Groq", "chat.completions.create", "AsyncGroq"),
    "anthropic": Guard("anthropic", "Anthropic", "messages.create", "AsyncAnthropic"),
    "mistralai": Guard("mistralai.client", "Mistral", "chat.complete", "Mistral", "chat.complete_async", address="server_url"),
    "cohere": Guard("cohere", "ClientV2", "chat", "AsyncClientV2"),
    "google.genai": Guard("google.genai", "Client", "models.generate_content", "Client", "aio.models.generate_content", address=None),
    "huggingface_hub": Guard("huggingface_hub", "InferenceClient", "chat_completion", "AsyncInferenceClient"),
    "ollama": Guard("ollama", "Client", "chat", "AsyncClient", key=None, address="host"),
    "fal_client": Guard("fal_client", "SyncClient", "run", "AsyncClient", key="key", address=None),
    "replicate": Guard("replicate.client", "Client", "run", "Client", "async_run", key="api_token", address=None, arguments=("no reference",)),
    "linkup": Guard("linkup", "LinkupClient", "search", "LinkupClient", "async_search"),
}  # fmt: skip
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
_HERE = [name for name in _GUARDS if has_module(name)]


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
    """What the client raises for a call that lacks what it needs."""
    guard = _GUARDS[name]
    path = guard.async_method or guard.method if wait else guard.method
    call = guard.made(url, wait=wait)
    for part in path.split("."):
        call = getattr(call, part)

    async def awaited() -> None:
        await call(*guard.arguments)

    with pytest.raises(Exception) as caught:
        if wait:
            asyncio.run(awaited())
        else:
            call(*guard.arguments)
    return caught.value


def _left_python(error: BaseException) -> bool:
    """Whether the client was entered before it refused."""
    *_, last = traceback.extract_tb(error.__traceback__)
    return "site-packages" in last.filename


@pytest.mark.acceptance("relavium 6")
def test_what_botocore_refuses_to_send_was_not_sent() -> None:
    client = pytest.importorskip("boto3").client(
        "bedrock-runtime", region_name="us-east-1", aws_access_key_id="lab", aws_secret_access_key="lab"
    )
    try:
        with pytest.raises(Exception, match="Parameter validation failed") as caught:
            client.converse()
    finally:
        client.close()

    report = failwell.describe(caught.value)

    assert (report.kind, report.certainty) == ("validation.input_invalid", "not_sent")


@pytest.mark.acceptance("pipelex 24")
@pytest.mark.parametrize(("name", "client"), [("openai", "OpenAI"), ("anthropic", "Anthropic")])
def test_a_value_error_of_a_client_is_about_what_it_was_given(lab: Lab, name: str, client: str) -> None:
    sdk = pytest.importorskip(name)
    lab.reset()

    with (
        getattr(sdk, client)(api_key="lab", base_url=lab.url(name, "ok")) as opened,
        pytest.raises(ValueError, match="non-empty") as caught,
    ):
        opened.models.retrieve("")

    report = failwell.describe(caught.value)
    assert (report.kind, report.category, report.certainty) == (
        "validation.input_invalid",
        "user_input",
        "not_sent",
    )
    assert failwell.describe(ValueError("the same outside")).kind == "internal.bug"
    assert lab.calls() == 0


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

    error = _incomplete(name, lab.url("openai", "ok"), wait=wait)
    report = failwell.describe(error)

    assert lab.calls() == 0
    assert report.retryable is False
    if _left_python(error):
        assert report.kind in ("validation.input_invalid", "validation.shape_invalid")
        assert (report.category, report.certainty) == ("user_input", "not_sent")
    else:
        # Python itself could not call the client: the program that made the call has a bug.
        assert (report.kind, type(error)) == ("internal.bug", TypeError)


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


CREDENTIAL = "plain-looking-credential-of-the-lab"
BEARER = "q7Zk2Vb9Xw4Lm1Rt8Yp3"
PASSWORD = "hunter2secret"
QUERY = "u5Jd0Gs6Ha2Nf7Ce9Ko1"
ECHO = (
    f"no page at https://host/v1?keyword=value, the credential {CREDENTIAL} was refused"
    f" at https://user:{PASSWORD}@host/v1?api_key={QUERY}, sent as Authorization: Bearer {BEARER}"
)


@contextmanager
def echoing(name: str) -> Generator[str]:
    """A server that refuses a key as the vendor does, in a sentence that repeats it and more."""
    spoken = dialect(name)
    reply = None if spoken is None else spoken.reply("bad_key", LabCall())
    assert reply is not None
    status = reply.status or 401
    try:
        body = json.dumps(map_texts(json.loads(reply.body), _echo, keys=False)).encode()
    except ValueError:
        body = ECHO.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(status)
            for key, value in reply.headers:
                if key.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(key, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name it has there)
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _echo(text: str) -> str:
    """A sentence is replaced; a code stays, so that the client still takes the reply for its vendor's."""
    return ECHO if " " in text else text


@pytest.mark.acceptance("relavium 8")
@pytest.mark.parametrize("name", [name for name in caller_names() if is_installed(caller(name))])
def test_no_client_leads_an_echoed_credential_into_a_report(name: str) -> None:
    one = caller(name)
    failwell.register_secret(CREDENTIAL)
    with echoing(one.DIALECT) as url:
        reply, error = make(Case(name, "bad_key", modes(one)[0]), url)

    assert error is not None, reply
    report = failwell.describe(error, policy="full", provider=one.PROVIDER)
    written = report.to_json()
    for secret in (CREDENTIAL, BEARER, PASSWORD, QUERY):
        assert secret not in written
    code = report.provider_metadata.code if report.provider_metadata else None
    assert " " not in (code or "")
    if "was refused" in report.message:
        assert "https://host/v1?keyword=value" in report.message
