"""Stages through the command: the seven phases, attempts, verdicts, and what a failure leads to."""

from pathlib import Path

import pytest

from failwell.workflows.plan import PHASES
from tests.workflows.stages.stage_place import StagePlace, error_of, paired

TWO = """\
stages:
  - id: a
    setup: {topic: rain}
    prompt: "Write about {{ ctx.topic }}. {{ feedback }}"
    assert:
      - {when: "{{ act.output.score < 5 }}", verdict: retry, feedback: "score {{ act.output.score }} is too low"}
    exit: {text: "{{ act.output.text }}"}
    retryPolicy: {maxAttempts: 2, backoff: none}
    next: b
  - id: b
    prompt: "Review {{ a.output.text }} about {{ ctx.topic }}."
output: {text: "{{ a.output.text }}", review: "{{ b.output.result }}"}
"""


@pytest.fixture
def place(tmp_path: Path) -> StagePlace:
    return StagePlace(tmp_path)


@pytest.mark.acceptance("stud-cli 27")
def test_a_stage_runs_its_seven_phases_in_order_each_with_a_beginning_and_an_end(place: StagePlace) -> None:
    place.script(a=[{"json": {"text": "good", "score": 9}}], b=[{"text": "fine"}])

    done = place.run(TWO)

    assert done.data == {"text": "good", "review": "fine"}
    assert place.phases("a") == paired(*PHASES)
    assert place.phases("b") == paired(*PHASES)


FAILING = {
    "setup": "setup: {x: '{{ 1 // 0 }}'}",
    "init": "body: '{{ 1 // 0 }}'",
    "checkGate": "checkGate: [{verdict: skip, when: '{{ 1 // 0 }}'}]",
    "act": "max_attempts: 1",
    "assert": "assert: [{verdict: ok, when: '{{ 1 // 0 }}'}]",
    "exit": "exit: {x: '{{ 1 // 0 }}'}",
    "next": "next: [{to: $end, when: '{{ 1 // 0 }}'}, {to: $end}]",
}
RAISING = {
    "setup": "setup: raising_stages:fail",
    "init": "init: raising_stages:fail",
    "checkGate": "checkGate: raising_stages:fail",
    "act": "max_attempts: 1",
    "assert": "assert: raising_stages:fail",
    "exit": "exit: raising_stages:fail",
    "next": "next: {code: raising_stages:fail, to: [$end]}",
}


@pytest.mark.acceptance("stud-cli 27")
@pytest.mark.parametrize("keys", [FAILING, RAISING], ids=["templates", "code"])
def test_a_phase_that_fails_ends_too_and_the_last_phases_still_run(
    place: StagePlace, keys: dict[str, str]
) -> None:
    place.write("raising_stages.py", "def fail(phase):\n    raise RuntimeError('broken')\n")

    for phase in PHASES:
        place.script(a=[{"fail": "provider.auth"} if phase == "act" else {"text": "x"}])

        done = place.run(f"stages:\n  - id: a\n    {keys[phase]}\n")

        failure = place.events("run:failed")[0]["data"]["failure"]["envelope"]["kind"]
        broken = "internal.template_error" if keys is FAILING else failure
        assert done.code != 0, phase
        assert error_of(done)["kind"] == failure == ("provider.auth" if phase == "act" else broken), phase
        before = PHASES[: PHASES.index(phase) + 1]
        after = [last for last in ("exit", "next") if last not in before]
        assert place.phases("a") == paired(*before, *after), phase
        ended = {event["data"]["phase"]: event["data"] for event in place.events("phase:ended")}
        assert [name for name, data in ended.items() if data.get("error")] == [phase]


@pytest.mark.acceptance("stud-cli 29")
def test_an_assertion_that_says_retry_is_repeated_up_to_the_attempts_and_then_fails(
    place: StagePlace,
) -> None:
    place.script(a=[{"json": {"text": "bad", "score": 1}}], b=[{"text": "fine"}])

    done = place.run(TWO)

    attempts = [event["data"]["attempt"] for event in place.events("node:started")]
    assert attempts == [1, 2]
    assert done.code == 3
    assert error_of(done)["kind"] == "validation.assertion_failed"
    attempt = ("setup", "init", "checkGate", "act", "assert")
    assert place.phases("a") == paired(*attempt) + paired(*attempt, "exit", "next", attempt=2)


@pytest.mark.acceptance("stud-cli 29")
def test_after_the_last_attempt_the_failure_goes_to_next(place: StagePlace) -> None:
    place.script(a=[{"json": {"text": "bad", "score": 1}}], b=[{"text": "repaired"}])
    repairing = TWO.replace(
        "    next: b\n", "    next: [{on_error: validation.assertion_failed, to: b}, {to: $end}]\n"
    ).replace("Review {{ a.output.text }} about {{ ctx.topic }}.", "Repair: {{ a.error.details.feedback }}")

    done = place.run(repairing.replace("{{ a.output.text }}", "{{ a.error.kind }}"))

    assert done.data == {"text": "validation.assertion_failed", "review": "repaired"}
    started = [(event["data"]["node"], event["data"]["attempt"]) for event in place.events("node:started")]
    assert started == [("a", 1), ("a", 2), ("b", 1)]
    [following] = [
        event["data"]
        for event in place.events("phase:ended")
        if (event["data"]["path"], event["data"]["phase"]) == ("a", "next")
    ]
    assert (following["attempt"], following["result"]) == (2, {"resolution": "route"})


def test_the_next_attempt_is_told_what_the_assertion_said(place: StagePlace) -> None:
    place.script(
        a=[{"json": {"text": "bad", "score": 1}}],
        a__2=[{"json": {"text": "good", "score": 9}}],
        b=[{"text": "fine"}],
    )

    done = place.run(TWO.replace("exit: {text:", "exit: {said: '{{ feedback }}', text:"))

    assert done.data == {"text": "good", "review": "fine"}
    output = place.events("node:completed")[0]["data"]["output"]
    assert output["said"] == "score 1 is too low"
