"""From a request's target to its dialect and scenario and back, and from a host to its provider."""

import json
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from failwell.testing.laboratory.dialect import Dialect
from failwell.testing.laboratory.dialects.table import dialect, dialect_names
from failwell.testing.laboratory.scenario import SCENARIOS

_STREAMING_PATHS = (
    ":streamgeneratecontent",
    ":streamrawpredict",
    "/converse-stream",
    "/invoke-with-response-stream",
    "/streams/",
    "/stream/",
)


class NoSuchFailure(LookupError):
    """The lab has no such dialect, scenario or form; the message lists what it has."""


class Route(NamedTuple):
    """Where a request goes."""

    dialect: Dialect
    scenario: str
    form: str | None
    """The form of the delay, if the address names one."""
    rest: str
    """What the SDK appended to its base URL."""


def find_route(target: str) -> Route:
    """The route of a request's target.

    Raises:
        NoSuchFailure: there is no such route.
    """
    # A client that uses the lab as a proxy sends the whole address.
    address = target if target.startswith("/") else urlsplit(target).path
    path = unquote(address.partition("?")[0])
    # Some SDKs join their paths with a slash too many.
    first, _, more = path.lstrip("/").partition("/")
    second, _, rest = more.lstrip("/").partition("/")
    scenario, _, form = second.partition("@")
    if scenario == "refused":
        raise NoSuchFailure(
            "`refused` has an address of its own, at a closed port; use the URL from `lab.url`"
        )
    return check(first, scenario, form or None)._replace(rest=f"/{rest.lstrip('/')}")


def check(name: str, scenario: str, form: str | None = None) -> Route:
    """The route of a dialect and a scenario.

    Raises:
        NoSuchFailure: there is no such dialect, scenario or form, or the dialect declines it.
    """
    entry = dialect(name)
    if entry is None:
        raise NoSuchFailure(f"no dialect `{name}`; there are {_listed(dialect_names())}")
    if scenario not in SCENARIOS:
        raise NoSuchFailure(f"no scenario `{scenario}`; there are {_listed(SCENARIOS)}")
    if entry.answer(scenario) is None:
        why = entry.declines.get(scenario, "it has no reply for it")
        raise NoSuchFailure(f"`{name}` does not show `{scenario}`: {why}")
    if form is not None and scenario != "rate_limited":
        raise NoSuchFailure(f"`{scenario}` has no delay; `@{form}` belongs to `rate_limited`")
    if form is not None and form not in entry.forms:
        raise NoSuchFailure(
            f"`{name}` does not send a delay as `{form}`; it sends it as {_listed(sorted(entry.forms))}"
        )
    return Route(entry, scenario, form, "/")


def wants_stream(route: Route, body: Any) -> bool:
    """Whether the request asks for a stream, in any of the ways that SDKs ask for one.

    Raises:
        NoSuchFailure: it does not, and the scenario exists only in streams.
    """
    stream = cast("dict[str, Any]", body).get("stream") if isinstance(body, dict) else None
    where = f"{route.rest.lower()}/"
    if any(sign in where for sign in _STREAMING_PATHS):
        stream = True
    if stream is None:
        # Chat completions stream only when asked, also those of a provider whose own API does otherwise.
        stream = route.dialect.streams_by_default and not where.endswith("/chat/completions/")
    stream = stream is True
    if SCENARIOS[route.scenario].streams and not stream:
        raise NoSuchFailure(f"`{route.scenario}` is shown only to a call that asks for a stream")
    return stream


def parse(body: bytes) -> Any:
    """A request's body as JSON; `None` if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


_HOSTS = {
    "api.openai.com": "openai",
    "eu.api.openai.com": "openai",
    "us.api.openai.com": "openai",
    "openrouter.ai": "openrouter",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google-genai",
    "aiplatform.googleapis.com": "google-vertex",
    "api.mistral.ai": "mistral",
    "api-inference.huggingface.co": "huggingface",
    "router.huggingface.co": "huggingface",
    "fal.run": "fal",
    "queue.fal.run": "fal",
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
    "api.groq.com": "groq",
    "api.together.xyz": "together",
    "api.together.ai": "together",
    "api.replicate.com": "replicate",
    "api.linkup.so": "linkup",
}
_ENDINGS = {
    ".openai.azure.com": "azure-openai",
    ".cognitiveservices.azure.com": "azure-openai",
    ".services.ai.azure.com": "azure-openai",
    "-aiplatform.googleapis.com": "google-vertex",
}


def dialect_of_call(host: str, path: str) -> str | None:
    """The dialect in which a call is answered: some hosts offer the models of others in their own words."""
    dialect = dialect_of_host(host)
    return "anthropic" if dialect == "google-vertex" and "/publishers/anthropic/" in path else dialect


def dialect_of_host(host: str) -> str | None:
    """The dialect of the provider that answers at `host`; `None` if it is no provider's that the lab knows."""
    name = host.lower().rstrip(".")
    if name in _HOSTS:
        return _HOSTS[name]
    if name.startswith("bedrock-runtime") and name.endswith(
        (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
    ):
        return "bedrock"
    return next((dialect for ending, dialect in _ENDINGS.items() if name.endswith(ending)), None)
