"""Names of models → pydantic-ai models with their own retries off, as the entries of a chain."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.adapters.checked_replies import after_stream
from failwell.adapters.replies import Answer
from failwell.agents.credentials import read_credential, refusal
from failwell.calls.backoff import Backoff
from failwell.calls.chain.entry import Entry
from failwell.calls.sdk_retries import without_sdk_retries
from failwell.errors.fault import Fault
from failwell.errors.faults import Validation
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.frozen import frozen
from failwell.errors.missing_extra import need

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from failwell.agents.scripted_model import Script

SCRIPTED = "scripted"
MODEL_BACKOFF = Backoff(first=1.0, longest=30.0, jitter=0.25)
ATTEMPTS = 3
SILENCE = 600.0
"""Seconds without a piece of an answer after which a call is given up, where the file says nothing else."""
_MARGIN = 10.0
_ALIASES = {"claude": "anthropic", "gemini": "google"}
_NOT_MODELS = frozenset({"copilot", "claude-agent-sdk", "hermes", "aca"})
"""Providers of other engines that run an agent of their own and offer no model."""


class Exhausted(Fault, kind="provider.exhausted"):
    """Every attempt that the models of an agent allow was made, and each failed."""

    called: str
    """The model of the last attempt, as `provider:model`."""
    attempts: int
    last_error: str
    """The kind of the last failure, which is kept as the cause."""

    def summary(self) -> str:
        return f"{self.attempts} attempts failed, the last one of {self.called} with {self.last_error}"


@frozen
class ModelSpec:
    """One model of a chain, as a file names it."""

    name: str
    """`provider:model`, or `scripted:FILE`."""
    attempts: int = ATTEMPTS
    backoff: Backoff = MODEL_BACKOFF
    provider: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The settings of its endpoint: `base_url`, `api_key`."""

    @property
    def parts(self) -> tuple[str, str]:
        """The provider and the model."""
        provider, _, model = self.name.partition(":")
        return provider, model


def model_name(model: str, provider: str | None) -> str:
    """`model` with its provider in front.

    Raises:
        Validation: no provider is named, or one that offers no model.
    """
    first, separator, rest = model.partition(":")
    if separator and rest:
        provider, model = first, rest
    if not provider:
        raise refusal(
            f"the model `{model}` has no provider",
            "write `provider:model`, such as `openai:gpt-5`, or set `runtime.provider`",
        )
    if provider in _NOT_MODELS:
        raise refusal(
            f"the provider `{provider}` runs agents of its own and is not supported",
            "name a provider of models, such as `openai` or `anthropic`",
        )
    return f"{_ALIASES.get(provider, provider)}:{model}"


