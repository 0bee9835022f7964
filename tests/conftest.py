# pyright: reportPrivateUsage=false
"""What every test is given back: a registry, secrets and observers as they were before it."""

import gc
import signal
import threading
from collections.abc import Iterator

import pytest

from failwell.fault import registry
from failwell.report import redact
from failwell.runtime import suppress


def pytest_configure() -> None:
    """Let children react to Ctrl-C: a shell starts background jobs with SIGINT ignored, and children inherit that."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Keep the collector from visiting all modules and tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _a_clean_process() -> Iterator[None]:
    kinds = dict(registry.KINDS)
    secrets = dict(redact._registered)
    observers = list(suppress._observers)
    yield
    registry.KINDS.clear()
    registry.KINDS.update(kinds)
    suppress._observers[:] = observers
    if redact._registered != secrets:
        redact._registered.clear()
        redact._registered.update(secrets)
    # Tests that set variables one after the other are faster than the environment is compared.
    redact._checked_at = float("-inf")
