"""What agents may spend: no call goes beyond the budget, and branches share it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell, failwell_process

HEAD = """\
workflow:
  name: w
  entry_point: {entry}
  limits: {{budget_usd: {budget}, on_exceed: {on_exceed}}}
  runtime: {{default_model: "scripted:replies.yaml", max_tokens: 1000}}
  cost: {{pricing: {{replies.yaml: {{input_per_mtok: 0, output_per_mtok: 1000}}}}}}
"""
ONE = "agents:\n  - {name: a, prompt: p, routes: [{to: $end}]}\n"
THREE = """\
agents:
  - {name: a, prompt: p, routes: [{to: b}]}
  - {name: b, prompt: p, routes: [{to: c}]}
  - {name: c, prompt: p, routes: [{to: $end}]}
"""
CHEAP = "{text: hi, usage: {input_tokens: 1, output_tokens: 500}}"
"""Costs half a dollar. What an answer may cost is one dollar."""


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, steps: str, *replies: str, budget: float, on_exceed: str, entry: str = "a") -> Done:
        head = HEAD.format(entry=entry, budget=budget, on_exceed=on_exceed)
        (self.folder / "w.yaml").write_text(head + steps)
        (self.folder / "replies.yaml").write_text(
            "replies:\n" + "".join(f"  - {reply}\n" for reply in replies)
        )
        return self("run", "w.yaml", "--quiet", "--error-format", "json")

    def __call__(self, *arguments: str) -> Done:
        return failwell(*arguments, "--store", str(self.folder / "state"), cwd=self.folder)

    def answer(self, value: str) -> None:
        """Answer the one gate that is open."""
        [gate] = self("gates", "list", "--format", "json").data
        assert self("gates", "answer", gate["run"], gate["id"], value).code == 0

    @property
    def events(self) -> list[dict[str, Any]]:
        lines = self("runs", "export", "last").out.splitlines()
        return [json.loads(line) for line in lines]

    def types(self, *names: str) -> list[str]:
        return [event["type"] for event in self.events if event["type"] in names]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def error_of(done: Done) -> dict[str, Any]:
    return next(json.loads(line) for line in done.err.splitlines() if line.startswith("{"))


@pytest.mark.acceptance("relavium 33")
def test_a_first_call_beyond_the_budget_is_not_made(place: Place) -> None:
    done = place.run(ONE, "{text: never}", budget=0.5, on_exceed="fail")

    error = error_of(done)
    failed = next(event for event in place.events if event["type"] == "run:failed")
    report = failed["data"]["failure"]["report"]
    assert (done.code, error["kind"]) == (1, "limit.budget_exceeded")
    assert (report["kind"], report["retryable"]) == ("limit.budget_exceeded", False)
    assert failed["data"]["usage"]["cost_usd"] == 0
    assert place("audit", "show", "--type", "model:called", "--format", "json").data == []


@pytest.mark.acceptance("relavium 31")
def test_a_step_whose_model_has_no_price_completes_with_its_tokens_and_without_a_cost(place: Place) -> None:
    head = 'workflow: {name: w, entry_point: a, runtime: {default_model: "scripted:replies.yaml"}}\n'
    (place.folder / "w.yaml").write_text(head + ONE)
    (place.folder / "replies.yaml").write_text(f"replies:\n  - {CHEAP}\n")

    done = place("run", "w.yaml", "--quiet")

    [completed] = [event["data"] for event in place.events if event["type"] == "node:completed"]
    assert (done.code, completed["output"]) == (0, {"result": "hi"})
    assert completed["usage"] == {"input_tokens": 1, "output_tokens": 500}


@pytest.mark.acceptance("relavium 34")
def test_a_warning_is_given_once_and_the_run_completes(place: Place) -> None:
    done = place.run(THREE, CHEAP, budget=0.1, on_exceed="warn")

    [warning] = [event for event in place.events if event["type"] == "budget:warning"]
    assert done.code == 0
    assert place.types("run:completed") == ["run:completed"]
    assert len(place("audit", "show", "--type", "model:called", "--format", "json").data) == 3
    assert type(warning["data"]["threshold_pct"]) is int
    assert 0 <= warning["data"]["threshold_pct"] <= 100


@pytest.mark.acceptance("relavium 35")
def test_a_pause_asks_at_one_gate_and_is_no_failure(place: Place) -> None:
    done = place.run(ONE, CHEAP, budget=0.5, on_exceed="pause_for_approval")

    paused = [event for event in place.events if event["type"] in ("budget:paused", "human_gate:paused")]
    order = place.types("budget:paused", "human_gate:paused", "run:paused")
    assert done.code == 4
    assert order == ["budget:paused", "human_gate:paused", "run:paused"]
    assert paused[0]["data"]["gate"] == paused[1]["data"]["gate"]
    assert "budget_exceeded" not in json.dumps(place.events)


@pytest.mark.acceptance("relavium 36")
def test_after_an_approval_the_call_is_made_and_its_retry_asks_no_more(place: Place) -> None:
    steps = ONE.replace(
        "prompt: p,", "prompt: p, max_attempts: 1, retry: {max_attempts: 2, delay_seconds: 0},"
    )
    place.run(steps, CHEAP, budget=0.5, on_exceed="pause_for_approval")
    assert place("audit", "show", "--type", "model:called", "--format", "json").data == []
    (place.folder / "replies.yaml").write_text(
        'agents: {a: [{fail: provider.overloaded}], "a#2": [{text: hi}]}\n'
    )

    place.answer("approved")
    done = place("resume", "last", "--quiet", "--error-format", "json")

    order = ("budget:paused", "human_gate:resumed", "node:retrying", "run:completed", "run:failed")
    assert (done.code, done.data) == (0, {"result": "hi"})
    assert place.types(*order) == list(order[:4])
    assert len(place("audit", "show", "--type", "model:called", "--format", "json").data) == 2


@pytest.mark.acceptance("relavium 37")
def test_a_rejected_pause_fails_the_run(place: Place) -> None:
    place.run(ONE, CHEAP, budget=0.5, on_exceed="pause_for_approval")

    place.answer("rejected")
    done = place("resume", "last", "--quiet", "--error-format", "json")

    last = place.events[-1]
    assert (done.code, error_of(done)["kind"]) == (1, "limit.budget_exceeded")
    assert (last["type"], last["data"]["failure"]["envelope"]["kind"]) == (
        "run:failed",
        "limit.budget_exceeded",
    )
    assert place("audit", "show", "--type", "model:called", "--format", "json").data == []


GATED = """\
agents:
  - {name: a, prompt: p, routes: [{to: b}]}
  - {name: b, prompt: p, routes: [{to: check}]}
  - {name: check, type: human_gate, prompt: Go on?, options: [{label: "yes", value: "yes", route: c}]}
  - {name: c, prompt: p, routes: [{to: $end}]}
