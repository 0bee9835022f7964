"""Each type of step: the spec it becomes, and the keys it refuses."""

import pytest

from failwell.errors.fault import Fault
from failwell.workflows.compile.steps import SHAPES
from failwell.workflows.plan import (
    AgentSpec,
    CallSpec,
    ForEachSpec,
    GateSpec,
    NotificationSpec,
    ParallelSpec,
    QuestionsSpec,
    ScriptSpec,
    SetSpec,
    Template,
    TerminateSpec,
    WaitSpec,
    WorkflowSpec,
)  # fmt: skip
from failwell.workflows.template.values import duration
from tests.workflows.compile.writing import HEAD, compiled, node_of, plan_of, the_mistake, with_step

GATE = "name: work, type: human_gate, prompt: Go?, options: [{label: Yes, value: y, route: a}, {label: No, value: no, route: $end}]"


def text_of(value: object) -> str:
    assert isinstance(value, Template)
    return value.text


def test_a_script() -> None:
    node = node_of(
        """
        name: work
        type: script
        command: "{{ tool }}"
        args: [a, "{{ b }}", ""]
        env: {A: "{{ not rendered }}", EMPTY: ""}
        env_from: {TOKEN: workflow.input.token}
        working_dir: sub
        stdin: ""
        timeout: 2.5m
        output_limit: 4096
        idempotent: true
        estimate_usd: 0.5
        output: {n: {type: number, minimum: 0}}
        """
    )

    spec = node.spec
    assert isinstance(spec, ScriptSpec)
    assert [text_of(one) for one in (spec.command, *spec.args)] == ["{{ tool }}", "a", "{{ b }}", ""]
    assert spec.env == {"A": "{{ not rendered }}", "EMPTY": ""}
    assert spec.env_from == {"TOKEN": "workflow.input.token"}
    assert (text_of(spec.working_dir), text_of(spec.stdin)) == ("sub", "")
    assert (spec.timeout, spec.output_limit, node.idempotent, node.estimate_usd) == (150.0, 4096, True, 0.5)
    assert node.output == {
        "type": "object", "properties": {"n": {"type": "number", "minimum": 0}}, "required": ["n"],
    }  # fmt: skip


def test_an_empty_output_is_declared_and_none_is_not() -> None:
    empty = node_of("{name: work, type: script, command: x, output: {}}")

    assert empty.output == {"type": "object", "properties": {}, "required": []}
    assert node_of("{name: work, type: script, command: x}").output is None


def test_a_step_without_a_type_is_an_agent() -> None:
    node = node_of(
        '{name: work, prompt: "hi {{ x }}", model: m, timeout_seconds: 30, tools: [], reasoning: {effort: "{{ e }}"}}'
    )

    assert node.type == "agent"
    assert isinstance(node.spec, AgentSpec)
    assert (text_of(node.spec.prompt), node.spec.timeout) == ("hi {{ x }}", 30.0)
    assert node.spec.settings["tools"] == []
    assert text_of(node.spec.settings["reasoning"]["effort"]) == "{{ e }}"


def test_jobs_and_tools_have_arguments() -> None:
    job = node_of(
        '{name: work, type: job, job: resize, arguments: {w: 3, deep: {s: "{{ x }}"}}, timeout_seconds: 9}'
    )
    tool = node_of("{name: work, type: tool, tool: grep}")
    mcp = node_of("{name: work, type: mcp, server: web, tool: fetch, arguments: {url: u}, timeout: 5}")

    assert isinstance(job.spec, CallSpec)
    assert (job.spec.target, job.spec.timeout, job.spec.arguments["w"]) == ("resize", 9.0, 3)
    assert text_of(job.spec.arguments["deep"]["s"]) == "{{ x }}"
    assert isinstance(tool.spec, CallSpec)
    assert (tool.type, tool.spec.target, tool.spec.arguments) == ("tool", "grep", {})
    assert isinstance(mcp.spec, CallSpec)
    assert (mcp.type, mcp.spec.settings, mcp.spec.timeout) == ("tool", {"server": "web"}, 5.0)


@pytest.mark.parametrize(
    "target", ["type: job, job: j", "type: tool, tool: t", "type: mcp, server: s, tool: t"]
)
def test_what_a_call_is_given_stands_under_arguments(target: str) -> None:
    assert "under `arguments`" in the_mistake(with_step(f"{{name: work, {target}, input: {{a: 1}}}}")).hint


