"""Stages through the command: code and its context, retries, resolutions, caps, fan-out and join."""

import json
from pathlib import Path

import pytest

from failwell.workflows.plan import PHASES
from tests.cli.running import failwell
from tests.workflows.stages.stage_place import HEAD, StagePlace, error_of, paired


@pytest.fixture
def place(tmp_path: Path) -> StagePlace:
    return StagePlace(tmp_path)


CODE = """\
from failwell.workflows import StagePhase, Verdict

def setup(phase: StagePhase) -> None:
    phase.context["topic"] = {"words": ["rain"]}

def writes(phase: StagePhase) -> None:
    phase.context["topic"]["words"][0] = "sun"

def adds(phase: StagePhase) -> str:
    phase.context["topic"]["words"].append("sun")
    return "ok"

def removes(phase: StagePhase) -> dict[str, object]:
    del phase.context["topic"]
    return {}

def replaces(phase: StagePhase) -> str:
    phase.context.update(topic=1)
    return "$end"

def gate(phase: StagePhase) -> str:
    phase.context.pop("topic")
    return "proceed"

def judge(phase: StagePhase) -> Verdict:
    assert phase.context["topic"]["words"] == ["rain"]
    return Verdict(verdict="retry" if phase.attempt == 1 else "ok", feedback="more")

async def leave(phase: StagePhase) -> dict[str, object]:
    return {"said": phase.feedback, "answer": phase.act["output"]["result"]}

def choose(phase: StagePhase) -> str:
    return "b"
"""


@pytest.mark.acceptance("stud-cli 28")
def test_code_that_writes_into_the_context_outside_setup_fails_whatever_the_write_is(
    place: StagePlace,
) -> None:
    place.write("code_of_writers.py", CODE)
    place.script(a=[{"text": "x"}])
    writers = {
        "init": "init: code_of_writers:writes",
        "checkGate": "checkGate: code_of_writers:gate",
        "assert": "assert: code_of_writers:adds",
        "exit": "exit: code_of_writers:removes",
        "next": "next: {code: code_of_writers:replaces, to: [$end]}",
    }

    for phase, key in writers.items():
        done = place.run(f"stages:\n  - id: a\n    setup: code_of_writers:setup\n    {key}\n")

        error = error_of(done)
        assert (done.code, error["kind"]) == (3, "validation.context_read_only"), phase
        assert error["details"]["phase"] == phase
        setup = place.events("phase:ended")[0]["data"]["result"]["context"]
        assert setup == {"topic": {"words": ["rain"]}}


def test_every_phase_but_act_can_be_python_code(place: StagePlace) -> None:
    place.write("code_of_stage.py", CODE)
    place.script(a=[{"text": "first"}], a__2=[{"text": "second"}], b=[{"text": "end"}])

    done = place.run(
        "stages:\n  - id: a\n    setup: code_of_stage:setup\n    assert: code_of_stage:judge\n"
        "    exit: code_of_stage:leave\n    next: {code: code_of_stage:choose, to: [b, $end]}\n"
        "    retryPolicy: {maxAttempts: 2}\n  - id: b\n    prompt: '{{ ctx.topic.words[0] }}'\n"
        "output: {a: '{{ a.output.answer }}', said: '{{ a.output.said }}', b: '{{ b.output.result }}'}\n"
    )

    assert done.data == {"a": "second", "said": "more", "b": "end"}


@pytest.mark.acceptance("stud-cli 30")
def test_a_request_that_cannot_be_composed_is_tried_again_from_setup(place: StagePlace) -> None:
    place.script(a=[{"text": "x"}])
    stage = (
        "stages:\n  - id: a\n    setup: {parts: '{{ [] if attempt == 1 else [7] }}'}\n"
        "    body: 'Part {{ ctx.parts[0] }}'\n"
    )

    allowed = place.run(stage + "    retryPolicy: {maxAttempts: 2}\n")

    assert allowed.code == 0, allowed.err
    assert place.phases("a")[:6] == [*paired("setup", "init"), *paired("setup", attempt=2)]
    failed = place.events("phase:ended")[1]["data"]
    assert (failed["phase"], failed["error"]) == ("init", "internal.template_error")
    refused = place.run(stage)
    assert (refused.code, error_of(refused)["kind"]) == (3, "internal.template_error")


