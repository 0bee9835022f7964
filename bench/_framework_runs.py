"""One model call, tool call or task of each framework on a stub: plain, with a hook that does nothing, with the plugin."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import Any, NamedTuple

Run = Callable[[], object]


class Runs(NamedTuple):
    """One run of an agent that makes one model call; what it returns may have to be awaited."""

    plain: Run
    empty: Run
    """With a hook that does nothing; the plain one where a plugin needs none."""
    plugin: Run


def pydantic_ai() -> Runs:
    from failwell.integrations.pydantic_ai import reliability

    agents: Any = import_module("pydantic_ai")
    base: Any = import_module("pydantic_ai.capabilities").AbstractCapability
    models: Any = import_module("pydantic_ai.models.function")
    messages: Any = import_module("pydantic_ai.messages")
    answer = messages.ModelResponse(parts=[messages.TextPart("done")])

    async def respond(_messages: Any, _info: Any) -> Any:
        return answer

    async def wrap_model_request(_self: Any, _ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return await handler(request_context)

    model = models.FunctionModel(respond)
    empty = type("Empty", (base,), {"wrap_model_request": wrap_model_request})
    plain, hooked, reliable = (
        agents.Agent(model, capabilities=capabilities)
        for capabilities in ([], [empty()], [reliability()])
    )  # fmt: skip
    return Runs(lambda: plain.run("hello"), lambda: hooked.run("hello"), lambda: reliable.run("hello"))


def openai_agents() -> Runs:
    from failwell.integrations.openai_agents import reliability

    agents: Any = import_module("agents")
    items: Any = import_module("openai.types.responses")
    agents.set_tracing_disabled(True)
    text = items.ResponseOutputText(text="done", type="output_text", annotations=[])
    message = items.ResponseOutputMessage(
        id="m", content=[text], role="assistant", status="completed", type="message"
    )

    async def get_response(_self: Any, *_args: Any, **_kwargs: Any) -> Any:
        return agents.ModelResponse(output=[message], usage=agents.Usage(), response_id=None)

    stub = type("Stub", (agents.Model,), {"get_response": get_response, "stream_response": get_response})
    agent, other = (agents.Agent(name="a", model=stub()) for _ in range(2))

    def keep(data: Any) -> Any:
        return data.model_data

    retry = import_module("agents.retry").ModelRetrySettings(max_retries=2, policy=keep)
    settings = agents.ModelSettings(retry=retry)
    empty = agents.RunConfig(call_model_input_filter=keep, model_settings=settings)
    config = reliability()
    run: Any = agents.Runner.run
    return Runs(
        lambda: run(agent, "hello"),
        lambda: run(agent, "hello", run_config=empty),
        lambda: run(other, "hello", run_config=config),
    )


def langchain() -> Runs:
    from failwell.integrations.langchain import reliability

    agents: Any = import_module("langchain.agents")
    base: Any = import_module("langchain.agents.middleware").AgentMiddleware
    models: Any = import_module("langchain_core.language_models.fake_chat_models")

    async def wrap(_self: Any, request: Any, handler: Any) -> Any:
        return await handler(request)

    # A middleware for tools brings a node for them.
    empty = type("Empty", (base,), {"awrap_model_call": wrap, "awrap_tool_call": wrap})
    model = models.FakeListChatModel(responses=["done"])
    other = models.FakeListChatModel(responses=["done"])
    plain, hooked = (agents.create_agent(model, [], middleware=used) for used in ((), (empty(),)))
    reliable = agents.create_agent(other, [], middleware=(reliability(),))
    question = {"messages": [("user", "hello")]}
    return Runs(*(_bind(agent.ainvoke, question) for agent in (plain, hooked, reliable)))


def langgraph() -> Runs:
    from failwell.integrations.langgraph import reliability

    graphs: Any = import_module("langgraph.graph")
    policy: Any = import_module("langgraph.types").RetryPolicy()

    async def model(_state: Any) -> Any:
        return {"messages": [("ai", "done")]}

    def graph(**defaults: Any) -> Any:
        builder = graphs.StateGraph(graphs.MessagesState)
        builder = builder.set_node_defaults(**defaults) if defaults else builder
        builder.add_node("model", model)
        builder.add_edge(graphs.START, "model")
        return builder.compile()

    question = {"messages": [("user", "hello")]}
    compiled = (graph(), graph(retry_policy=policy), graph(**reliability()))
    return Runs(*(_bind(each.ainvoke, question) for each in compiled))


def google_adk() -> Runs:
    from failwell.integrations.google_adk import reliability

    agents: Any = import_module("google.adk.agents")
    apps: Any = import_module("google.adk.apps")
    base: Any = import_module("google.adk.models.base_llm").BaseLlm
    plugins: Any = import_module("google.adk.plugins.base_plugin")
    response: Any = import_module("google.adk.models.llm_response").LlmResponse
    runners: Any = import_module("google.adk.runners")
    types: Any = import_module("google.genai.types")
    content = types.Content(role="model", parts=[types.Part(text="done")])
    question = types.Content(role="user", parts=[types.Part(text="hello")])

    async def generate(_self: Any, _request: Any, stream: bool = False) -> Any:  # noqa: ARG001  (its name there)
        yield response(content=content)

    stub = type("Stub", (base,), {"generate_content_async": generate})

    def runner(*hooks: Any) -> Callable[[], Any]:
        agent = agents.LlmAgent(name="agent", model=stub(model="stub"))
        running = runners.InMemoryRunner(app=apps.App(name="lab", root_agent=agent, plugins=[*hooks]))

        async def run() -> None:
            session = await running.session_service.create_session(app_name="lab", user_id="user")
            async for _ in running.run_async(user_id="user", session_id=session.id, new_message=question):
                continue

        return run

    return Runs(runner(), runner(plugins.BasePlugin(name="empty")), runner(reliability()))


def litellm() -> Runs:
    from failwell.integrations.litellm import reliability

    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    library: Any = import_module("litellm")
    library.suppress_debug_info = True
    messages = [{"role": "user", "content": "hello"}]
    options = {"model": "openai/gpt-4o-mini", "messages": messages, "mock_response": "done"}
    reliable = reliability(library.completion)
    return Runs(*(_bind(call, **options) for call in (library.completion, library.completion, reliable)))


def instructor() -> Runs:
    from failwell.integrations.instructor import reliability

    library: Any = import_module("instructor")
    sdk: Any = import_module("openai")
    chat: Any = import_module("openai.types.chat")
    schema: Any = import_module("pydantic").create_model("Greeting", name=(str, ...))
    call = {"id": "t", "type": "function", "function": {"name": "Greeting", "arguments": '{"name": "Ada"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    fields = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    completion = chat.ChatCompletion.model_validate(fields)

    async def create(**_kwargs: Any) -> Any:
        return completion

    def client() -> Any:
        openai = sdk.AsyncOpenAI(api_key="sk-bench")
        openai.chat.completions.create = create
        return library.from_openai(openai)

    options = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "response_model": schema}
    plain, reliable = client(), reliability(client())
    return Runs(*(_bind(each.create, **options) for each in (plain, plain, reliable)))


def _bind(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Run:
    return lambda: function(*args, **kwargs)


class _ClaudeCode:
    """A transport of the Claude Agent SDK that answers at once."""

    def __init__(self) -> None:
        self._written: asyncio.Queue[str] = asyncio.Queue()

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def write(self, data: str) -> None:
        await self._written.put(data)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            message = json.loads(await self._written.get())
            if message["type"] == "control_request":
                reply: dict[str, Any] = {
                    "subtype": "success",
                    "request_id": message["request_id"],
                    "response": {},
                }
                yield {"type": "control_response", "response": reply}
            elif message["type"] == "user":
                break
        content = [{"type": "text", "text": "done"}]
        answer = {"role": "assistant", "model": "m", "content": content}
        yield {"type": "assistant", "session_id": "s", "message": answer}
        end = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "session_id": "s"}
        yield {**end, "duration_ms": 1, "duration_api_ms": 1}

    async def close(self) -> None:
        """There is nothing to close."""

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        """The queue has no end."""


def claude_agent_sdk() -> Runs:
    from failwell.integrations.claude_agent_sdk import hooks, reliability

    sdk: Any = import_module("claude_agent_sdk")

    def run_of(query: Any, **options: Any) -> Run:
        settings = sdk.ClaudeAgentOptions(**options)

        async def run() -> None:
            async for _message in query(prompt="hello", options=settings, transport=_ClaudeCode()):
                pass

        return run

    return Runs(run_of(sdk.query), run_of(sdk.query, hooks=hooks()), run_of(reliability()))
