"""Names of models → pydantic-ai models with their own retries off, as the entries of a chain."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell._extras import need
from failwell.decision.backoff import Backoff
from failwell.fault.axes import ActionKind
from failwell.fault.base import Fault
from failwell.fault.classes import ProviderCapability, Validation
from failwell.fault.facts import UserAction
from failwell.fault.frozen import frozen
from failwell.runtime.fallback_entry import Entry

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from failwell.turns.script_file import Script

SCRIPTED = "scripted"
MODEL_BACKOFF = Backoff(first=1.0, longest=30.0, jitter=0.25)
ATTEMPTS = 3
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
    """The settings of its endpoint: `base_url`, `api_key`, `headers`."""

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
        raise _refusal(
            f"the model `{model}` has no provider",
            "write `provider:model`, such as `openai:gpt-5`, or set `runtime.provider`",
        )
    if provider in _NOT_MODELS:
        raise _refusal(
            f"the provider `{provider}` runs agents of its own and is not supported",
            "name a provider of models, such as `openai` or `anthropic`",
        )
    return f"{_ALIASES.get(provider, provider)}:{model}"


class Models:
    """The models of one run, each opened once and shared by its turns.

    Scripted ones are opened for each turn, unless `go_on` says that their turns belong together.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Model] = {}
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
            opened = self._scripted(model, agent, folder, output)
            # Each script stands for an account of its own, so that a rate limit in one does not rest the others.
            label = account = Path(model).name
        else:
            opened = await self._opened(spec)
            label, account = model, ""
        call = _caller(opened, provider, label, settings)
        return Entry(
            provider=provider,
            model=label,
            account=account,
            call=call,
            attempts=spec.attempts,
            backoff=spec.backoff,
        )

    def _scripted(self, name: str, agent: str, folder: Path, output: Mapping[str, Any] | None) -> "Model":
        from failwell.turns.automatic_replies import AUTO, automatic_script
        from failwell.turns.script_file import read_script
        from failwell.turns.scripted_model import ScriptedModel

        if name == AUTO:
            return ScriptedModel(automatic_script(output), agent)
        path = folder / name
        script = self._scripts.get(path)
        if script is None:
            script = self._scripts[path] = read_script(path)
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
            await model.__aexit__(None, None, None)

    async def _opened(self, spec: ModelSpec) -> "Model":
        key = (spec.name, repr(sorted(spec.provider.items(), key=lambda pair: pair[0])))
        model = self._open.get(key)
        if model is None:
            model = self._open[key] = _open_model(spec)
            await model.__aenter__()
        return model


def _open_model(spec: ModelSpec) -> "Model":
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    name = spec.name
    try:
        return infer_model(name, lambda provider: _provider(provider, spec.provider))
    except (UserError, ValueError) as error:
        # Its texts name an option or a variable of the environment, and never a value.
        raise _refusal(
            # The first sentence says what is missing; the rest is about the library's own functions.
            f"the model `{name}` cannot be used: {str(error).partition('. ')[0].partition(' or pass it')[0]}",
            "correct the name, or set the variable",
        ) from error
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        wanted = f"`{package}`, " if package else ""
        raise _refusal(
            f"the model `{name}` needs {wanted}which is not installed",
            f"pip install 'pydantic-ai-slim[{spec.parts[0]}]'",
        ) from error


def _provider(name: str, settings: Mapping[str, Any]) -> Any:
    from pydantic_ai.providers import infer_provider, infer_provider_class

    options = {
        option: settings[key]
        for key, option in (("base_url", "base_url"), ("api_key", "api_key"), ("bearer_token", "api_key"))
        if settings.get(key)
    }
    if not options:
        return infer_provider(name)
    make = cast("Callable[..., Any]", infer_provider_class(name))
    try:
        return make(**options)
    except TypeError as error:
        words = " and ".join(f"`{option}`" for option in options)
        raise _refusal(f"the provider `{name}` does not take {words}", "remove it") from error


def _caller(
    model: "Model", provider: str, label: str, settings: Mapping[str, Any]
) -> "Callable[..., Awaitable[ModelResponse]]":
    from pydantic_ai.direct import model_request_stream

    own: ModelSettings = {"max_retries": 0}
    for key in ("temperature", "max_tokens", "timeout", "thinking"):
        if settings.get(key) is not None:
            own[key] = settings[key]
    if settings.get("headers"):
        own["extra_headers"] = dict(settings["headers"])

    async def pieces(
        messages: "list[ModelMessage]", parameters: "ModelRequestParameters"
    ) -> "AsyncIterator[str | ModelResponse]":
        async with model_request_stream(
            model, messages, model_settings=own, model_request_parameters=parameters
        ) as stream:
            async for event in stream:
                text = _text_of(event)
                if text:
                    yield text
            response = stream.get()
        check_response(response, provider, label)
        yield response

    async def whole(messages: "list[ModelMessage]", parameters: "ModelRequestParameters") -> "ModelResponse":
        # Streamed, because some providers refuse long answers in one piece. Nothing of it is shown before its end.
        response: Any = None
        async for piece in pieces(messages, parameters):
            response = piece
        return response

    def call(
        messages: "list[ModelMessage]",
        parameters: "ModelRequestParameters",
        *,
        streamed: bool = False,
        **_limits: Any,
    ) -> Any:
        """The response, or with `streamed` the pieces of its text and then the response."""
        return (pieces if streamed else whole)(messages, parameters)

    return call


def _text_of(event: object) -> str:
    """The text that an event of a stream adds to the answer."""
    part = getattr(event, "part", None)
    if getattr(event, "event_kind", "") == "part_start" and getattr(part, "part_kind", "") == "text":
        return getattr(part, "content", "")
    delta = getattr(event, "delta", None)
    return getattr(delta, "content_delta", "") if getattr(delta, "part_delta_kind", "") == "text" else ""


def check_response(response: "ModelResponse", provider: str, model: str) -> None:
    """Raise if the answer is cut off, refused or empty, or announces a tool call that is not there.

    Raises:
        ProviderCapability: it is; the tokens that it cost are in the details.
    """
    from pydantic_ai.messages import ToolCallPart

    calls = any(isinstance(part, ToolCallPart) for part in response.parts)
    finish = response.finish_reason
    kind, reason = None, ""
    if finish == "length":
        kind, reason = "provider.output_truncated", "length"
    elif finish == "content_filter":
        kind, reason = "provider.content_refused", "content_filter"
    elif finish == "tool_call" and not calls:
        kind, reason = "provider.output_invalid", "a tool call was announced and is missing"
    elif not response.parts:
        kind, reason = "provider.output_invalid", "the answer is empty"
    if kind is not None:
        raise ProviderCapability(
            kind=kind,
            provider=provider,
            model=model,
            details={"stop_reason": reason, "usage": usage_of(response)},
        )


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


def _refusal(message: str, advice: str) -> Validation:
    return Validation(
        kind="validation.config_invalid",
        message=f"{message}; {advice}",
        user_action=UserAction(ActionKind.FIX_CONFIGURATION, advice),
        caller_facing=True,
    )


def no_model(agent: str) -> Validation:
    """The refusal of an agent that names no model."""
    return _refusal(
        f"the agent `{agent}` has no model", "set `model: provider:model`, or `runtime.default_model`"
    )