class Models:
    """The models of one run, each opened once and shared by its turns.

    Scripted ones are opened for each turn, unless `go_on` says that their turns belong together.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], OpenModel] = {}
        self._settings: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._scripts: dict[Path, Script] = {}
        self._answers: Mapping[str, int] | None = None
        self._scripted_models: dict[tuple[Path, str], Model] = {}

    def go_on(self, answers: Mapping[str, int]) -> None:
        """Let scripted models keep their place between turns, after as many answers as each gave before.

        Args:
            answers: The file of a script → how many answers came from it.
        """
        self._answers = answers

    async def entry(
        self,
        spec: ModelSpec,
        *,
        agent: str,
        folder: Path,
        settings: Mapping[str, Any],
        output: Mapping[str, Any] | None = None,
    ) -> Entry[Awaitable[Any]]:
        """The entry of a chain that calls the model.

        Args:
            spec: The model.
            agent: The agent that calls it; a script has replies by agent.
            folder: Where the file of a script is relative to.
            settings: `temperature`, `max_tokens` and the like.
            output: The JSON Schema of the answer, for `scripted:auto`.

        Raises:
            MissingExtra: pydantic-ai is not installed.
            Validation: the model or its endpoint cannot be used as it is written.
        """
        need("pydantic_ai", "agents")
        provider, model = spec.parts
        if provider == SCRIPTED:
            scripted = self._scripted(model, agent, folder, output)
            # Each script stands for an account of its own, so that a rate limit in one does not rest the others.
            label = account = Path(model).name
            call = _caller(lambda: scripted, provider, label, settings)
        else:
            opened = await self._opened(spec)
            label, account = model, ""
            call = _caller(lambda: opened.model, provider, label, settings)
        return Entry(
            provider=provider,
            model=label,
            account=account,
            call=call,
            attempts=spec.attempts,
            backoff=spec.backoff,
        )

    def _scripted(self, name: str, agent: str, folder: Path, output: Mapping[str, Any] | None) -> "Model":
        from failwell.agents.scripted_model import AUTO, ScriptedModel, automatic_script, read_script

        if name == AUTO:
            return ScriptedModel(automatic_script(output), agent)
        path = folder / name
        script = self._scripts.get(path)
        if script is None:
            script = self._scripts[path] = read_script(path)
        if script.is_automatic and not script.replies_for(agent):
            return ScriptedModel(automatic_script(output), agent)
        if self._answers is None:
            return ScriptedModel(script, agent)
        # One conversation: its turns are no executions of their own.
        name = agent.partition("@")[0]
        model = self._scripted_models.get((path, name))
        if model is None:
            model = ScriptedModel(script, name, self._answers.get(path.name, 0))
            self._scripted_models[path, name] = model
        return model

    async def close(self) -> None:
        """Close the connections of every model."""
        models, self._open = self._open, {}
        for model in models.values():
            await model.close()

    async def reread(self, provider: str) -> bool:
        """Read the keys of `provider` again from the keyring or the command of the file; whether one has changed."""
        from failwell.agents.credentials import read_credential

        has_changed = False
        for place, model in self._open.items():
            name, settings = place[0], self._settings[place]
            source = credential_source(settings)
            if name.partition(":")[0] == provider and isinstance(source, Mapping):
                key = await read_credential(cast("object", source), f"the key of `{provider}`")
                if key != model.key:
                    await model.replace(await open_model(name, {**settings, "api_key": key}))
                    has_changed = True
        return has_changed

    async def renew(self, provider: str, key: str) -> None:
        """Let the models of `provider` use another key from their next call on."""
        for place, model in self._open.items():
            name, settings = place[0], self._settings[place]
            if name.partition(":")[0] == provider:
                others = {option: value for option, value in settings.items() if option not in CREDENTIALS}
                await model.replace(await open_model(name, {**others, "api_key": key}))

    async def _opened(self, spec: ModelSpec) -> "OpenModel":
        key = (spec.name, repr(sorted(spec.provider.items(), key=lambda pair: pair[0])))
        self._settings[key] = spec.provider
        model = self._open.get(key)
        if model is None:
            model = self._open[key] = await open_model(spec.name, spec.provider)
        return model


def _caller(
    model: "Callable[[], Model]", provider: str, label: str, settings: Mapping[str, Any]
) -> Callable[..., Any]:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelResponse

    from failwell.calls.streams.asynchronous import limit_astream
    from failwell.calls.streams.timeouts import StreamTimeouts

    own = _model_settings(model(), provider, settings)
    silence: float = settings.get("timeout") or SILENCE
    # A client with a timer of its own knows whether anything was sent, so it comes first. Some have none.
    silence += _MARGIN if "timeout" in own else 0.0
    timeouts = StreamTimeouts(first=silence, idle=settings.get("idle_timeout_seconds") or silence)

    async def pieces(
        messages: "list[ModelMessage]", parameters: "ModelRequestParameters"
    ) -> "AsyncGenerator[str | ModelResponse]":
        # Streamed, because some providers refuse long answers in one piece.
        async with model_request_stream(
            model(), messages, model_settings=own, model_request_parameters=parameters
        ) as stream:
            async for event in stream:
                yield _text_of(event)
            response = stream.get()
        check_response(response, provider, label)
        yield response

    async def shown(
        messages: "list[ModelMessage]", parameters: "ModelRequestParameters"
    ) -> "AsyncGenerator[str | ModelResponse]":
        async for piece in limit_astream(pieces(messages, parameters), timeouts):
            if piece:
                yield piece

    async def whole(messages: "list[ModelMessage]", parameters: "ModelRequestParameters") -> "ModelResponse":
        response: ModelResponse | None = None
        async for piece in limit_astream(pieces(messages, parameters), timeouts):
            response = piece if isinstance(piece, ModelResponse) else None
        assert response is not None, "a stream ends with its response"
        return response

    def call(
        messages: "list[ModelMessage]",
        parameters: "ModelRequestParameters",
        *,
        streamed: bool = False,
        **_limits: Any,
    ) -> Any:
        """The response, or with `streamed` the pieces of its text and then the response."""
        return (shown if streamed else whole)(messages, parameters)

    return call


def _model_settings(model: "Model", provider: str, settings: Mapping[str, Any]) -> "ModelSettings":
    own: ModelSettings = {"max_retries": 0}
    for key in ("temperature", "max_tokens", "timeout", "thinking"):
        if settings.get(key) is not None:
            own[key] = settings[key]
    if settings.get("headers"):
        own["extra_headers"] = dict(settings["headers"])
    if provider == "huggingface":
        # It counts the tokens of a stream only when it is asked to, and Pydantic AI does not ask.
        own["extra_body"] = {"stream_options": {"include_usage": True}}
    ignored = safe_getattr(model, "unsupported_settings", default=())
    for key in ("max_retries", "timeout"):
        # The retries and the silence of such a model are limited elsewhere, and it would warn about each call.
        if key in ignored:
            own.pop(key, None)
    return own


def _text_of(event: object) -> str:
    """The text that an event of a stream adds to the answer; nothing for other events."""
    part, delta = safe_getattr(event, "part"), safe_getattr(event, "delta")
    if safe_getattr(event, "event_kind") == "part_start" and safe_getattr(part, "part_kind") == "text":
        return str(safe_getattr(part, "content") or "")
    return str(safe_getattr(delta, "content_delta") or "") if _is_text(delta) else ""


def _is_text(delta: object) -> bool:
    return safe_getattr(delta, "part_delta_kind") == "text"


def check_response(response: "ModelResponse", provider: str, model: str) -> None:
    """Raise if the answer is cut off, refused or empty, or announces a tool call that is not there.

    Raises:
        ProviderCapability: it is; the tokens that it cost are in the details.
        ProviderTransient: its stream ended too early, or the provider threw it away.
    """
    from pydantic_ai.messages import ToolCallPart

    has_calls = any(isinstance(part, ToolCallPart) for part in response.parts)
    answer = Answer()
    answer.known = True
    answer.model = model
    answer.usage = usage_of(response)
    answer.refused = response.finish_reason == "content_filter"
    answer.spoke = has_calls or any(
        part.part_kind != "thinking" and part.has_content() for part in response.parts
    )
    answer.stop(_stop_reason(response))
    answer.broken_call = response.finish_reason == "tool_call" and not has_calls
    fault = after_stream(provider, answer, 2)
    if fault is not None:
        raise fault


def _stop_reason(response: "ModelResponse") -> str | None:
    """Why the answer ended, in the provider's word; `None` if it never said so, because its stream was cut off."""
    details = response.provider_details or {}
    word: object = details.get("finish_reason")
    if isinstance(word, str):
        return word
    # Pydantic AI assumes `stop` for a chat completion that was cut off. What else such a stream said is in the details.
    return None if response.finish_reason == "stop" and "timestamp" in details else response.finish_reason


