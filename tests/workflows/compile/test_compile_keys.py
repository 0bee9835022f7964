"""Files are closed: every key that is unknown, missing, doubled or out of place is named with its path."""

from pathlib import Path

import pytest

import failwell
from failwell.errors.faults import Validation
from failwell.files.item_tree import Place
from failwell.workflows.compile.compiler import compile_file
from tests.specimens import each
from tests.workflows.compile.writing import (
    HEAD,
    compiled,
    mistakes_in,
    plan_of,
    the_mistake,
    with_route,
    with_step,
)


@pytest.mark.acceptance("conductor 7", "relavium 70")
@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        (with_route("{to: a, wen: x}"), "agents[0].routes[0].wen", "did you mean `when`?"),
        (with_step("{name: work, promt: x}"), "agents[0].promt", "did you mean `prompt`?"),
        (with_step("{name: work, type: script, command: x, xyzzy: 1}"), "agents[0].xyzzy", "its keys are"),
        (HEAD + "agents: [{name: work}]\nparallel: [{name: p, agents: [work], mode: x}]", "parallel[0].mode", "failure_mode"),
        (HEAD + "agents: [{name: work}]\nfor_each: [{name: e, source: a.b.c, as: x, agent: work, max: 3}]", "for_each[0].max", "its keys"),
        (HEAD + "agents: [{name: work}]\nxyz: []", "xyz", "its keys are"),
        (HEAD + "agents: [{name: work}]\nsteps: []", "steps", "write `agents`"),
        ("workflow: {name: a, entry_point: work, limit: {}}\nagents: [{name: work}]", "workflow.limit", "did you mean `limits`?"),
        ("workflow: {name: a, entry_point: work, limits: {max_iteration: 3}}\nagents: [{name: work}]", "workflow.limits.max_iteration", "did you mean"),
        (with_step("{name: work, output: {x: {type: string, minlength: 3}}}"), "agents[0].output.x.minlength", "`minLength`"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_named_with_its_path(text: str, path: str, hint: str) -> None:
    mistake = the_mistake(text)

    assert "has no key" in mistake.message
    assert mistake.path == path
    assert hint in mistake.hint
    assert mistake.place is not None


@pytest.mark.parametrize(
    ("step", "hint"),
    [
        ("{name: work, type: set, value: 1, command: x}", "it belongs to steps of type script"),
        ("{name: work, command: x}", "add `type: script`"),
        ("{name: work, options: []}", "add `type: human_gate`"),
        ("{name: work, type: terminate, status: failed, reason: r, routes: []}", "the run ends here"),
        ("{name: work, type: script, command: x, timeout_seconds: 3}", "write `timeout`"),
        ("{name: work, type: wait, duration: 1, output: {}}", "it belongs to steps of type"),
        ("{name: work, type: workflow, workflow: x, retry: {}}", "it belongs to steps of type"),
    ],
)
def test_a_key_of_another_type_is_refused_and_says_whose_it_is(step: str, hint: str) -> None:
    mistake = the_mistake(with_step(step))

    assert "has no key" in mistake.message
    assert hint in mistake.hint


@pytest.mark.acceptance("conductor 64")
def test_a_name_that_is_used_twice_across_steps_and_groups_names_both_places() -> None:
    text = f"""{HEAD}agents:
  - {{name: work}}
  - {{name: other}}
  - {{name: work, type: set, value: 1}}
parallel:
  - {{name: other, agents: [work]}}
for_each:
  - {{name: work, type: for_each, source: a.b.c, as: x, agent: other}}
"""

    found = mistakes_in(text)

    assert [(mistake.path, mistake.also) for mistake in found] == [
        ("agents[2].name", (Place(file="flow.yaml", line=3, column=12),)),
        ("parallel[0].name", (Place(file="flow.yaml", line=4, column=12),)),
        ("for_each[0].name", (Place(file="flow.yaml", line=3, column=12),)),
    ]
    assert "`work` is used twice" in found[0].message


@pytest.mark.acceptance("relavium 70")
@each(
    ("text", "path"),
    [
        (with_step("{name: work, name: work}"), "agents[0].name"),
        (with_step("{name: work, type: script, command: [x]}"), "agents[0].command"),
        (with_step("{name: work, type: script, command: x, args: x}"), "agents[0].args"),
        (with_step("{name: work, type: script, command: x, args: [1]}"), "agents[0].args[0]"),
        (with_step("{name: work, type: script, command: x, env: {A: 1}}"), "agents[0].env.A"),
        (with_step("{name: work, type: script, command: x, env_from: {A: token}}"), "agents[0].env_from.A"),
        (with_step("{name: work, type: script}"), "agents[0]"),
        (with_step("{name: work, estimate_usd: -1}"), "agents[0].estimate_usd"),
        (with_step("{name: work, idempotent: maybe}"), "agents[0].idempotent"),
        (with_step("{prompt: x}"), "agents[0]"),
        (with_step("{name: work, type: 3}"), "agents[0].type"),
        (with_step("{name: work, type: parallel}"), "agents[0].type"),
        (HEAD + "agents: {work: {}}", "agents"),
        (HEAD + "agents: [work]", "agents[0]"),
        (HEAD + "agents: []", ""),
        ("agents: [{name: work}]", ""),
        ("workflow: demo\nagents: [{name: work}]", "workflow"),
        ("workflow: {name: a}\nagents: [{name: work}]", "workflow"),
        ("[1, 2]", ""),
        ("3", ""),
    ],
)
def test_a_wrong_or_missing_value_is_named_with_its_path(text: str, path: str) -> None:
    mistake = the_mistake(text)

    assert mistake.path == path
    assert mistake.kind == "validation.shape_invalid"


def test_an_empty_file_says_how_to_begin() -> None:
    for text in ("", "# nothing\n", "---\n"):
        mistake = mistakes_in(text)[0]

        assert "workflow" in f"{mistake.message} {mistake.hint}"


def head(block: str) -> str:
    return f"workflow: {{name: demo, entry_point: work, {block}}}\nagents: [{{name: work}}]\n"


def test_limits_of_both_dialects() -> None:
    ours = plan_of(
        head(
            "limits: {max_iterations: 1000000, timeout_seconds: 0.5, budget_usd: 2, on_exceed: pause_for_approval, max_parallel: 4, park_after_seconds: 0}"
        )
    ).limits
    audit = plan_of(head("limits: {budget_mode: audit}")).limits
    enforce = plan_of(head("limits: {budget_mode: enforce}")).limits

    assert (ours.max_iterations, ours.timeout_seconds, ours.budget_usd) == (1_000_000, 0.5, 2)
    assert (ours.on_exceed, ours.max_parallel, ours.park_after_seconds) == ("pause_for_approval", 4, 0)
    assert (audit.on_exceed, enforce.on_exceed) == ("warn", "fail")


@each(
    ("block", "path"),
    [
        ("limits: {max_iterations: 0}", "limits.max_iterations"),
        ("limits: {max_iterations: 1000001}", "limits.max_iterations"),
        ("limits: {timeout_seconds: 0}", "limits.timeout_seconds"),
        ("limits: {timeout_seconds: true}", "limits.timeout_seconds"),
        ("limits: {budget_usd: 0}", "limits.budget_usd"),
        ("limits: {on_exceed: fail, budget_mode: audit}", "limits.budget_mode"),
        ("context: {mode: all}", "context.mode"),
        ("input: {x: {type: text}}", "input.x.type"),
        ("input: {x: {}}", "input.x"),
        ("input: {x: {type: number, default: true}}", "input.x.default"),
        ("input: {x: {type: string, default: 3}}", "input.x.default"),
        ("input: {'1x': {type: string}}", "input.1x"),
        ("hooks: {on_end: x}", "hooks.on_end"),
        ("instructions: text", "instructions"),
        ("version: 1.0", "version"),
        ("metadata: [1]", "metadata"),
        ("runtime: {temperature: 3}", "runtime.temperature"),
        ("runtime: {mcp_servers: {a: {typ: http}}}", "runtime.mcp_servers.a.typ"),
        ("notifications: {types: {t: {}}}", "notifications.types.t"),
        ("notifications: {types: {t: {version: 1.5}}}", "notifications.types.t.version"),
        ("cost: {pricing: {m: {input_per_mtok: 1}}}", "cost.pricing.m"),
    ],
)
def test_the_head_of_a_file_is_closed_and_typed(block: str, path: str) -> None:
    assert the_mistake(head(block)).path == f"workflow.{path}"


def test_inputs_keep_whether_they_have_a_default() -> None:
    inputs = plan_of(
        head(
            "input: {a: {type: string}, b: {type: number, required: false, default: 0}, c: {type: string, secret: true}}"
        )
    ).inputs

    assert [(one.required, one.has_default, one.default, one.secret) for one in inputs.values()] == [
        (True, False, None, False), (False, True, 0, False), (True, False, None, True),
    ]  # fmt: skip


def test_the_default_of_a_secret_is_warned_of() -> None:
    done = compiled(head("input: {t: {type: string, secret: true, default: abc}}"))

    assert done.plan is not None
    assert [mistake.severity for mistake in done.mistakes] == ["warning"]
    assert plan_of(head("input: {t: {type: string, secret: true, default: '${T}'}}"), T="x")


def test_a_variable_is_read_as_the_number_that_is_wanted() -> None:
    text = head("limits: {max_iterations: '${MAX}', budget_usd: '${USD:-2.5}'}, version: '${V}'").replace(
        "${USD:-2.5}", "${USD}"
    )

    plan = plan_of(text, MAX="7", USD="2.5", V="1.0")

    assert (plan.limits.max_iterations, plan.limits.budget_usd, plan.version) == (7, 2.5, "1.0")


def test_a_variable_that_is_wrong_is_not_quoted() -> None:
    mistake = the_mistake(head("context: {mode: '${MODE}'}"), MODE="hunter2")
    kind = the_mistake(with_route("{on_error: '${KIND}', to: $end}"), KIND="hunter2")
    number = the_mistake(head("limits: {max_iterations: '${MAX}'}"), MAX="hunter2")
    step = the_mistake(with_step("{name: '${N}', type: '${T}'}"), N="a", T="hunter2")

    said = [f"{one.message} {one.hint} {one.line}" for one in (mistake, kind, number, step)]
    assert [text for text in said if "hunter2" in text] == []
    assert "${MODE}" in said[0]


def test_null_is_as_good_as_nothing() -> None:
    plan = plan_of(with_route("{to: $end, when: null, output: ~}", "stdin: null\ntimeout:\n"))

    assert plan.nodes["work"].routes[0].when is None


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    kinds: list[str] = []

    for path in (tmp_path / "gone.yaml", tmp_path, tmp_path / "file" / "below.yaml"):
        with pytest.raises(Validation) as refused:
            compile_file(str(path), environ={})
        kinds.append(failwell.describe(refused.value).kind)

    assert kinds == ["validation.path_not_found", "validation.path_wrong_type", "validation.path_wrong_type"]


def test_a_file_and_its_parts_have_one_digest(tmp_path: Path) -> None:
    root = tmp_path / "flow.yaml"
    root.write_text(HEAD + "agents: !file steps.yaml\n", encoding="utf-8")
    (tmp_path / "steps.yaml").write_text("- {name: work, prompt: !file ask.md}\n", encoding="utf-8")
    (tmp_path / "ask.md").write_text("one", encoding="utf-8")
    first = compile_file(str(root), environ={})
    (tmp_path / "ask.md").write_text("two", encoding="utf-8")

    second = compile_file(str(root), environ={})

    assert first.plan is not None
    assert second.plan is not None
    assert first.plan.digest != second.plan.digest
    assert first.files[str(root)] == second.files[str(root)]
    place = second.plan.nodes["work"].place
    assert place is not None
    assert place.file == str(tmp_path / "steps.yaml")


def test_a_digest_does_not_change_with_the_folder(tmp_path: Path) -> None:
    digests: set[str] = set()
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "flow.yaml").write_text(
            HEAD + "agents: [{name: work, prompt: !file ask.md}]\n", encoding="utf-8"
        )
        (folder / "ask.md").write_text("hi", encoding="utf-8")
        plan = compile_file(str(folder / "flow.yaml"), environ={}).plan
        assert plan is not None
        digests.add(plan.digest)

    assert len(digests) == 1