def test_a_set_has_one_value_or_several() -> None:
    one = node_of('{name: work, type: set, value: "{{ 1 }}", output_type: integer}').spec
    null = node_of("{name: work, type: set, value: null}").spec
    several = node_of('{name: work, type: set, values: {a: "{{ 1 }}", b: [1, x]}}').spec

    assert isinstance(one, SetSpec)
    assert (text_of(one.value), one.output_type) == ("{{ 1 }}", "integer")
    assert null == SetSpec(value=None)
    assert isinstance(several, SetSpec)
    assert several.values is not None
    assert [text_of(several.values["a"]), several.values["b"][0]] == ["{{ 1 }}", 1]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90", 90.0), ("0.5", 0.5), ("500ms", 0.5), ("60s", 60.0), ("2.5m", 150.0), ("24h", 86400.0)],
)
def test_a_wait_is_a_number_or_a_duration(written: str, seconds: float) -> None:
    assert node_of(f"{{name: work, type: wait, duration: {written}}}").spec == WaitSpec(duration=seconds)


@pytest.mark.parametrize(
    "written", ["500ms", "60s", "2.5m", "1h", "24h", "0.001s", "90 s", "1H", "1d", "s", "1m30s", "-1s"]
)
def test_a_duration_means_the_same_in_a_file_and_at_run_time(written: str) -> None:
    done = compiled(with_step(f"{{name: work, type: wait, duration: '{written}'}}"))

    if done.plan is None:
        with pytest.raises(Fault):
            duration(written)
    else:
        assert done.plan.nodes["work"].spec == WaitSpec(duration=duration(written))


def test_a_wait_may_be_a_template() -> None:
    spec = node_of('{name: work, type: wait, duration: "{{ x }}", reason: later}').spec

    assert isinstance(spec, WaitSpec)
    assert (text_of(spec.duration), text_of(spec.reason)) == ("{{ x }}", "later")


@pytest.mark.parametrize("written", ["true", "false", "0", "-1", "25h", "soon", '""', "[1]", "86401", "1d"])
def test_what_is_no_duration_is_refused(written: str) -> None:
    assert (
        the_mistake(with_step(f"{{name: work, type: wait, duration: {written}}}")).path
        == "agents[0].duration"
    )


@pytest.mark.parametrize("step", ["type: script, command: x, timeout: true", "timeout_seconds: true"])
def test_a_truth_value_is_no_time(step: str) -> None:
    mistake = the_mistake(with_step(f"{{name: work, {step}}}"))

    assert "must be a duration, not true" in mistake.message


def test_a_gate() -> None:
    spec = node_of(
        f"{{{GATE}, assignee: '{{{{ who }}}}', timeout_seconds: 172800, timeout_option: no, on_reject: fail}}"
    ).spec

    assert isinstance(spec, GateSpec)
    assert [(option.value, option.route) for option in spec.options] == [("y", "a"), ("no", "$end")]
    assert (spec.timeout, spec.timeout_option, spec.reject) == (172800.0, "no", ("no",))
    assert text_of(spec.assignee) == "{{ who }}"


def test_a_gate_may_name_its_rejections() -> None:
    spec = node_of(f"{{{GATE}, on_reject: fail, reject_values: [y]}}").spec

    assert isinstance(spec, GateSpec)
    assert spec.reject == ("y",)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ("timeout_seconds: 5, timeout_option: maybe", "timeout_option"),
        ("timeout_option: no", "timeout_option"),
        ("on_reject: fail, reject_values: [maybe]", "reject_values[0]"),
        ("reject_values: [no]", "reject_values"),
        ("on_reject: stop", "on_reject"),
        ("retry: {}", "retry"),
        ("output: {}", "output"),
        ("timeout_seconds: true", "timeout_seconds"),
    ],
)
def test_a_gate_that_cannot_be_answered_so_is_refused(more: str, path: str) -> None:
    assert the_mistake(with_step(f"{{{GATE}, {more}}}")).path == f"agents[0].{path}"


def test_a_gate_that_fails_on_rejection_must_have_one() -> None:
    text = with_step(
        "{name: work, type: human_gate, prompt: p, on_reject: fail, options: [{label: l, value: v, route: a}]}"
    )

    assert "`reject_values`" in the_mistake(text).hint