def usage_of(response: Any) -> dict[str, int]:
    """The tokens of a response, cached ones apart from the rest of the input."""
    usage = getattr(response, "usage", None)
    if usage is None:
        return {}
    read, write = getattr(usage, "cache_read_tokens", 0), getattr(usage, "cache_write_tokens", 0)
    tokens = {
        "input_tokens": max(0, getattr(usage, "input_tokens", 0) - read - write),
        "output_tokens": getattr(usage, "output_tokens", 0),
        "cache_read_tokens": read,
        "cache_write_tokens": write,
    }
    return {name: count for name, count in tokens.items() if count}


def no_model(agent: str) -> Validation:
    """The refusal of an agent that names no model."""
    return refusal(
        f"the agent `{agent}` has no model", "set `model: provider:model`, or `runtime.default_model`"
    )


_SECONDS = 600.0
CREDENTIALS = ("api_key", "bearer_token", "auth_token")


class OpenModel:
    """A model with its connections."""

    def __init__(self, model: "Model", clients: Sequence[Any] = (), key: str | None = None) -> None:
        self.model = model
        self.clients = clients
        self.key = key
        """The key that the file names; `None` where the SDK reads one itself."""

    async def replace(self, other: "OpenModel") -> None:
        """Be `other` from now on, and close the connections from before."""
        old = OpenModel(self.model, self.clients)
        self.model, self.clients, self.key = other.model, other.clients, other.key
        await old.close()

    async def close(self) -> None:
        """Close the connections."""
        await self.model.__aexit__(None, None, None)
        for client in self.clients:
            await client.aclose()


