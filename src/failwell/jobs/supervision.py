"""How closely a worker is watched, and how patiently."""

import os
from collections.abc import Mapping
from dataclasses import field

from failwell.fault.frozen import frozen
from failwell.report.policy import TracebackPolicy


def _host_environment() -> Mapping[str, str]:
    return dict(os.environ)


@frozen
class Supervision:
    """How closely a worker is watched, and how patiently."""

    pulse: float = 0.25
    """Seconds between two signs of life while a call runs."""
    deaths: int = 3
    """Deaths in a row, without one finished call between them, after which nothing is started."""
    cooldown: float = 30.0
    """Seconds of quarantine; then one start is tried."""
    policy: TracebackPolicy = TracebackPolicy.FULL
    """What is recorded of a capability's own words. They are redacted, and no user's view shows them."""
    respawn: bool = True
    """Whether a worker that died is started again before anybody calls it."""
    stopped: float = 20.0
    """Seconds for which a signal (`SIGSTOP`) may keep the process stopped before it is ended."""
    environment: Mapping[str, str] = field(default_factory=_host_environment)
    """The host's variables, of which a worker sees a few."""