def test_the_success_routes_of_a_gate_are_warned_of_and_left_out() -> None:
    done = compiled(with_step(f"{{{GATE}, routes: [{{to: a}}]}}"))

    assert done.plan is not None
    assert done.plan.nodes["work"].routes == ()
    assert [mistake.severity for mistake in done.mistakes] == ["warning"]


def test_questions_have_ids_and_their_own_defaults() -> None:
    spec = node_of(
        """
        name: work
        type: questions
        prompt: tell me
        allow_abort: true
        allow_back: false
        questions:
          - {text: why}
          - {text: how, id: h, choices: [a, b], default: a, required: true}
        """
    ).spec

    assert isinstance(spec, QuestionsSpec)
    assert [(one.id, one.required, one.default) for one in spec.questions] == [
        ("q1", False, None),
        ("h", True, "a"),
    ]
    assert (spec.abort_route, spec.allow_back, spec.allow_skip) == ("$end", False, True)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ("questions: [{text: a}], source: a.output.q", "agents[0].source"),
        ("", "agents[0]"),
        ("questions: []", "agents[0].questions"),
        ("source: short", "agents[0].source"),
        ("questions: [{text: a}], abort_route: x", "agents[0].abort_route"),
        ("questions: [{text: a, id: q2}, {text: b}]", "agents[0].questions[1]"),
        ("questions: [{text: a, allow_free_text: false}]", "agents[0].questions[0].allow_free_text"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(more: str, path: str) -> None:
    assert the_mistake(with_step(f"{{name: work, type: questions, {more}}}")).path == path


def test_the_rest_of_the_steps() -> None:
    note = node_of('{name: work, type: notification, emit: done, payload: {n: 3, t: "{{ x }}"}}').spec
    end = node_of(
        '{name: work, type: terminate, status: failed, reason: "r {{ x }}", output_template: {a: b}}'
    ).spec
    child = node_of(
        '{name: work, type: workflow, workflow: "{{ p }}.yaml", input_mapping: {a: "{{ b }}"}, max_depth: 3}'
    ).spec

    assert isinstance(note, NotificationSpec)
    assert (note.emit, note.payload["n"]) == ("done", 3)
    assert isinstance(end, TerminateSpec)
    assert (end.status, text_of(end.reason)) == ("failed", "r {{ x }}")
    assert isinstance(child, WorkflowSpec)
    assert (text_of(child.path), child.max_depth) == ("{{ p }}.yaml", 3)


def test_a_workflow_without_a_mapping_is_not_one_with_an_empty_mapping() -> None:
    without = node_of("{name: work, type: workflow, workflow: a.yaml}").spec
    empty = node_of("{name: work, type: workflow, workflow: a.yaml, input_mapping: {}}").spec

    assert isinstance(without, WorkflowSpec)
    assert isinstance(empty, WorkflowSpec)
    assert (without.input_mapping, empty.input_mapping) == (None, {})


def test_the_plain_paths_of_children_are_resolved() -> None:
    text = f"""{HEAD}agents:
  - {{name: work, type: workflow, workflow: ./sub/a.yaml}}
  - {{name: b, type: workflow, workflow: "{{{{ p }}}}.yaml"}}
  - {{name: c, type: workflow, workflow: name@owner/repo}}
for_each:
  - {{name: e, type: for_each, source: a.output.x, as: i, agent: {{name: n, type: workflow, workflow: b.yaml}}}}
"""

    assert plan_of(text).children == ("b.yaml", "sub/a.yaml")


def test_a_parallel_group_names_its_members() -> None:
    text = (
        HEAD
        + "agents: [{name: a}, {name: b}]\nparallel:\n  - {name: work, agents: [a, {name: b, when: '{{ x }}'}], max_concurrent: 1000, failure_mode: all_or_nothing, raises: [x.y], routes: [{on_error: x.y, to: a}]}\n"
    )

    node = plan_of(text).nodes["work"]

    assert isinstance(node.spec, ParallelSpec)
    assert [(member.name, member.when is None) for member in node.spec.members] == [("a", True), ("b", False)]
    assert (node.spec.max_concurrent, node.spec.failure_mode, node.is_opted_in) == (
        1000,
        "all_or_nothing",
        True,
    )


def for_each(body: str, more: str = "") -> str:
    return f"{HEAD}agents: [{{name: a, type: set, value: 1}}, {{name: g, type: human_gate, prompt: p, options: [{{label: l, value: v, route: a}}]}}]\nparallel: [{{name: p, agents: [a]}}]\nfor_each:\n  - {{name: work, type: for_each, source: x.output.l, as: i{more}, agent: {body}}}\n"


@pytest.mark.parametrize("kind", sorted(set(SHAPES) - {"human_gate", "questions"}))
def test_the_body_of_a_for_each_may_be_any_step_but_a_question_to_a_person(kind: str) -> None:
    needed = {
        "script": "command: c", "job": "job: j", "tool": "tool: t", "mcp": "server: s, tool: t", "set": "value: v",
        "wait": "duration: 1", "notification": "emit: e", "terminate": "status: failed, reason: r",
        "workflow": "workflow: w",
    }  # fmt: skip

    node = plan_of(for_each(f"{{name: n, type: {kind}, {needed.get(kind, '')}}}")).nodes["work"]

    assert isinstance(node.spec, ForEachSpec)
    assert node.spec.body.type == ("tool" if kind == "mcp" else kind)
    assert node.spec.max_concurrent == 10


def test_the_body_of_a_for_each_may_be_a_group_or_a_name() -> None:
    inner = plan_of(for_each("{name: n, type: for_each, source: i.a.b, as: j, agent: a}")).nodes["work"].spec
    group = plan_of(for_each("{name: n, type: parallel, agents: [a]}")).nodes["work"].spec
    named = plan_of(for_each("p")).nodes["work"].spec

    assert isinstance(inner, ForEachSpec)
    assert isinstance(inner.body.spec, ForEachSpec)
    assert inner.body.spec.body.name == "a"
    assert isinstance(group, ForEachSpec)
    assert group.body.type == "parallel"
    assert isinstance(named, ForEachSpec)
    assert named.body.name == "p"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("g", "cannot run for each item"),
        ("{name: n, type: human_gate}", "cannot run for each item"),
        ("{name: n, type: questions}", "cannot run for each item"),
        ("work", "runs itself"),
        ("nobody", "there is no step `nobody`"),
        ("3", "must be a step or the name of one"),
        ("[a]", "must be a step or the name of one"),
        ("{name: n, type: sript}", "there is no step of type `sript`"),
    ],
)
def test_a_body_that_cannot_be_is_refused(body: str, said: str) -> None:
    mistake = the_mistake(for_each(body))

    assert said in mistake.message
    assert mistake.path.startswith("for_each[0].agent")


