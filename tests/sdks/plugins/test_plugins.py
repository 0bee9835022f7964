"""Every plugin with its real framework, against the lab: how many calls arrive, how long it waits, how it ends."""

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from failwell.calls import AttemptFailed, Guard, StreamTimeouts
from failwell.calls.attempt_loop import AttemptEvent
from failwell.calls.circuit_breaker import BreakerPolicy
from failwell.testing import FakeClock
from failwell.testing.laboratory.lab_reply import LabCall, Reply
from tests.sdks.plugins.scenarios import (
    FRAMEWORKS,
    OK,
    SCENARIOS,
    SECRET,
    Result,
    Scenario,
    expected,
    framework,
    installed,
    play,
    title_of,
    warm_up,
)
from tests.sdks.plugins.scripted_lab import Step, lab_reply, scripted_lab, stalls_in_text

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]
_TABLE = os.environ.get("FAILWELL_FRAMEWORKS")
# One process for each framework: a server or a cluster is started once.
CASES = [
    pytest.param(name, scenario, marks=pytest.mark.xdist_group(name))
    for name in FRAMEWORKS
    for scenario in SCENARIOS
]


def waits_itself(plugin: str) -> bool:
    return getattr(framework(plugin), "WAITS_ITSELF", False)


def check_what_is_the_same_everywhere(scenario: str, aim: Scenario, result: Result) -> None:
    assert (result.calls, result.outcome) == (aim.calls, aim.outcome), (scenario, result)
    assert aim.type in (None, result.error_type), (scenario, result)
    assert not result.sat_through_stall, (scenario, result)
    # The model gets the kind of a tool's failure, and no request holds its text.
    assert SECRET not in result.sent, (scenario, result)
    assert scenario != "tool_error" or "tool.failed" in result.seen, (scenario, result)


@pytest.mark.parametrize("plugin", [name for name in FRAMEWORKS if not waits_itself(name)])
def test_with_the_plugin_every_scenario_ends_as_it_should(plugin: str) -> None:
    module = framework(plugin)
    if installed(module) is None:
        pytest.skip(f"`make test-sdks` runs it with {module.PACKAGE}")

    for scenario in SCENARIOS:
        if scenario in getattr(module, "ABSENT", {}):
            continue
        aim = expected(module, scenario)
        clock = FakeClock()
        options: dict[str, Any] = {"clock": clock, "jitter": lambda: 0.5}
        if aim.stream:
            # The server takes real time.
            options = {"stream": StreamTimeouts(idle=0.3)}
        result = play(module, scenario, partial(module.after, **options))
        assert aim.waits is None or tuple(clock.slept) == aim.waits, (scenario, clock.slept)
        check_what_is_the_same_everywhere(scenario, aim, result)


