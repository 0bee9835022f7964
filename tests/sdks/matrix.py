"""SDK × scenario: which calls can be made here, how one is made, and what came of it.

A caller is a file in `callers/`: one vendor's client, pointed at the laboratory. It knows nothing of
scenarios; this module knows nothing of vendors.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import failwell
from failwell import adapters
from failwell.errors.report import ErrorReport
from failwell.testing.laboratory.dialects.table import dialect
from failwell.testing.laboratory.scenario import SCENARIOS

PATIENCE = 0.4
"""Seconds that a client waits for a reply which the laboratory holds back."""
ENOUGH = 20.0
"""Seconds for every other call, so that a busy machine fails no test."""
_SLOW = ("slow_headers", "slow_body")


class Caller(Protocol):
    """What a file in `callers/` offers, with a `call`, an `acall` or both, as its SDK has clients."""

    SDK: str
    DISTRIBUTION: str
    DIALECT: str
    PROVIDER: str
    NOT_HERE: dict[str, str]


class Case(NamedTuple):
    """One call that is going to fail."""

    caller: str
    scenario: str
    mode: str

    @property
    def streams(self) -> bool:
        return "stream" in self.mode

    def __str__(self) -> str:
        return f"{self.caller}-{self.scenario}-{self.mode.replace(' ', '_')}"


def caller_names() -> list[str]:
    """Every file in `callers/`."""
    folder = Path(__file__).with_name("callers")
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))


def caller(name: str) -> Caller:
    """The caller called `name`."""
    return cast("Caller", import_module(f"tests.sdks.callers.{name}"))


def has_module(name: str) -> bool:
    """Whether a module can be imported; the namespace above it may belong to another package."""
    try:
        # A module that replaces itself while it is loaded, as kombu does, has no spec any more.
        return name in sys.modules or find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def is_installed(one: Caller) -> bool:
    """Whether its SDK can be imported, and what it `NEEDS` beside it, found without importing them."""
    more: tuple[str, ...] = getattr(one, "NEEDS", ())
    return all(map(has_module, (one.SDK, *more)))


def modes(one: Caller) -> list[str]:
    """The ways in which its SDK can be called; `STREAMS = False` says that it has no streams."""
    streams = ["", " stream"] if getattr(one, "STREAMS", True) else [""]
    found = [name for name, function in (("sync", "call"), ("async", "acall")) if hasattr(one, function)]
    return [f"{name}{how}" for name in found for how in streams]


def cases(name: str) -> Iterator[Case]:
    """Every call that this caller can make."""
    one = caller(name)
    spoken = dialect(one.DIALECT)
    if spoken is None:
        return
    for scenario, known in SCENARIOS.items():
        if spoken.answer(scenario) is None or scenario in one.NOT_HERE:
            continue
        for mode in modes(one):
            if "stream" in mode and f"{scenario} stream" in one.NOT_HERE:
                continue
            if "stream" in mode or not known.streams:
                yield Case(name, scenario, mode)


def forms(name: str) -> Iterator[Case]:
    """One call for each form in which this caller's provider can be made to tell a wait."""
    one = caller(name)
    spoken = dialect(one.DIALECT)
    if (
        spoken is not None
        and spoken.answer("rate_limited") is not None
        and "rate_limited" not in one.NOT_HERE
    ):
        for form in sorted(spoken.forms):
            if f"rate_limited@{form}" in one.NOT_HERE:
                continue
            yield Case(name, f"rate_limited@{form}", modes(one)[0])


def make(case: Case, url: str) -> tuple[object, BaseException | None]:
    """Make the call: what it returned, or what it raised."""
    one: Any = caller(case.caller)
    timeout = PATIENCE if case.scenario in _SLOW else ENOUGH
    try:
        if case.mode.startswith("sync"):
            return one.call(url, stream=case.streams, timeout=timeout), None
        started: Awaitable[object] = one.acall(url, stream=case.streams, timeout=timeout)
        return asyncio.run(_awaited(started)), None
    except Exception as error:
        return None, error


def judge(case: Case, reply: object, error: BaseException | None) -> ErrorReport | None:
    """What failwell makes of it; none where nothing failed."""
    provider = caller(case.caller).PROVIDER
    if error is None:
        try:
            if case.streams:
                list(failwell.checked(provider, reply))
            else:
                adapters.check_reply(provider, reply)
        except Exception as found:
            error = found
    return None if error is None else failwell.describe(error, provider=provider)


def note(file: str, case: Case, expected: str | None, got: str | None) -> None:
    """Append one result to `file`, a line of JSON each, for the page of providers."""
    one = caller(case.caller)
    row = {
        "caller": case.caller,
        "sdk": one.DISTRIBUTION,
        "version": version(one.DISTRIBUTION),
        "scenario": case.scenario,
        "mode": case.mode,
        "expected": expected,
        "got": got,
    }
    with Path(file).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")


async def _awaited(started: Awaitable[object]) -> object:
    return await started
