"""Google ADK: `App(..., plugins=[reliability()])` puts model and tool calls under one retry authority.

ADK's own hook, `on_model_error_callback`, returns one whole response and cannot repeat a stream. So the plugin puts a
copy of its model into each agent that runs; the copy repeats a call before its first response. A tool that raises gives
the model a typed result instead of the exception's text, and the run goes on.

Example:
    >>> from failwell.integrations.google_adk import reliability
    >>> def runner(agent):
    ...     from google.adk.runners import InMemoryRunner
    ...     return InMemoryRunner(agent, plugins=[reliability()])
"""

from collections.abc import Callable
from typing import Any, Unpack, cast

from failwell.agents.tool_errors import ToolCalls
from failwell.calls.model_calls import Copies, ModelCalls, has_field, switch_off_sdk_retries
from failwell.calls.retry_options import RetryParameters
from failwell.calls.sdk_retries import RetriesNotSwitchable, without_sdk_retries
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.errors.report import ErrorReport

__all__ = ["reliability"]

_VIEW = {"kind", "category", "retryable"}
"""The keys of a typed failure, which is no success although ADK takes it for a result."""
_PROVIDERS = {"Gemini": "google", "Gemma": "google", "AnthropicLlm": "anthropic", "Claude": "anthropic"}


def reliability(
    *,
    on_tool_error: Callable[[ErrorReport], object] | None = None,
    **parameters: Unpack[RetryParameters],
) -> Any:
    """A plugin for an `App` or a `Runner`: model calls are repeated as their failures allow, tool errors become results.

    A streamed answer is repeated only before its first piece. Live connections are left alone.

    Args:
        on_tool_error: Called with the report of each failed tool call; `failwell.calls.observe` by default.
        parameters: Those of `failwell.retry`.

    Raises:
        MissingExtra: google-adk is not installed.
        TypeError: a parameter has the wrong type, or there is none of that name.
    """
    calls = ModelCalls("google_adk", **parameters)
    copies = Copies(lambda cls: _methods(cls, calls), _without_client_retries)
    tools = ToolCalls(observer=on_tool_error)

    class Reliability(need("google.adk.plugins.base_plugin").BasePlugin):
        """The plugin that `reliability` returns."""

        async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
            invocation = safe_getattr(callback_context, "_invocation_context")
            if safe_getattr(invocation, "live_request_queue") is None:
                _install(agent, copies)

        async def before_tool_callback(
            self, *, tool: Any, tool_args: Any, tool_context: Any
        ) -> dict[str, Any] | None:
            refusal = tools.refused(tool.name, tool_args, run=_run_of(tool_context))
            return None if refusal is None else refusal.content

        async def after_tool_callback(
            self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any
        ) -> None:
            if not isinstance(result, dict) or not cast("dict[str, Any]", result).keys() >= _VIEW:
                tools.succeeded(tool.name, tool_args, run=_run_of(tool_context))

        async def on_tool_error_callback(
            self, *, tool: Any, tool_args: Any, tool_context: Any, error: BaseException
        ) -> dict[str, Any] | None:
            if not isinstance(error, Exception):
                # ADK calls it for a cancelled tool too, and raises the cancellation whatever it returns.
                return None
            return tools.failed(error, tool=tool.name, arguments=tool_args, run=_run_of(tool_context)).content

    return Reliability(name="failwell")


def _run_of(tool_context: Any) -> str | None:
    return safe_getattr(tool_context, "invocation_id")


def _install(agent: Any, copies: Copies) -> None:
    """Put a copy of the agent's model in its place. ADK may copy the agent for each run."""
    model = safe_getattr(agent, "canonical_model")
    # An agent that calls no model, such as a sequence of others, has none.
    if model is not None and (copy := copies.of(model)) is not model:
        agent.model = copy


def _methods(cls: Any, calls: ModelCalls) -> dict[str, Callable[..., Any]]:
    provider = next((_PROVIDERS[base.__name__] for base in cls.__mro__ if base.__name__ in _PROVIDERS), None)

    def generate_content_async(self: Any, llm_request: Any, stream: bool = False) -> Any:
        http = safe_getattr(safe_getattr(llm_request, "config"), "http_options")
        if safe_getattr(http, "retry_options") is not None:
            http.retry_options = None

        def generate(contents: list[Any]) -> Any:
            llm_request.contents = contents
            return cls.generate_content_async(self, llm_request, stream=stream)

        return calls.astream(provider, llm_request.model or self.model, generate, llm_request.contents)

    return {"generate_content_async": generate_content_async}


def _without_client_retries(model: Any) -> Any:
    copy = model.model_copy(update={"retry_options": None} if has_field(model, "retry_options") else None)
    # Gemini's clients, one for each event loop; they are made again with the options above.
    copy.__dict__.pop("_per_loop_api_client", None)
    switch_off_sdk_retries(copy, "client")
    if (claude := safe_getattr(copy, "_anthropic_client")) is not None:
        copy.__dict__["_anthropic_client"] = _quiet(claude)
    if isinstance(additional := safe_getattr(copy, "_additional_args"), dict):
        # LiteLLM's loop, and that of the client below it.
        setattr(copy, "_additional_args", {**additional, "num_retries": 0, "max_retries": 0})  # noqa: B010
    return copy


def _quiet(client: Any) -> Any:
    try:
        return without_sdk_retries(client)
    except RetriesNotSwitchable:
        # It repeats on its own; the loop notices that and warns.
        return client