async def open_model(name: str, settings: Mapping[str, Any]) -> OpenModel:
    """The model `provider:model`, at the endpoint and with the key that the settings name.

    Raises:
        Validation: there is no such provider, or its key or its SDK is missing.
    """
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    options = await _options(name, settings)
    clients: list[Any] = []
    try:
        model = infer_model(name, lambda provider: _provider(provider, options, clients))
    except (UserError, ValueError) as error:
        # Its texts name an option or a variable of the environment, and never a value.
        raise refusal(
            # The first sentence says what is missing; the rest is about the library's own functions.
            f"the model `{name}` cannot be used: {str(error).partition('. ')[0].partition(' or pass it')[0]}",
            "correct the name, or set the variable",
        ) from error
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        wanted = f"`{package}`, " if package else ""
        raise refusal(
            f"the model `{name}` needs {wanted}which is not installed",
            f"pip install 'pydantic-ai-slim[{name.partition(':')[0]}]'",
        ) from error
    await model.__aenter__()
    return OpenModel(model, clients, options.get("api_key"))


async def _options(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    options: dict[str, str] = {}
    if settings.get("base_url"):
        options["base_url"] = settings["base_url"]
    key = await read_credential(credential_source(settings), f"the key of `{name.partition(':')[0]}`")
    if key is not None:
        options["api_key"] = key
    return options


def credential_source(settings: Mapping[str, Any]) -> Any:
    """Where a file says that the key is, or the key; `None` if it says nothing."""
    return next((settings[key] for key in CREDENTIALS if settings.get(key)), None)


def _provider(name: str, options: Mapping[str, str], clients: list[Any]) -> Any:
    from pydantic_ai.providers import infer_provider, infer_provider_class

    if name == "cohere" and "base_url" in options:
        return _cohere(options, clients)
    if not options:
        provider = infer_provider(name)
    else:
        make = cast("Callable[..., Any]", infer_provider_class(name))
        try:
            provider = make(**options)
        except TypeError as error:
            words = " and ".join(f"`{option}`" for option in options)
            raise refusal(f"the provider `{name}` does not take {words}", "remove it") from error
    if name == "bedrock":
        # The settings of a call switch off the retries of the other clients, and not those of boto3.
        without_sdk_retries(provider.client)
    return provider


def _cohere(options: Mapping[str, str], clients: list[Any]) -> Any:
    """Cohere at an address of the file. Pydantic AI takes the address from the environment alone."""
    from os import environ

    from cohere import AsyncClientV2
    from httpx import AsyncClient
    from pydantic_ai.providers.cohere import CohereProvider

    key = options.get("api_key") or environ.get("CO_API_KEY")
    if not key:
        raise refusal("the provider `cohere` has no key", "set `api_key`, or the variable `CO_API_KEY`")
    connections = AsyncClient(timeout=_SECONDS)
    clients.append(connections)
    client = AsyncClientV2(api_key=key, base_url=options["base_url"], httpx_client=connections)
    return CohereProvider(cohere_client=client)