"""


@pytest.mark.acceptance("relavium 38")
@pytest.mark.parametrize(("budget", "code"), [(1.99, 1), pytest.param(2.0, 0, marks=pytest.mark.slow)])
def test_what_was_spent_before_a_pause_counts_in_the_first_check_of_a_new_process(
    place: Place, budget: float, code: int
) -> None:
    # Two answers cost a dollar, and the third may cost another one.
    assert place.run(GATED, CHEAP, budget=budget, on_exceed="fail").code == 4
    place.answer("yes")

    done = failwell_process(
        "resume", "last", "--quiet", "--error-format", "json", "--store", str(place.folder / "state")
    )

    called = [
        record["data"]["node"]
        for record in place("audit", "show", "--type", "model:called", "--format", "json").data
    ]
    assert done.code == code, done.err
    assert called == (["a", "b"] if code else ["a", "b", "c"])
    if code:
        assert error_of(done)["kind"] == "limit.budget_exceeded"


@pytest.mark.acceptance("relavium 38")
def test_what_was_spent_before_a_pause_of_the_budget_is_in_the_total(place: Place) -> None:
    place.run(THREE, CHEAP, budget=1.6, on_exceed="pause_for_approval")
    # Two answers cost a dollar, and a third may cost another one.
    [first] = [event for event in place.events if event["type"] == "budget:paused"]
    place.answer("approved")

    done = failwell_process("resume", "last", "--quiet", "--store", str(place.folder / "state"))

    assert (first["data"]["node"], round(first["data"]["spent_usd"], 2)) == ("c", 1.0)
    assert done.code == 0
    assert round(place("runs", "show", "last", "--format", "json").data["usage"]["cost_usd"], 2) == 1.5


def test_branches_share_the_budget(place: Place) -> None:
    steps = """\
agents:
  - {name: x, prompt: p}
  - {name: y, prompt: p}
  - {name: z, prompt: p}
parallel:
  - {name: all, agents: [x, y, z], failure_mode: continue_on_error, routes: [{to: $end}]}
"""
    place.run(steps, CHEAP, budget=1.2, on_exceed="fail", entry="all")

    answered = [
        event
        for event in place.events
        if event["type"] == "node:completed" and event["data"]["path"] != "all"
    ]
    assert len(answered) == 1


def test_money_that_a_turn_spent_before_it_was_paused_is_counted(place: Place) -> None:
    steps = 'tools: {t: {command: ["true"], effect: read}}\n' + ONE
    call = "{tool_calls: [{name: t}], usage: {input_tokens: 1, output_tokens: 500}}"

    place.run(steps, call, "{text: never}", budget=1.2, on_exceed="pause_for_approval")

    [paused] = [event for event in place.events if event["type"] == "budget:paused"]
    assert round(paused["data"]["spent_usd"], 2) == round(paused["data"]["usage"]["cost_usd"], 2) == 0.5


TOOL = "tools: {look: {command: [echo, hi], effect: read}}\n"
LOOK = "{tool_calls: [{name: look, arguments: {}}], usage: {input_tokens: 1, output_tokens: 900}}"
"""Costs 90 cents."""


def test_an_approval_covers_as_much_again_as_the_budget_and_no_more(place: Place) -> None:
    place.run(ONE + TOOL, *[LOOK] * 5, CHEAP, budget=0.5, on_exceed="pause_for_approval")

    place.answer("approved")
    done = place("resume", "last", "--quiet", "--error-format", "json")

    # The approved call was made; the next one would go beyond what was approved.
    assert error_of(done)["kind"] == "limit.budget_exceeded"
    assert round(place("runs", "show", "last", "--format", "json").data["usage"]["cost_usd"], 2) == 0.9


def test_a_step_within_what_was_approved_ends_and_its_cost_counts_for_the_others(place: Place) -> None:
    steps = "agents:\n  - {name: a, prompt: p, routes: [{to: b}]}\n  - {name: b, prompt: p, routes: [{to: $end}]}\n"
    cheap_look = LOOK.replace("900", "100")
    place.run(steps + TOOL, cheap_look, cheap_look, CHEAP, budget=1.7, on_exceed="pause_for_approval")
    [first] = [event for event in place.events if event["type"] == "budget:paused"]

    place.answer("approved")
    done = place("resume", "last", "--quiet", "--error-format", "json")
    show = place("runs", "show", "last", "--format", "json").data

    assert (first["data"]["node"], round(first["data"]["spent_usd"], 2)) == ("b", 0.8)
    assert done.code == 0
    # 0.7 by `a`, 0.1 before the pause, 0.7 after it.
    assert round(show["usage"]["cost_usd"], 2) == 1.5
