"""Takes the queued events of a run through the machine, one after another. Every driver uses it.

What is left to a driver is its surroundings: where facts are recorded, what carries out commands, and what
tells the time.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from failwell.workflows.machine.advance import Machine
from failwell.workflows.machine.messages import Command, Continue, Event, Tick
from failwell.workflows.machine.run_state import State

Facts = list[tuple[str, float, Mapping[str, Any]]]
"""The type, the time and the data of each fact."""
MAX_FACTS = 1_024
"""A batch ends after this many facts, so that they are recorded together in bounded time."""


class Defect(NamedTuple):
    """An event that the machine could not handle."""

    event: Event
    error: Exception


def take_turns(
    machine: Machine,
    state: State,
    queue: deque[Event],
    *,
    now: Callable[[], float],
    jitter: Callable[[], float],
) -> tuple[State, Facts, list[Command], Defect | None]:
    """Advance `state` by the events of `queue`, which are removed from it.

    Returns the state after them, what to record, and what to carry out after it is recorded. With a defect there are
    no commands, and the state and the facts end before its event.
    """
    facts: Facts = []
    commands: list[Command] = []
    while queue and len(facts) < MAX_FACTS:
        event = queue.popleft()
        try:
            turn = machine.advance(state, event)
        except Exception as error:  # noqa: BLE001  (whatever the machine raises, its driver closes the run)
            return state, facts, [], Defect(event, error)
        state = turn.state
        facts.extend([(kind, event.at, data) for kind, data in turn.facts])
        commands.extend(turn.commands)
        if commands and isinstance(commands[-1], Continue):
            commands.pop()
            queue.append(Tick(at=now(), jitter=jitter()))
    return state, facts, commands, None
