"""The cost of a step does not depend on how many there are; it is counted in calls, because time varies."""

import sys
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from failwell.workflows.machine.advance import Machine, take_turns
from failwell.workflows.machine.fold import fold
from failwell.workflows.machine.messages import Begin, Event
from failwell.workflows.machine.run_state import State
from failwell.workflows.plan import Plan
from tests.workflows.plans import a_for_each, a_plan, a_set, to

MOST = 1.5


def calls_in(work: Callable[[], object]) -> int:
    count = 0

    def add(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(add)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def plain_nodes(count: int) -> Plan:
    nodes = [a_set(f"n{index}", to(f"n{index + 1}"), value=index) for index in range(count - 1)]
    return a_plan(*nodes, a_set(f"n{count - 1}", value=0))


def nodes_with_expressions(count: int) -> Plan:
    nodes = [
        a_set(
            f"n{index}", to(f"n{index + 1}"), value=f"{{{{ n{index - 1}.output + {index} }}}}" if index else 0
        )
        for index in range(count - 1)
    ]
    return a_plan(*nodes, a_set(f"n{count - 1}", value=0))


def items(count: int) -> Plan:
    source = a_set("list", to("each"), values={"all": list(range(count))})
    return a_plan(source, a_for_each("each", source="list.output.all"))


def run(plan: Plan) -> list[tuple[str, float, Any]]:
    machine, state = Machine({plan.file: plan}), State()
    queue: deque[Event] = deque([Begin(at=1.0, run="r", file=plan.file, inputs={})])
    recorded: list[tuple[str, float, Any]] = []
    while queue:
        facts, _, defect = take_turns(machine, state, queue, now=lambda: 1.0, jitter=lambda: 0.5)
        assert defect is None
        recorded += facts
    assert state.status == "completed"
    return recorded


@pytest.mark.parametrize("make", [plain_nodes, nodes_with_expressions, items])
def test_a_step_of_a_long_run_takes_as_many_calls_as_one_of_a_short_run(make: Callable[[int], Plan]) -> None:
    few, many = make(100), make(2_000)
    run(make(10))

    each_of_few = calls_in(lambda: run(few)) / 100
    each_of_many = calls_in(lambda: run(many)) / 2_000

    assert each_of_many <= MOST * each_of_few


def test_a_fact_of_a_long_run_takes_as_many_calls_as_one_of_a_short_run() -> None:
    few, many = run(plain_nodes(100)), run(plain_nodes(3_000))

    each_of_few = calls_in(lambda: fold(few)) / len(few)
    each_of_many = calls_in(lambda: fold(many)) / len(many)

    assert each_of_many <= MOST * each_of_few
