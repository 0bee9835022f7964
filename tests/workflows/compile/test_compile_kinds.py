"""Kinds in files: `raises`, `on_error`, and the block that declares them."""

import pytest

from failwell.calls.policy import Match
from failwell.errors.axes import Blame, Category, Certainty
from tests.workflows.compile.writing import (
    HEAD,
    mistakes_in,
    plan_of,
    the_mistake,
    wait_of,
    with_route,
    with_step,
)

WELL_SPELLED = ["a.b", "_p.x", "x.y_1.z2", "external.git.fetch_failed", "internal_x.y", "providers.x"]
BADLY_SPELLED = ["oops", "A.b", ".a.b", "a..b", "a-b.c", "1a.b", '"a.b\\n"', "x.1b", '"x y.z"', "a.b."]


def selector(on_error: str) -> Match:
    plan = plan_of(with_route(f"{{on_error: {on_error}, to: $end}}"))
    found = plan.nodes["work"].routes[0].on_error
    assert found is not None
    return found


@pytest.mark.acceptance("conductor 1")
@pytest.mark.parametrize("kind", WELL_SPELLED)
def test_a_well_spelled_kind_loads_in_raises_and_in_on_error(kind: str) -> None:
    plan = plan_of(with_route(f"{{on_error: {kind}, to: $end}}", f"raises: [{kind}]\n"))

    assert plan.nodes["work"].raises == (kind,)
    assert selector(kind) == Match(kinds=frozenset({kind}))


@pytest.mark.acceptance("conductor 1")
@pytest.mark.parametrize("kind", BADLY_SPELLED)
def test_a_badly_spelled_kind_is_refused_by_name(kind: str) -> None:
    raised = the_mistake(with_step(f"{{name: work, type: script, command: x, raises: [{kind}]}}"))
    routed = the_mistake(with_route(f"{{on_error: {kind}, to: $end}}"))

    shown = kind if not kind.startswith('"') else "x y.z" if " " in kind else "the value"
    assert (raised.path, routed.path) == ("agents[0].raises[0]", "agents[0].routes[0].on_error")
    assert shown in raised.message
    assert shown in routed.message


@pytest.mark.acceptance("conductor 2")
@pytest.mark.parametrize(
    ("on_error", "said"),
    [
        ("false", "omit the field"),
        ('""', "name a kind, or write `true`"),
        ("[]", "write `true`"),
        ("[1]", "a kind is"),
        ("{}", "write `true`"),
        ('"*"', "write `on_error: true`"),
        ('["*"]', "write `on_error: true`"),
        ("1", "write `true`"),
        ("~", "write `true`"),
        ("[a.b, a.b]", "keep one"),
        ("{category: nonsense}", ""),
        ("{knd: a.b}", "did you mean `kind`?"),
        ("{kind: []}", ""),
        ("{kind: ~}", "write `true`"),
        ("{kind: ~, category: null}", "write `true`"),
    ],
)
def test_an_on_error_that_means_nothing_is_refused(on_error: str, said: str) -> None:
    mistake = the_mistake(with_route(f"{{on_error: {on_error}, to: $end}}"))

    assert mistake.path.startswith("agents[0].routes[0].on_error")
    assert said in mistake.hint


@pytest.mark.acceptance("conductor 3")
@pytest.mark.parametrize(
    ("raises", "said"),
    [
        ("[]", "leave it out"),
        ("[x.y, x.y]", "keep one"),
        ("[internal.script_error]", "do not declare it; routes can use it"),
        ("[provider.exhausted]", "do not declare it; routes can use it"),
        ("[subworkflow.failed]", "do not declare it; routes can use it"),
        ("[retry.exhausted]", "do not declare it; routes can use it"),
        ("[halt.now]", "do not declare it; routes can use it"),
        ("[tool.mine]", "do not declare it; routes can use it"),
        ("[1]", ""),
        ("x.y", "write `[…]`"),
        ('["*"]', "leave `raises` out"),
    ],
)
def test_a_raises_that_cannot_be_is_refused(raises: str, said: str) -> None:
    mistake = the_mistake(with_step(f"{{name: work, type: script, command: x, raises: {raises}}}"))

    assert mistake.path.startswith("agents[0].raises")
    assert said in mistake.hint


@pytest.mark.acceptance("conductor 3")
def test_a_kind_that_only_begins_like_a_reserved_one_loads() -> None:
    assert plan_of(with_step("{name: work, raises: [internal_x.y, retrying.x]}")).nodes["work"].raises == (
        "internal_x.y",
        "retrying.x",
    )