@pytest.mark.acceptance("stud-cli 31")
def test_a_failure_of_the_provider_keeps_its_kind_when_it_leaves_the_stage(place: StagePlace) -> None:
    kinds = {
        "provider.rate_limited": "transient",
        "provider.auth": "configuration",
        "provider.quota_exhausted": "capacity",
        "provider.content_refused": "content",
    }
    for kind, category in kinds.items():
        place.script(a=[{"fail": kind}])

        done = place.run("stages:\n  - id: a\n    max_attempts: 1\n")

        error = error_of(done)
        assert (done.code, error["kind"], error["error_category"]) == (3, kind, category)
        for event in ("stage:failed", "run:failed"):
            failure = place.events(event)[0]["data"]["failure"]
            assert failure["envelope"]["kind"] == kind
            assert (failure["report"]["kind"], failure["report"]["category"]) == (kind, category)


def test_an_attempt_does_not_repeat_what_the_calls_of_the_model_have_repeated_up_to_their_limit(
    place: StagePlace,
) -> None:
    overloaded = {"fail": "provider.overloaded", "retry_after": 0}
    place.script(a=[overloaded, overloaded, {"text": "late"}])

    done = place.run("stages:\n  - id: a\n    max_attempts: 2\n    retryPolicy: {maxAttempts: 3}\n")

    assert error_of(done)["kind"] == "provider.overloaded"
    report = place.events("node:failed")[0]["data"]["failure"]["report"]
    assert [row["kind"] for row in report["attempts"]] == ["provider.overloaded", "provider.overloaded"]
    assert len(place.events("node:started")) == 1


RESOLUTION = """\
stages:
  - id: a
    assert: [{{verdict: fail, when: "{{{{ act.output.result == 'bad' }}}}", feedback: no sources}}]
    visitCap: 2
    resolutionPolicy: {policy}
    next: b
  - id: b
    next: c
  - id: c
"""


@pytest.mark.acceptance("stud-cli 32")
def test_the_resolution_of_a_failed_stage_decides_what_follows(place: StagePlace) -> None:
    place.write(
        "replies.yaml",
        "agents: {a: [{text: bad}], 'a@2': [{text: good}], b: [{text: b}], c: [{text: c}]}",
    )

    def visited(policy: str) -> tuple[int, list[tuple[str, int]]]:
        done = place.run(RESOLUTION.format(policy=policy))
        starts = [event["data"] for event in place.events("node:started")]
        return done.code, [(data["node"], data["visit"]) for data in starts]

    assert visited("skip") == (0, [("a", 1), ("b", 1), ("c", 1)])
    assert place.events("phase:ended")[6]["data"]["result"] == {"resolution": "skip", "to": "b"}
    assert visited("retry-later") == (0, [("a", 1), ("b", 1), ("c", 1), ("a", 2)])
    assert visited("abort-workflow") == (3, [("a", 1)])
    end = place.events()[-1]
    assert end["type"] == "run:failed"
    assert end["data"]["envelope"]["kind"] == "validation.assertion_failed"


def test_a_stage_that_fails_as_often_as_it_may_be_visited_ends_the_workflow_with_its_own_failure(
    place: StagePlace,
) -> None:
    place.script(a=[{"text": "bad"}], b=[{"text": "b"}], c=[{"text": "c"}])

    done = place.run(RESOLUTION.format(policy="retry-later"))

    assert (done.code, error_of(done)["kind"]) == (3, "validation.assertion_failed")
    assert [event["data"]["node"] for event in place.events("node:started")] == ["a", "b", "c", "a"]


def test_next_can_lead_a_failure_to_a_stage_that_repairs_it(place: StagePlace) -> None:
    place.script(a=[{"text": "bad"}], b=[{"text": "repaired"}])

    done = place.run(
        "stages:\n  - id: a\n    assert: [{verdict: fail, feedback: wrong}]\n"
        "    next: [{on_error: validation.assertion_failed, to: b}, {to: $end}]\n"
        "  - id: b\n    prompt: 'Repair: {{ a.error.details.feedback }}'\n"
    )

    assert done.data == {"result": "repaired"}


