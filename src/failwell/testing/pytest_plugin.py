"""The pytest plugin: `pytest --failwell-faults=rate_limit,overflow,stall` runs every test once per fault.

Loaded by pytest in every project that has failwell installed, so it imports nothing until the option or the fixture is used.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from failwell.testing.fault_injection import FaultInjection


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("failwell", "failures of model providers")
    group.addoption(
        "--failwell-faults",
        metavar="FAULTS",
        help="run every test once per fault, such as rate_limit,overflow:2,stall: calls to providers fail over HTTP",
    )
    group.addoption(
        "--failwell-faults-report", metavar="FILE", help="write the results of --failwell-faults as JSON"
    )
    group.addoption(
        "--failwell-faults-stall",
        metavar="SECONDS",
        type=float,
        default=10.0,
        help="when a stalled reply is reset (default: 10)",
    )
    group.addoption(
        "--failwell-faults-delay",
        metavar="SECONDS",
        type=float,
        default=1.0,
        help="how long a rate limit asks to wait (default: 1)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the rest of the plugin if faults are asked for."""
    config.addinivalue_line(
        "markers",
        "failwell_faults(*faults): the faults that this test runs under with --failwell-faults, instead of all; none "
        "to run it without",
    )
    faults = config.getoption("--failwell-faults")
    if faults is None:
        return
    from failwell.testing.pytest_faults import FaultRuns

    config.pluginmanager.register(FaultRuns(config, faults), "failwell-fault-runs")


@pytest.fixture
def failwell_faults() -> "Callable[..., AbstractContextManager[FaultInjection]]":
    """Let calls to providers fail in a block of a test.

    Such as `with failwell_faults("rate_limit:2") as injection: ...`.
    """
    from failwell.testing.fault_injection import inject_fault

    return inject_fault
