"""Every dialect and every scenario that it has: the reply, and the correct classification."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from failwell.testing.laboratory.dialects.table import dialect, dialect_names
from failwell.testing.laboratory.lab_reply import LabCall, Reply
from failwell.testing.laboratory.scenario import SCENARIOS, Scenario, Truth


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario in one dialect."""

    dialect: str
    scenario: Scenario
    reply: Reply
    truth: Truth

    @property
    def shown(self) -> str:
        """The reply in a word or two."""
        if self.scenario.name == "refused":
            return "closed"
        if self.reply.status is None:
            return "reset"
        ending = {"whole": "", "cut": " cut", "reset": " reset"}[self.reply.ending]
        return f"{self.reply.status}{'' if self.reply.stall == 'never' else ' late'}{ending}"

    def as_dict(self) -> dict[str, Any]:
        """The cell as JSON."""
        truth = self.truth
        return {
            "id": f"{self.dialect}/{self.scenario.name}",
            "dialect": self.dialect,
            "scenario": self.scenario.name,
            "summary": self.scenario.summary,
            "shown": self.shown,
            "status": self.reply.status,
            "streams": self.scenario.streams,
            "kind": truth.kind,
            "category": None if truth.category is None else truth.category.value,
            "certainty": None if truth.certainty is None else truth.certainty.value,
            "retryable": truth.retryable,
            "wait": truth.wait,
        }


def cells(names: Iterable[str] | None = None) -> Iterator[Cell]:
    """The cells of these dialects, or of all of them."""
    for name in dialect_names() if names is None else names:
        vendor = dialect(name)
        assert vendor is not None, f"no dialect `{name}`"
        for scenario in SCENARIOS.values():
            call = LabCall(
                stream=scenario.streams, path="/v1/streams/lab/stream" if scenario.streams else "/"
            )
            reply = vendor.reply(scenario.name, call)
            if reply is not None:
                yield Cell(name, scenario, reply, vendor.truth(scenario.name))