TOOLS = "tools:\n  note: {python: 'noting:note', effect: read}\n"
NOTING = """\
from pathlib import Path

def note(text: str) -> str:
    with Path("notes.txt").open("a") as file:
        file.write(text + "\\n")
    return text
"""


@pytest.mark.acceptance("stud-cli 33")
def test_the_cap_of_turns_ends_act_after_its_tools_and_without_another_call(place: StagePlace) -> None:
    both = [{"name": "note", "arguments": {"text": text}} for text in ("x", "y")]
    place.write("noting.py", NOTING)
    place.script(a=[{"tool_calls": both}, {"tool_calls": both}, {"text": "never sent"}])

    done = place.run(
        TOOLS + "stages:\n  - id: a\n    turnCap: 2\n    allowedTools: [note]\n"
        "    assert: [{verdict: ok}]\n    exit: {hit: '{{ act.capHit }}', calls: '{{ act.calls }}'}\n"
    )

    assert done.data == {"hit": True, "calls": 2}
    # The tools of the last answer ran to their end, and the model was not called with what they returned.
    assert sorted((place.folder / "notes.txt").read_text().split()) == ["x", "x", "y", "y"]
    records = failwell("audit", "show", "--format", "json", "--store", str(place.store)).data
    types = [record["type"] for record in records]
    assert [types.count(name) for name in ("model:called", "tool:called", "tool:ended")] == [2, 4, 4]
    assert types[-2:] == ["tool:ended", "turn:ended"]
    assert "cancel" not in json.dumps([place.events(), records])


def test_a_stage_that_reached_its_cap_is_tried_again_unless_its_assertion_says_otherwise(
    place: StagePlace,
) -> None:
    place.write("noting.py", NOTING)
    place.script(a=[{"tool_calls": [{"name": "note", "arguments": {"text": "x"}}]}], a__2=[{"text": "done"}])

    done = place.run(
        TOOLS
        + "stages:\n  - id: a\n    turnCap: 1\n    allowedTools: [note]\n    retryPolicy: {maxAttempts: 2}\n"
    )

    assert done.data == {"result": "done"}
    assert [event["data"]["attempt"] for event in place.events("node:started")] == [1, 2]


FAN_OUT = """\
stages:
  - id: a
    setup: {topic: rain}
    next: [{parallel: [x, y, z], join: end}]
  - {id: x, setup: "slow_stages:x", exit: {topic: "{{ ctx.topic }}", of: x}}
  - {id: y, setup: "slow_stages:y", exit: {of: y}}
  - {id: z, setup: "slow_stages:z", exit: {of: z}}
  - id: end
    setup: {order: "{{ siblings | list }}", first: "{{ siblings.x.topic }}"}
    exit: {order: "{{ ctx.order }}", first: "{{ ctx.first }}", z: "{{ siblings.z.of }}"}
"""
SLOW = """\
import asyncio

ended: list[str] = []

async def after(name: str, *others: str) -> None:
    while not set(others) <= set(ended):
        await asyncio.sleep(0)
    ended.append(name)

async def x(phase): await after("x", "y", "z")
async def y(phase): await after("y", "z")
async def z(phase): await after("z")
"""


@pytest.mark.acceptance("stud-cli 35")
def test_a_join_gets_the_results_of_its_siblings_in_the_order_of_the_file(place: StagePlace) -> None:
    place.write("slow_stages.py", SLOW)
    place.script(**{name: [{"text": name}] for name in ("a", "x", "y", "z", "end")})

    done = place.run(FAN_OUT)

    completed = [event["data"]["path"] for event in place.events("node:completed")]
    assert completed[:4] == ["a", "a-parallel/z", "a-parallel/y", "a-parallel/x"]
    assert done.data == {"order": ["x", "y", "z"], "first": "rain", "z": "z"}


