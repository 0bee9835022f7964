"""What openai-agents raises says what ended the run, and tells nothing of the conversation."""

import asyncio
import json
from typing import Any

import pytest

from failwell.adapters.describe import describe
from failwell.errors.report import ErrorReport
from tests.sdks.frameworks.replies import NO_KEY, NO_QUOTA, OVERLOADED, Reply, completion, script, tool_call

agents: Any = pytest.importorskip("agents", reason="`make test-sdks` runs it with openai-agents")
openai: Any = pytest.importorskip("openai")
pydantic: Any = pytest.importorskip("pydantic")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
SECRET = "the-text-nobody-may-see"
Answer = pydantic.create_model("Answer", number=(int, ...))


def failure(*replies: Reply, **parts: Any) -> tuple[ErrorReport, int]:
    """The report of a run against these replies, and the calls that it made."""

    async def run(url: str) -> BaseException:
        client = openai.AsyncOpenAI(base_url=url, api_key="key", max_retries=0)
        model = agents.OpenAIChatCompletionsModel("m", client)
        agent = agents.Agent(name="agent", model=model, **parts)
        with pytest.raises(Exception) as caught:
            await agents.Runner.run(agent, SECRET, max_turns=2)
        await client.close()
        return caught.value

    agents.set_tracing_disabled(True)
    with script(*replies) as server:
        error = asyncio.run(run(server.url))
        return describe(error), len(server.requests)


def a_tool(**options: Any) -> Any:
    def look(number: int) -> str:
        """Look it up."""
        raise PermissionError(13, SECRET)

    return agents.function_tool(look, **options)


def test_each_end_of_a_run_has_its_kind() -> None:
    call = tool_call("look", '{"number": 1}')

    @agents.input_guardrail
    async def guard(context: Any, agent: Any, text: Any) -> Any:
        return agents.GuardrailFunctionOutput(output_info=SECRET, tripwire_triggered=True)

    loud = a_tool(failure_error_function=None)
    cases: dict[str, tuple[tuple[Reply, ...], dict[str, Any]]] = {
        "limit.turn_limit": ((call,), {"tools": [a_tool()]}),
        "provider.output_invalid": ((tool_call("missing", "{}"),), {"tools": [loud]}),
        "provider.content_refused": ((completion(refusal=SECRET),), {"output_type": Answer}),
        "provider.auth": ((NO_KEY,), {}),
        "provider.quota_exhausted": ((NO_QUOTA,), {}),
        "provider.overloaded": ((OVERLOADED,), {}),
    }
    reports = {kind: failure(*replies, **parts)[0] for kind, (replies, parts) in cases.items()}
    guarded, calls = failure(completion(content=SECRET), input_guardrails=[guard])

    assert {kind: report.kind for kind, report in reports.items()} == {kind: kind for kind in cases}
    assert guarded.kind == "provider.content_refused"
    assert calls <= 1
    assert SECRET not in json.dumps([report.to_dict() for report in (*reports.values(), guarded)])


def test_an_answer_that_does_not_fit_its_type_is_the_models() -> None:
    report, _calls = failure(completion(content=SECRET), output_type=Answer)

    assert report.kind == "provider.output_invalid"
    assert not report.retryable


def test_what_a_tool_raised_decides_where_the_run_ends_with_it() -> None:
    report, calls = failure(tool_call("look", '{"number": 1}'), tools=[a_tool(failure_error_function=None)])

    assert report.evidence[-1].rule == "agents.UserError"
    assert report.kind != "validation.config_invalid"
    assert calls == 1
    assert SECRET not in json.dumps(report.to_dict())


def test_a_mistake_in_the_agent_is_configuration() -> None:
    report = describe(agents.UserError(SECRET))

    assert (report.kind, report.category.value) == ("validation.config_invalid", "configuration")


def test_a_sandbox_says_by_its_code_what_failed() -> None:
    errors: Any = pytest.importorskip("agents.sandbox.errors")
    code = errors.ErrorCode
    cases = {
        code.EXEC_TIMEOUT: "tool.timeout",
        code.GIT_MISSING_IN_IMAGE: "extension.dependency_missing",
        code.WORKSPACE_READ_NOT_FOUND: "validation.path_not_found",
        code.SNAPSHOT_NOT_RESTORABLE: "session.no_snapshot",
        code.APPLY_PATCH_INVALID_DIFF: "tool.input_invalid",
    }

    def raised(error_code: Any, **facts: Any) -> ErrorReport:
        return describe(
            errors.SandboxRuntimeError(message=SECRET, error_code=error_code, op="exec", context={}, **facts)
        )

    assert {each: raised(each).kind for each in cases} == cases
    assert all(raised(each).kind != "internal.sandbox_error" for each in code)
    assert not raised(code.WORKSPACE_ARCHIVE_READ_ERROR, retryable=False).retryable