@pytest.mark.acceptance("conductor 5")
@pytest.mark.parametrize("kind", ["x.z", "internal.script_error", "provider.exhausted", "retry.exhausted"])
def test_without_raises_any_kind_may_be_routed(kind: str) -> None:
    assert selector(kind).kinds == {kind}


def test_a_selector_may_be_everything_a_list_or_axes() -> None:
    assert selector("true") == Match()
    assert selector("[a.b, c.d]") == Match(kinds=frozenset({"a.b", "c.d"}))
    assert selector("{category: transient}") == Match(categories=frozenset({Category.TRANSIENT}))
    assert selector("{certainty: [not_sent, rejected], blame: tool, prefix: external.git}") == Match(
        prefixes=("external.git.",),
        certainties=frozenset({Certainty.NOT_SENT, Certainty.REJECTED}),
        blames=frozenset({Blame.TOOL}),
    )


def test_declared_kinds_have_a_category() -> None:
    plan = plan_of(
        f"{HEAD}kinds:\n  shop.sold_out: {{category: limit, summary: gone}}\nagents: [{{name: work}}]\n"
    )

    declared = plan.kinds["shop.sold_out"]

    assert (declared.category, declared.summary) == (Category.LIMIT, "gone")
    assert declared.place is not None
    assert declared.place.line == 3


def test_a_declared_kind_must_be_ones_own() -> None:
    text = f"{HEAD}kinds: {{oops: {{category: limit}}, tool.x: {{category: limit}}, a.b: {{category: odd}}, c.d: {{}}}}\n"

    found = mistakes_in(text + "agents: [{name: work}]\n")

    assert [mistake.path for mistake in found] == [
        "kinds.oops",
        "kinds.tool.x",
        "kinds.a.b.category",
        "kinds.c.d",
    ]


@pytest.mark.acceptance("relavium 47")
@pytest.mark.parametrize(
    ("retry_on", "said"),
    [
        ("[tool.denied]", "`tool.denied` in `retry_on` is never retried"),
        ("[denied]", "is never retried"),
        ("[validation.input_invalid, fatal]", "is never retried"),
        ("[]", "must not be empty"),
        ("[tool_denied]", "neither a kind nor a category"),
        ("[provider.rate_limitd]", "is not a kind of the runtime"),
        ("[3]", "must name kinds or categories"),
        ("transient", "must be a list"),
    ],
)
def test_a_retry_on_that_can_never_be_is_refused_by_its_field(retry_on: str, said: str) -> None:
    found = mistakes_in(with_step(f"{{name: work, retry: {{max_attempts: 2, retry_on: {retry_on}}}}}"))

    assert all(mistake.path.startswith("agents[0].retry.retry_on") for mistake in found)
    assert said in found[0].message


def test_retry_on_takes_kinds_categories_and_two_words() -> None:
    step = "{name: work, retry: {retry_on: [transient, shop.busy, worker.crashed, provider_error, timeout]}}"

    node = plan_of(with_step(step)).nodes["work"]

    repeated = (
        "shop.busy",
        "worker.crashed",
        "provider.rate_limited",
        "provider.timeout",
        "internal.script_timeout",
    )
    assert {kind: wait_of(node, kind) for kind in repeated} == dict.fromkeys(repeated, 1.0)
    assert wait_of(node, "shop.slow", category="transient") == 1.0
    assert wait_of(node, "provider.auth") is None
    assert wait_of(node, "limit.run_timeout") is None


def test_what_is_used_up_may_be_waited_for() -> None:
    step = "agents: [{name: work, retry: {retry_on: [shop.quota, capacity]}}]"

    node = plan_of(f"{HEAD}kinds: {{shop.quota: {{category: capacity}}}}\n{step}\n").nodes["work"]

    assert wait_of(node, "shop.quota", category="capacity") == 1.0
    assert wait_of(node, "shop.other", category="capacity", after=7.0) == 7.0
    assert wait_of(node, "shop.other", category="capacity") is None
    assert wait_of(node, "shop.other", category="transient") is None


@pytest.mark.acceptance("relavium 47")
def test_a_declared_kind_that_is_never_repeated_is_refused_in_retry_on() -> None:
    step = "agents: [{name: work, retry: {retry_on: [shop.gone, shop.busy]}}]"

    mistake = the_mistake(
        f"{HEAD}kinds: {{shop.gone: {{category: fatal}}, shop.busy: {{category: transient}}}}\n{step}\n"
    )

    assert mistake.path == "agents[0].retry.retry_on[0]"
    assert "never retried" in mistake.message