@pytest.mark.parametrize(
    ("more", "path"),
    [
        (", max_concurrent: 1001", "max_concurrent"),
        (", max_concurrent: 0", "max_concurrent"),
        (", failure_mode: slow", "failure_mode"),
        (", key_by: ''", "key_by"),
    ],
)
def test_a_for_each_has_bounds(more: str, path: str) -> None:
    assert the_mistake(for_each("a", more)).path == f"for_each[0].{path}"


@pytest.mark.parametrize("variable", ["workflow", "context", "output", "_index", "_key", "2x", "a-b", "a b"])
def test_the_variable_of_a_for_each_must_be_free(variable: str) -> None:
    text = f"{HEAD}agents: [{{name: work}}]\nfor_each: [{{name: e, type: for_each, source: a.b.c, as: {variable}, agent: work}}]\n"

    assert the_mistake(text).path == "for_each[0].as"


@pytest.mark.parametrize(
    "name", ["workflow", "context", "a/b", "a.b", "a b", '""', "x" * 101, "[x]", "1", "$end"]
)
def test_a_name_that_nothing_could_refer_to_is_refused(name: str) -> None:
    assert the_mistake(with_step(f"{{name: {name}}}")).path == "agents[0].name"


def test_groups_that_run_each_other_without_end_are_refused() -> None:
    groups = [f"{{name: e{n}, type: for_each, source: a.b.c, as: x, agent: e{n + 1}}}" for n in range(2000)]
    text = f"{HEAD}agents: [{{name: e2000}}]\nfor_each: [{', '.join(groups)}]\n"

    found = compiled(text).mistakes

    assert any("groups are nested" in mistake.message for mistake in found)
