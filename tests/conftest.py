# pyright: reportPrivateUsage=false
"""What every test is given back: a registry, secrets and observers as they were before it."""

import gc
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from failwell.calls import suppress
from failwell.delivery import paging
from failwell.errors import kind_registry as registry
from failwell.errors import redact

_QUICK = "not slow"
"""The marks that `make test` asks for."""
_SIGNALS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
_SLOW_MODULE = re.compile(r"^pytestmark = \[?[^\n]*\bpytest\.mark\.slow\b", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    """Undo what the caller's shell may impose on the tests and their children: ignored signals, no bytecode."""
    # A shell starts background jobs with SIGINT ignored, nohup ignores SIGHUP, and children inherit that.
    if threading.current_thread() is threading.main_thread():
        for number, default in _SIGNALS.items():
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, default)
    # Collecting makes many objects and no garbage.
    gc.disable()
    # Without bytecode every worker and every process that a test starts compiles hundreds of modules again.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # No test calls a server whose certificate a public authority has signed. Each client that a test makes would read
    # the certificates of all of them, which takes longer than most tests; a folder without certificates takes nothing.
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)
    if find_spec("hypothesis") is not None:
        from hypothesis import HealthCheck, settings

        # A machine with other work draws inputs slowly; that says nothing about the code.
        settings.register_profile(
            "project",
            deadline=None,
            max_examples=25 if config.option.markexpr == _QUICK else 100,
            suppress_health_check=[HealthCheck.too_slow],
        )
        settings.load_profile("project")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules of slow tests alone where those are not asked for: each process would load them to run nothing."""
    if config.option.markexpr != _QUICK or not collection_path.match("test_*.py"):
        return None
    return True if _SLOW_MODULE.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the report of a test name the acceptance items that it shows."""
    for item in items:
        named = [name for mark in item.iter_markers("acceptance") for name in mark.args]
        if named:
            item.user_properties.append(("acceptance", named))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append how a test of an acceptance item ended to the file that `FAILWELL_ACCEPTANCE` names."""
    file = os.environ.get("FAILWELL_ACCEPTANCE")
    # With xdist the reports of all workers pass through the process that started them.
    if not file or "PYTEST_XDIST_WORKER" in os.environ or "acceptance" not in dict(report.user_properties):
        return
    if report.when == "call" or report.outcome != "passed":
        with Path(file).open("a", encoding="utf-8") as outcomes:
            outcomes.write(json.dumps({"test": report.nodeid, "outcome": report.outcome}) + "\n")


def pytest_collection_finish() -> None:
    """Keep the collector from visiting all modules and tests again and again."""
    gc.freeze()
    # SDKs that tests load later are visited too, so that happens less often.
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def _a_clean_process() -> Iterator[None]:
    kinds = dict(registry.KINDS)
    secrets = dict(redact._registered)
    observers = list(suppress._observers)
    window = paging.set_page_window(paging.PageWindow())
    yield
    paging.set_page_window(window)
    registry.KINDS.clear()
    registry.KINDS.update(kinds)
    suppress._observers[:] = observers
    if redact._registered != secrets:
        redact._registered.clear()
        redact._registered.update(secrets)
    # Tests that set variables one after the other are faster than the environment is compared.
    redact._checked_at = float("-inf")
