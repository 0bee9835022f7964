"""What every plugin is shown to do: one list of scenarios, the same for all frameworks.

A framework has a module in `tests/sdks/plugins/frameworks`, named as its module in `failwell.integrations`:

- `PACKAGE`: its distribution, of which the version is noted. `NAME`: its name in the table.
- `LINE`: the line of code that differs; two where models and tools are made in different places.
- `before(url)` and `after(url, **options)`: the same agent without and with the plugin. Each returns a function
  `ask(stream=False)` that runs the agent once and returns its answer. The agent has one tool, `weather(city)`,
  which raises `ToolBroke`. The options are those of `reliability`.
- `DIALECT` (`openai` unless it is set): how it speaks to the lab.
- `ABSENT` (optional): scenario → why the framework cannot have it.
- `EXPECTS` (optional): scenario → the fields of `Scenario` that differ, with a comment that says why.
- `OLDEST` (optional): the first release that the plugin supports. `TYPES` (optional): scenario → the class of the exception,
  where the framework wraps it.
- `WAITS_ITSELF` (optional): whether the framework waits, in real time, and not the clock that is passed. `BACKOFF` (optional): its
  shortest waits where the server names none. `UNWATCHED` (optional): whether its loop runs in another process, so that no watcher sees the waits.
- `NO_SHRINK` (optional): whether the plugin refuses `shrink`, because it does not see the messages of the model.
- `STEPS` (optional): scenario → the steps of the lab, where they differ; `TITLES` (optional): what the page calls them; `seen(requests)`: what the model saw of
  the tool's failure, where it is not in OpenAI's format.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

from failwell.adapters.describe import describe
from tests.sdks.plugins.scripted_lab import (
    STALL,
    Step,
    calls_tool,
    lab_reply,
    rate_limited,
    scripted_lab,
    stalls_in_text,
)

SECRET = "the-text-nobody-may-see"
FRAMEWORKS = sorted(path.stem for path in Path(__file__).parent.joinpath("frameworks").glob("*.py"))


class ToolBroke(Exception):
    """What the tool of every agent raises."""

    def __init__(self) -> None:
        super().__init__(SECRET)


class GaveUp(Exception):
    """The test ended a run without the plugin, which would have taken too long. The text says at what."""


@dataclass(frozen=True)
class Scenario:
    """One thing that goes wrong, and what the plugin makes of it."""

    title: str
    steps: tuple[Step, ...]
    calls: int
    """Requests that arrive with the plugin."""
    outcome: str
    """`done`, or the kind of the failure."""
    waits: tuple[float, ...] | None = None
    """Seconds that are slept between them; `None` where back-off decides."""
    stream: bool = False
    type: str | None = None
    """The class of the exception, where the kind does not tell all."""


OK = lab_reply("ok")
SCENARIOS: dict[str, Scenario] = {
    "bad_key": Scenario("the key is rejected (401)", (lab_reply("bad_key"),), 1, "provider.auth", ()),
    "daily_quota": Scenario(
        "the quota of the day is used up (429)", (lab_reply("daily_quota"),), 1, "provider.quota_exhausted", ()
    ),
    "overloaded": Scenario("overloaded (503), for good", (lab_reply("overloaded"),), 3, "provider.overloaded"),
    "recovers": Scenario("overloaded (503), then an answer", (lab_reply("overloaded"), OK), 2, "done"),
    "delay": Scenario("rate limit (429), wait 1.5 s", (rate_limited(1.5), OK), 2, "done", (1.5,)),
    "long_delay": Scenario(
        "rate limit (429), wait an hour", (rate_limited(3600), OK), 1, "provider.rate_limited", (), type="Parked"
    ),
    "stalled_stream": Scenario(
        f"the stream stalls for {STALL:g} s, `stream=StreamTimeouts(idle=1)`", (stalls_in_text,), 1, "provider.stream_interrupted", (), stream=True
    ),
    "tool_error": Scenario(
        "a tool raises an exception", (calls_tool("weather", {"city": "Oslo"}), OK), 2, "done", ()
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Result:
    """What came of one run."""

    calls: int
    seconds: float
    outcome: str
    """`done`, the kind of the failure, or in words why the test ended the run."""
    error_type: str | None
    seen: str
    """What the model saw of the tool's failure."""
    sent: str = ""
    """All that the server was sent."""
    sat_through_stall: bool = False
    """Whether a stream that stalled was waited for."""
    gaps: tuple[float, ...] = ()
    """Seconds from each request to the next."""

    def row(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "seconds": round(self.seconds, 2),
            "outcome": self.outcome,
            "error_type": self.error_type,
            "seen": self.seen,
        }


def framework(name: str) -> ModuleType:
    """The module of a framework. It imports the framework when an agent is made."""
    return import_module(f"tests.sdks.plugins.frameworks.{name}")


def installed(module: ModuleType) -> str | None:
    """The version of the framework that is installed here, unless it is too old."""
    try:
        release = version(module.PACKAGE)
    except PackageNotFoundError:
        return None
    numbers = tuple(int(part) for part in release.split(".") if part.isdecimal())
    return release if numbers >= getattr(module, "OLDEST", ()) else None


@cache
def warm_up(name: str) -> None:
    """Run the agent once, so that what a framework loads on its first run is not measured."""
    module = framework(name)
    steps = getattr(module, "STEPS", {}).get("ok", (OK,))
    with scripted_lab(getattr(module, "DIALECT", "openai"), *steps) as lab:
        module.before(lab.url)(stream=False)


def title_of(module: ModuleType, name: str) -> str:
    own: Mapping[str, str] = getattr(module, "TITLES", {})
    return own.get(name, SCENARIOS[name].title)


def steps_of(module: ModuleType, name: str) -> tuple[Step, ...]:
    own: Mapping[str, tuple[Step, ...]] = getattr(module, "STEPS", {})
    return own.get(name, SCENARIOS[name].steps)


def expected(module: ModuleType, name: str) -> Scenario:
    """What the plugin of this framework makes of a scenario."""
    scenario = SCENARIOS[name]
    own: Mapping[str, Mapping[str, Any]] = getattr(module, "EXPECTS", {})
    error_type = getattr(module, "TYPES", {}).get(name, scenario.type)
    return replace(scenario, **{"type": error_type, **own.get(name, {})})


def play(module: ModuleType, name: str, make: Callable[[str], Callable[..., object]]) -> Result:
    """Run the agent that `make` returns in one scenario."""
    scenario = SCENARIOS[name]
    with scripted_lab(getattr(module, "DIALECT", "openai"), *steps_of(module, name)) as lab:
        ask = make(lab.url)
        start = monotonic()
        outcome, error_type = "done", None
        try:
            ask(stream=scenario.stream)
        except GaveUp as end:
            outcome = str(end)
        except Exception as error:
            outcome, error_type = describe(error, origin="call").kind, type(error).__name__
        seconds = monotonic() - start
        seen = getattr(module, "seen", seen_in_chat)(lab.requests) if name == "tool_error" else ""
        gaps = tuple(later - earlier for earlier, later in pairwise(lab.times))
        sent = json.dumps(lab.requests)
        return Result(len(lab.requests), seconds, outcome, error_type, seen, sent, lab.stall_is_over, gaps)


def seen_in_chat(requests: list[dict[str, Any]]) -> str:
    """The results of tools in the last request, in the format of OpenAI's chat completions."""
    messages: list[dict[str, Any]] = requests[-1].get("messages", []) if requests else []
    contents = [message.get("content") for message in messages if message.get("role") == "tool"]
    return "\n".join(text if isinstance(text, str) else json.dumps(text) for text in contents)
