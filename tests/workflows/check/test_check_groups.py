"""The rules of groups."""

import pytest

from failwell.workflows.plan import Member, Node
from tests.workflows.check.finding import errors, found, hints, warnings
from tests.workflows.plans import (
    a_for_each,
    a_gate,
    a_parallel,
    a_place,
    a_plan,
    a_script,
    a_set,
    a_terminate,
    a_text,
    an_input,
    on_error,
    some_inputs,
    some_questions,
    to,
)

ITEMS = some_inputs(an_input("items", "array"))


def test_a_group_has_two_members_or_more() -> None:
    assert errors(a_plan(a_parallel("both", members=("left",)), a_set("left"))) == [
        "the group `both` has 1 member"
    ]


def test_a_member_that_does_not_exist_is_named() -> None:
    plan = a_plan(a_parallel("both", members=("left", "rigth")), a_set("left"), a_set("right"))

    assert errors(plan) == ["`both` has no step `rigth` to run"]
    assert "did you mean `right`?" in hints(plan)


def test_a_step_is_a_member_of_one_group_and_once() -> None:
    shared = a_plan(
        a_parallel("one", to("two"), members=("left", "right")),
        a_parallel("two", members=("right", "third")),
        a_set("left"),
        a_set("right"),
        a_set("third"),
    )
    twice = a_plan(a_parallel("one", members=("left", "left")), a_set("left"))

    assert errors(shared) == ["`right` is a member of both `one` and `two`"]
    assert errors(twice) == ["`left` is in `one` twice"]


@pytest.mark.parametrize("member", [a_gate("left"), some_questions("left"), a_terminate("left")])
def test_who_waits_for_a_person_or_ends_the_run_is_no_member(member: Node) -> None:
    grouped = a_plan(a_parallel("both"), member, a_set("right"))
    looped = a_plan(a_for_each("fan", body=member), inputs=ITEMS)

    assert errors(grouped)[0].startswith(f"`left` ({member.type}) cannot be in the group `both`: ")
    assert errors(looped)[0].startswith(f"`left` ({member.type}) cannot be in the group `fan`: ")


def test_a_member_has_no_routes_of_its_own() -> None:
    grouped = a_plan(a_parallel("both"), a_script("left", on_error(to="right")), a_set("right"))
    looped = a_plan(a_for_each("fan", body=a_script("one", to())), inputs=ITEMS)

    assert errors(grouped) == ["`left` is in the group `both`, so it cannot have routes"]
    assert errors(looped) == ["`one` is in the group `fan`, so it cannot have routes"]


def test_a_group_may_lie_in_another_but_not_in_itself() -> None:
    nested = a_plan(
        a_parallel("outer", members=("inner", "third")),
        a_parallel("inner", members=("left", "right")),
        a_set("left"),
        a_set("right"),
        a_set("third"),
    )
    circle = a_plan(
        a_script("begin", to("outer")),
        a_parallel("outer", members=("inner", "left")),
        a_parallel("inner", members=("outer", "right")),
        a_set("left"),
        a_set("right"),
    )

    assert found(nested) == []
    assert "the group `outer` contains itself: `outer` in `inner` in `outer`" in errors(circle)


@pytest.mark.acceptance("conductor 34")
@pytest.mark.parametrize("what", ["error.kind", "output"])
def test_a_member_cannot_look_at_the_one_beside_it(what: str) -> None:
    plan = a_plan(a_parallel("both"), a_set("left"), a_script("right", args=[f"{{{{ left.{what} }}}}"]))

    assert errors(plan) == ["`left` runs beside it in `both`, so it has no output yet"]


@pytest.mark.acceptance("conductor 34")
def test_the_condition_of_a_member_cannot_look_at_another_member() -> None:
    members = (Member(name="left"), Member(name="right", when=a_text("{{ left.error.kind == 'x.y' }}")))
    plan = a_plan(a_parallel("both", members=members), a_set("left"), a_set("right"))

    assert errors(plan) == ["`left` runs beside it in `both`, so it has no output yet"]


def test_members_of_nested_groups_are_beside_each_other_as_well() -> None:
    plan = a_plan(
        a_parallel("outer", members=("inner", "third")),
        a_parallel("inner", members=("left", "right")),
        a_set("left"),
        a_set("right"),
        a_set("third", value="{{ left.output }}"),
    )

    assert errors(plan) == ["`left` runs beside it in `outer`, so it has no output yet"]


@pytest.mark.acceptance("conductor 64")
def test_a_body_with_the_name_of_another_step_is_an_error() -> None:
    plan = a_plan(
        a_for_each("fan", to("one"), body=a_set("one", value="1", place=a_place(4))),
        a_set("one", value="2", place=a_place(9)),
        inputs=ITEMS,
    )

    assert errors(plan) == ["two steps are called `one`"]


def test_a_loop_may_run_a_step_that_is_listed_elsewhere() -> None:
    listed = a_script("one", args=["{{ item }}"], place=a_place(9))

    assert found(a_plan(a_for_each("fan", body=listed), listed, inputs=ITEMS)) == []


def test_a_step_cannot_take_a_name_that_templates_use() -> None:
    assert errors(a_plan(a_set("workflow"))) == ["the name `workflow` is reserved in templates"]


def test_an_item_that_hides_a_step_is_a_warning() -> None:
    plan = a_plan(a_set("item", to("fan")), a_for_each("fan"), inputs=ITEMS)

    assert warnings(plan) == ["in `fan` the item `item` hides the step of that name"]


def test_a_group_of_ten_thousand_members_is_checked_in_passing() -> None:
    names = [f"n{number}" for number in range(10_000)]
    plan = a_plan(a_parallel("all", members=names), *(a_set(name) for name in names))

    assert found(plan) == []