@pytest.mark.acceptance("stud-cli 34")
def test_a_failing_sibling_stops_the_others_and_the_join_does_not_run(place: StagePlace) -> None:
    place.write(
        "stuck_stages.py",
        "import asyncio\n\nasync def wait(phase):\n    await asyncio.Event().wait()\n\n"
        "def fail(phase):\n    raise RuntimeError('broken')\n",
    )
    place.script(a=[{"text": "a"}])
    stages = (
        "stages:\n  - {id: a, next: [{parallel: [x, y, z], join: end}]}\n  - {id: x, setup: 'stuck_stages:wait'}\n"
        "  - {id: y, setup: 'stuck_stages:fail'}\n  - {id: z, setup: 'stuck_stages:wait'}\n  - {id: end}\n"
    )

    done = place.run(stages)

    error = error_of(done)
    assert done.code == 3
    assert [frame["node"] for frame in error["frames"]] == ["y"]
    failed = {event["data"]["path"]: event["data"]["failure"] for event in place.events("node:failed")}
    kinds = {path: failure["envelope"]["kind"] for path, failure in failed.items()}
    assert kinds["a-parallel/x"] == kinds["a-parallel/z"] == "cancel.stage"
    assert kinds["a-parallel/y"] == kinds["a-parallel"] == error["kind"]
    assert "end" not in [event["data"]["node"] for event in place.events("node:started")]
    # Phases that were stopped have their ends, too.
    assert place.phases("a-parallel/x") == paired("setup")


@pytest.mark.acceptance("stud-cli 36")
def test_a_loop_between_two_stages_ends_with_a_typed_error_at_the_cap_of_visits(place: StagePlace) -> None:
    place.script(a=[{"text": "a"}], b=[{"text": "b"}])

    done = place.run("stages:\n  - {id: a, visitCap: 3, next: b}\n  - {id: b, next: a}\n")

    error = error_of(done)
    assert (done.code, error["kind"]) == (1, "limit.visits")
    assert error["details"] == {"stage": "a", "visitCap": 3}
    assert [event["data"]["path"] for event in place.events("node:completed")] == list("ababab")
    assert place.events()[-1]["type"] == "run:failed"


def test_a_failed_stage_is_continued_in_the_same_visit_so_that_its_cap_allows_it(place: StagePlace) -> None:
    place.script(a=[{"fail": "provider.auth"}])
    stage = "stages:\n  - {id: a, visitCap: 1}\n"
    assert place.run(stage).code == 3
    place.script(a=[{"text": "well"}])

    done = place.command("resume", "last")

    assert done.data == {"result": "well"}
    assert [event["data"]["visit"] for event in place.events("node:started")] == [1]


def test_a_stage_is_complete_when_its_tool_was_called_with_what_its_schema_says(place: StagePlace) -> None:
    wrong = {"tool_calls": [{"name": "submit", "arguments": {"text": 1}}]}
    right = {"tool_calls": [{"name": "submit", "arguments": {"text": "x"}}]}
    stage = (
        "stages:\n  - id: a\n    completionTool: submit\n    turnCap: 2\n    retryPolicy: {maxAttempts: 2}\n"
        "    completionSchema: {type: object, properties: {text: {type: string}}, required: [text]}\n"
    )

    place.script(a=[wrong, right])
    corrected = place.run(stage)

    assert corrected.data == {"text": "x"}
    act = place.events("phase:ended")[3]["data"]["result"]["act"]
    assert act == {"output": {"text": "x"}, "capHit": False, "calls": 2, "completed": True}
    place.script(a=[{"text": "I am done"}], a__2=[right])
    forgotten = place.run(stage)
    assert forgotten.data == {"text": "x"}
    verdict = place.events("phase:ended")[4]["data"]["result"]["verdict"]
    assert verdict == {"verdict": "retry", "feedback": "call `submit` when the work is done"}


