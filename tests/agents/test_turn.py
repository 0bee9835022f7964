"""One turn: limits, corrections, the cost of failed attempts, and who answered."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from failwell import Chain, ChainPolicy, describe
from failwell.agents.models import Models, ModelSpec, usage_of
from failwell.agents.tool_calls import Dispatcher
from failwell.agents.tools.tool import Tool, ToolContext
from failwell.agents.turn import Turn, TurnEvent, TurnLimit
from failwell.calls.backoff import Backoff
from failwell.calls.cost import Price, Prices

NOW = Backoff(first=0.0)


async def _echo(arguments: Mapping[str, Any], _context: ToolContext) -> Any:
    return dict(arguments)


ECHO = Tool(name="echo", run=_echo, parameters={"type": "object", "properties": {"n": {"type": "integer"}}})


def turn(
    folder: Path, *scripts: str, attempts: int = 3, observe: Any = None, tool: Tool = ECHO, **limits: Any
) -> Turn:
    """A turn over scripted models, one for each script."""
    specs: list[ModelSpec] = []
    for number, script in enumerate(scripts):
        (folder / f"{number}.yaml").write_text(f"replies:\n{script}")
        specs.append(ModelSpec(name=f"scripted:{number}.yaml", attempts=attempts, backoff=NOW))
    models = Models()
    entries = [asyncio.run(models.entry(spec, agent="a", folder=folder, settings={})) for spec in specs]
    chain = Chain[Any](
        *entries,
        policy=ChainPolicy(idempotent=True, cooldown=0.0, usage=usage_of),
        prices=Prices({f"{number}.yaml": Price.dollars(1, 10) for number in range(len(scripts))}),
    )
    context = ToolContext(key="k", folder=folder, scratch=folder)
    return Turn(chain, Dispatcher({"echo": tool}), context, observe=observe, **limits)


def lines(*replies: str) -> str:
    return "".join(f"  - {reply}\n" for reply in replies)


CALL = "{tool_calls: [{name: echo, arguments: {n: 1}}]}"
WRONG = "{tool_calls: [{name: nothing}]}"


def test_tools_run_in_order_and_each_call_has_one_result(tmp_path: Path) -> None:
    two = "{tool_calls: [{name: echo, arguments: {n: 1}}, {name: echo, arguments: {n: 2}}]}"
    events: list[TurnEvent] = []
    running = turn(tmp_path, lines(two, "{text: done}"), observe=events.append)

    assert asyncio.run(running.run("go", system="be brief")) == "done"

    _, answer, results, _ = running.messages
    calls = [part.tool_call_id for part in answer.parts if part.part_kind == "tool-call"]
    returned = [part.tool_call_id for part in results.parts if part.part_kind == "tool-return"]
    assert calls == returned
    assert [event.type for event in events] == [
        "model:answered",
        "tool:called",
        "tool:called",
        "model:answered",
    ]


@pytest.mark.acceptance("relavium 66")
def test_an_endless_tool_loop_ends_after_seventeen_model_calls(tmp_path: Path) -> None:
    events: list[TurnEvent] = []
    running = turn(tmp_path, lines(*[CALL] * 40), observe=events.append)

    with pytest.raises(TurnLimit) as caught:
        asyncio.run(running.run("go"))

    assert describe(caught.value).kind == "limit.turn_limit"
    assert sum(event.type == "model:answered" for event in events) == 17


@pytest.mark.acceptance("relavium 66")
def test_three_wrong_rounds_are_fed_back_and_the_fourth_ends_the_turn(tmp_path: Path) -> None:
    good = turn(tmp_path, lines(WRONG, CALL, WRONG, WRONG, "{text: at last}"))
    assert asyncio.run(good.run("go")) == "at last"

    bad = turn(tmp_path, lines(WRONG, WRONG, CALL, WRONG, WRONG, "{text: never}"))
    with pytest.raises(Exception, match="called tools wrongly in 4 rounds") as caught:
        asyncio.run(bad.run("go"))
    report = describe(caught.value)
    assert (report.kind, report.retryable) == ("tool.failed", False)


def test_failed_attempts_are_counted_and_the_next_model_answers(tmp_path: Path) -> None:
    first = lines(
        "{fail: provider.overloaded}",
        "{text: cut, finish: length, usage: {input_tokens: 9, output_tokens: 2}}",
    )
    running = turn(
        tmp_path,
        lines("{fail: provider.overloaded}"),
        lines("{text: hi, usage: {input_tokens: 5, output_tokens: 1}}"),
        attempts=1,
    )

    assert asyncio.run(running.run("go")) == "hi"
    assert running.served_by == ("scripted", "1.yaml")
    assert (running.tokens, running.cost) == ({"input_tokens": 5, "output_tokens": 1}, 1_500)

    cut = turn(tmp_path, first, attempts=2)
    with pytest.raises(Exception) as caught:
        asyncio.run(cut.run("go"))
    assert describe(caught.value).kind == "provider.output_truncated"
    assert cut.tokens == {"input_tokens": 9, "output_tokens": 2}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("{text: no, finish: content_filter}", "provider.content_refused"),
        ("{text: half, finish: length}", "provider.output_truncated"),
        ("{text: ''}", "provider.output_invalid"),
        ("{fail: provider.auth}", "provider.auth"),
    ],
)
def test_useless_answers_and_refused_calls_keep_their_kind(tmp_path: Path, reply: str, kind: str) -> None:
    running = turn(tmp_path, lines(reply, "{text: never asked for}"))

    with pytest.raises(Exception) as caught:
        asyncio.run(running.run("go"))

    assert describe(caught.value).kind == kind


def test_a_script_that_is_too_short_says_so(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="has 1 replies for `a`, and a further one was requested"):
        asyncio.run(turn(tmp_path, lines(CALL)).run("go"))


def test_a_missing_capability_ends_the_turn(tmp_path: Path) -> None:
    from failwell.errors.faults import ToolTerminal

    async def run(_arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        raise ToolTerminal(kind="tool.unavailable", details={"tool": "echo", "capability": "display"})

    running = turn(tmp_path, lines(CALL, "{text: never}"), tool=replace(ECHO, run=run))

    with pytest.raises(ToolTerminal) as caught:
        asyncio.run(running.run("go"))

    report = describe(caught.value)
    assert (report.kind, report.details["capability"]) == ("tool.unavailable", "display")


def test_a_turn_continues_a_conversation(tmp_path: Path) -> None:
    running = turn(tmp_path, lines("{text: hi}"))
    asyncio.run(running.run("go"))
    history: Sequence[Any] = running.messages

    (tmp_path / "next").mkdir()
    again = turn(tmp_path / "next", lines("{text: again}"))
    assert asyncio.run(again.run("more", history=history)) == "again"
    assert len(again.messages) == 4