@pytest.mark.parametrize("plugin", [name for name in FRAMEWORKS if not waits_itself(name)])
def test_messages_that_are_too_long_are_shortened_once_or_it_is_refused(plugin: str) -> None:
    module = framework(plugin)
    if installed(module) is None:
        pytest.skip(f"`make test-sdks` runs it with {module.PACKAGE}")
    answers: tuple[Step, ...] = getattr(module, "STEPS", {}).get("ok", (OK,))
    lengths: list[int] = []

    def shrink(messages: list[Any]) -> list[Any]:
        lengths.append(len(messages))
        # Longer, because the shortest conversation has one message.
        return [*messages, *messages]

    with scripted_lab(getattr(module, "DIALECT", "openai"), lab_reply("context_too_long"), *answers) as lab:
        if getattr(module, "NO_SHRINK", False):
            with pytest.raises(TypeError, match="cannot keep `shrink`"):
                module.after(lab.url, shrink=shrink)
            return
        module.after(lab.url, shrink=shrink)(stream=False)

    assert len(lengths) == 1
    assert len(lab.requests) == 1 + len(answers)
    assert len(json.dumps(lab.requests[1])) > len(json.dumps(lab.requests[0]))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "plugin",
    [
        "google_adk",
        "mcp",
        "openai_agents",
        "pydantic_ai",
        pytest.param("claude_agent_sdk", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_cancelled_during_a_call_leaves_the_next_probe_of_the_guard_free(
    monkeypatch: pytest.MonkeyPatch, plugin: str, stream: bool
) -> None:
    module = framework(plugin)
    if installed(module) is None:
        pytest.skip(f"`make test-sdks` runs it with {module.PACKAGE}")
    dialect = getattr(module, "DIALECT", "openai")
    clock = FakeClock()
    guard = Guard(clock=clock, breaker=BreakerPolicy(failures=1, rest=10))
    with scripted_lab(dialect, lab_reply("overloaded")) as lab, pytest.raises(Exception, match=r"."):
        module.after(lab.url, guard=guard, clock=clock, attempts=1)(stream=stream)
    assert [state.breaker.position for state in guard.states()] == ["open"]
    clock.advance(11)

    cancel: list[Callable[[], object]] = []

    def cancels(dialect: str, call: LabCall) -> Reply:
        cancel[0]()
        reply = stalls_in_text(dialect, call) if call.stream else lab_reply("ok")(dialect, call)
        return reply if call.stream else replace(reply, pieces=(reply.body[:1], reply.body[1:]), stall="body")

    async def cancellable(main: Coroutine[Any, Any, Any]) -> Any:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(main)
        cancel.append(lambda: loop.call_soon_threadsafe(task.cancel))
        return await task

    run = asyncio.run

    def run_cancellable(main: Coroutine[Any, Any, Any]) -> Any:
        return run(cancellable(main))

    with scripted_lab(dialect, cancels) as lab, pytest.raises(asyncio.CancelledError):
        ask = module.after(lab.url, guard=guard, clock=clock, attempts=1)
        monkeypatch.setattr(asyncio, "run", run_cancellable)
        ask(stream=stream)

    assert len(lab.requests) == 1
    assert [state.breaker.probing for state in guard.states()] == [0]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "plugin",
    [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in FRAMEWORKS if waits_itself(name)],
)
def test_an_engine_waits_as_long_as_the_plugin_decides(plugin: str) -> None:
    module = framework(plugin)
    if installed(module) is None:
        pytest.skip(f"`make test-sdks` runs it with {module.PACKAGE}")

    for scenario in SCENARIOS:
        if scenario in getattr(module, "ABSENT", {}):
            continue
        aim = expected(module, scenario)
        waits: list[float] = []

        def note(event: AttemptEvent, waits: list[float] = waits) -> None:
            if isinstance(event, AttemptFailed) and event.attempt.wait is not None:
                waits.append(event.attempt.wait)

        options: dict[str, Any] = {"watcher": note, "jitter": lambda: 0.5}
        if aim.stream:
            options["stream"] = StreamTimeouts(idle=2.5)
        result = play(module, scenario, partial(module.after, **options))
        wanted = getattr(module, "BACKOFF", (1.0, 2.0))[: aim.calls - 1] if aim.waits is None else aim.waits
        assert getattr(module, "UNWATCHED", False) or tuple(waits) == wanted, (scenario, waits)
        # A tool call is followed by a request without a wait.
        assert len(result.gaps) >= len(wanted), (scenario, result)
        assert all(gap >= wait for gap, wait in zip(result.gaps, wanted, strict=False)), (scenario, result)
        check_what_is_the_same_everywhere(scenario, aim, result)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(_TABLE is None, reason="it writes docs/reference/frameworks.json: `make frameworks`")
@pytest.mark.parametrize(("plugin", "scenario"), CASES)
def test_the_table_shows_what_happened_before_and_after(plugin: str, scenario: str) -> None:
    module = framework(plugin)
    release = installed(module)
    if release is None:
        pytest.skip(f"another environment has {module.PACKAGE}")
    row: dict[str, Any] = {
        "module": plugin,
        "framework": module.NAME,
        "package": module.PACKAGE,
        "version": release,
    }
    row |= {"line": module.LINE, "scenario": scenario, "title": title_of(module, scenario)}
    row |= {"place": list(SCENARIOS).index(scenario)}
    absent = getattr(module, "ABSENT", {}).get(scenario)
    if absent is not None:
        row |= {"absent": absent}
    else:
        warm_up(plugin)
        row |= {"before": play(module, scenario, module.before).row()}
        options = {"stream": StreamTimeouts(idle=1.0)} if SCENARIOS[scenario].stream else {}
        row |= {"after": play(module, scenario, partial(module.after, **options)).row()}

    assert _TABLE is not None
    with Path(_TABLE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    aim = expected(module, scenario)
    result = row.get("after", {})
    assert absent or (result["calls"], result["outcome"]) == (aim.calls, aim.outcome), row