def test_the_feedback_outlives_an_attempt_that_came_to_no_verdict(place: StagePlace) -> None:
    place.script(a=[{"text": "bad"}], a__2=[{"fail": "provider.context_too_long"}], a__3=[{"text": "good"}])

    done = place.run(
        "stages:\n  - id: a\n    retryPolicy: {maxAttempts: 3}\n    exit: {said: '{{ feedback }}'}\n"
        "    assert: [{when: \"{{ act.output.result == 'bad' }}\", verdict: retry, feedback: shorter}]\n"
    )

    assert done.data == {"said": "shorter"}


def test_a_failed_stage_with_code_for_next_is_resolved_by_its_policy(place: StagePlace) -> None:
    place.write("code_of_next.py", "def choose(phase):\n    return 'b' if phase.error else '$end'\n")
    place.script(a=[{"text": "bad"}], b=[{"text": "after"}])

    done = place.run(
        "stages:\n  - id: a\n    assert: [{verdict: fail, kind: external.article.bad}]\n    resolutionPolicy: skip\n"
        "    next: {code: code_of_next:choose, to: [b, $end]}\n  - {id: b}\n"
    )

    assert done.data == {"result": "after"}
    assert place.events("node:failed")[0]["data"]["failure"]["envelope"]["kind"] == "external.article.bad"


def test_a_budget_that_a_stage_reaches_stops_the_run_or_asks_a_person(place: StagePlace) -> None:
    head = (
        "workflow:\n  name: machine\n  entry_point: {entry}\n  runtime: {{default_model: 'scripted:replies.yaml'}}\n"
        "  cost: {{pricing: {{replies.yaml: {{input_per_mtok: 1000000, output_per_mtok: 1000000}}}}}}\n"
        "  limits: {{budget_usd: 100, on_exceed: %s}}\n"
    )
    spent = {"text": "x", "usage": {"input_tokens": 90, "output_tokens": 20}}
    place.script(a=[spent], b=[{"text": "y", "usage": {"input_tokens": 1, "output_tokens": 1}}])
    stages = "stages:\n  - {id: a, next: b}\n  - {id: b}\n"

    failed = place.run(stages, head=head % "fail")
    waiting = place.run(stages, "--no-input", head=head % "pause_for_approval")

    assert error_of(failed)["kind"] == "limit.budget_exceeded"
    assert waiting.code == 4
    for stage in ("a", "b"):
        answer = ("gates", "answer", "last", f"budget:{stage}", "approved", "--store", str(place.store))
        assert failwell(*answer, cwd=place.folder).code == 0
        resumed = place.command("resume", "last")
    assert resumed.data == {"result": "y"}
    assert place.phases("a") == place.phases("b") == paired(*PHASES)


def test_a_phase_that_is_stopped_before_it_began_does_not_keep_the_run_from_ending(place: StagePlace) -> None:
    """The end of one phase and the stop of the run are handled together, so the next phase is cancelled unbegun."""
    import asyncio
    import sys

    from failwell.workflows.api import local_settings
    from failwell.workflows.running.launch import start
    from failwell.workflows.running.settings import RunDriver

    place.write(
        "stopping_stages.py",
        "from failwell.workflows.machine.messages import Cancel\n\ndrivers = []\n\n"
        "async def setup(phase):\n    drivers[0].submit(Cancel(at=drivers[0].now()))\n\n"
        "def init(phase):\n    raise AssertionError('it was stopped before')\n",
    )
    stages = "stages:\n  - {id: a, setup: 'stopping_stages:setup', init: 'stopping_stages:init'}\n"
    place.write("machine.yaml", HEAD.format(entry="a") + stages)
    sys.path.append(str(place.folder))

    def keep(driver: RunDriver, _run: str) -> None:
        import stopping_stages  # pyright: ignore[reportMissingImports]

        stopping_stages.drivers.append(driver)  # pyright: ignore[reportUnknownMemberType]

    async def run() -> str:
        settings = local_settings(place.store, started=keep)
        try:
            path = str(place.folder / "machine.yaml")
            return (await asyncio.wait_for(start(path, {}, settings), 30)).status
        finally:
            settings.store.close()

    status = asyncio.run(run())

    assert status == "cancelled"
    assert place.phases("a") == paired("setup", "init")
