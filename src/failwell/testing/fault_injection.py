"""Decides, call by call, whether the call to a provider fails and how, and where its answer comes from.

The HTTP libraries are connected in `http_layers`. Here nothing is sent: a request comes in as its host, path and body,
and the address of the lab that answers it goes out.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from failwell.testing.faults_spec import FaultSpec, parse_fault
from failwell.testing.laboratory.lab_routes import (
    NoSuchFailure,
    check,
    dialect_of_call,
    dialect_of_host,
    parse,
    wants_stream,
)
from failwell.testing.laboratory.server import Lab


@dataclass
class FaultInjection:
    """One fault while a test runs: which calls it met, and how many."""

    fault: FaultSpec
    lab: Lab
    calls: int = 0
    """Calls to providers since it began."""
    injected: int = 0
    """Calls that failed as it says."""
    host: str | None = None
    """The provider that fails: the first one that is called. Others answer, so that a fallback has a way out."""
    _smallest: int | None = None
    _lock: Lock = field(default_factory=Lock)

    def address(self, host: str, dialect: str, path: str, body: bytes) -> str | None:
        """The lab's address of the failure for this call; `None` if the call succeeds."""
        with self._lock:
            self.calls += 1
            if self.host is None:
                self.host = host
            if host != self.host or not self._is_due(len(body)):
                return None
            address = self._failure(dialect, path, body)
            if address is not None:
                self.injected += 1
                if self._smallest is None or len(body) < self._smallest:
                    self._smallest = len(body)
            return address

    def _is_due(self, size: int) -> bool:
        if self.fault.times is not None:
            return self.injected < self.fault.times
        # A request that became smaller fits into the model's context.
        return self.fault.scenario != "context_too_long" or self._smallest is None or size >= self._smallest

    def _failure(self, dialect: str, path: str, body: bytes) -> str | None:
        try:
            route = check(dialect, self.fault.scenario, self.fault.form)._replace(rest=path.partition("?")[0])
            scenario = self.fault.scenario_of(stream=wants_stream(route, parse(body)))
            return self.lab.url(dialect, scenario, self.fault.form)
        except NoSuchFailure:
            # This provider does not fail in this way, or not outside of a stream.
            return None


@dataclass
class _State:
    lab: Lab | None = None
    injections: list[FaultInjection] = field(default_factory=list[FaultInjection])


_state = _State()


def is_provider(host: str) -> bool:
    """Whether `host` is a provider's, while calls to providers are kept on this machine."""
    return _state.lab is not None and dialect_of_host(host) is not None


def failure_address(host: str, path: str, body: bytes, method: str) -> str | None:
    """The lab's address if this call fails; `None` if it succeeds."""
    dialect = dialect_of_call(host, path)
    if dialect is None or not _state.injections or method.upper() in ("GET", "HEAD", "OPTIONS"):
        return None
    return _state.injections[-1].address(host, dialect, path, body)


def success_address(host: str, path: str) -> str:
    """The lab's address of a successful answer."""
    dialect = dialect_of_call(host, path)
    assert _state.lab is not None, "called for providers, while a lab runs"
    assert dialect is not None, "called for providers, while a lab runs"
    return _state.lab.url(dialect, "ok")


@contextmanager
def isolated_providers(*, stall: float = 10.0, delay: float = 1.0) -> Generator[Lab]:
    """Keep all calls to providers on this machine: what your own transports do not answer, the lab answers with `ok`.

    Inside of another such block it changes nothing.

    Args:
        stall: Seconds after which a stalled reply is reset.
        delay: Seconds that a rate limit asks for.
    """
    if _state.lab is not None:
        yield _state.lab
        return
    from failwell.testing.http_layers import connect

    with Lab(stall=stall, delay=delay, drop_stalled=True) as lab:
        _state.lab = lab
        disconnect = connect()
        try:
            yield lab
        finally:
            disconnect()
            _state.lab = None


@contextmanager
def inject_fault(
    fault: str | FaultSpec, *, stall: float | None = None, delay: float | None = None
) -> Generator[FaultInjection]:
    """Let calls to providers fail while the block runs, under any code that uses httpx, requests, urllib3 or aiohttp.

    The first provider that is called fails; after the number of calls that the fault names, its calls succeed: by your own
    mocked transport if there is one, else with the lab's `ok` reply. No call leaves this machine.

    Args:
        fault: Such as `rate_limit`, `rate_limit:2`, `overflow`, `stall` or a scenario of the lab.
        stall: Seconds after which a stalled reply is reset. Ten if it is not given, or what pytest's option says.
        delay: Seconds that a rate limit asks for. One if it is not given, or what pytest's option says.

    Raises:
        ValueError: there is no such fault.
    """
    wanted = parse_fault(fault) if isinstance(fault, str) else fault
    with isolated_providers() as lab:
        before = (lab.stall, lab.delay)
        lab.stall = lab.stall if stall is None else stall
        lab.delay = lab.delay if delay is None else delay
        injection = FaultInjection(wanted, lab)
        _state.injections.append(injection)
        try:
            yield injection
        finally:
            _state.injections.remove(injection)
            lab.stall, lab.delay = before


def lab_url(address: str, path: str) -> str:
    """The address of a call in the lab: its scenario, and what the SDK appended to the provider's own address."""
    return address + (path if path.startswith("/") else f"/{path}")


class VendorCall(OSError):
    """Stands for the network: a call to a provider would have left this machine."""


def is_vendor_call(error: BaseException | None) -> bool:
    """Whether this failure is our own refusal to let a call leave."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, VendorCall):
            return True
        seen.add(id(error))
        if any(isinstance(argument, VendorCall) for argument in _arguments(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _arguments(error: BaseException) -> tuple[Any, ...]:
    reason = getattr(error, "reason", None)
    return (*error.args, reason, getattr(error, "os_error", None))
