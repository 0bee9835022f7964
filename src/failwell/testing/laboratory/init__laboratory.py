"""The fault laboratory for tests: a local server that fails the way each provider fails.

Such as `with lab() as fake: client = OpenAI(base_url=fake.url("openai", "rate_limited"))`. It runs in
threads of its own, so it serves asynchronous code from a plain `with` block as well.
"""

from failwell.testing.laboratory.lab_reply__turn import LabTurn
from failwell.testing.laboratory.lab_routes import NoSuchFailure
from failwell.testing.laboratory.scenario import Truth
from failwell.testing.laboratory.server import LONG, Lab, LabRequest

__all__ = ["Lab", "LabRequest", "LabTurn", "NoSuchFailure", "Truth", "lab"]


def lab(*, stall: float = LONG, strict: bool = False, delay: float | None = None) -> Lab:
    """A laboratory on a free port of this machine, open while its `with` block runs.

    `stall` is how many seconds the slow scenarios take before they answer; the default is longer
    than any client waits. With `strict` it refuses conversations that the provider would refuse, such as
    a tool call without its result. `delay` is how many seconds a rate limit asks for; without it each form has its own.
    """
    return Lab(stall=stall, strict=strict, delay=delay)
