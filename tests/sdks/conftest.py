"""What SDKs leave open is collected here, so that no later test is blamed for it."""

import gc
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        # Clients that were cut off in the middle of a reply do not always close their sockets.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session", autouse=True)
def _no_server_left() -> Iterator[None]:
    yield
    prefect = sys.modules.get("tests.sdks.plugins.frameworks.prefect")
    if prefect is not None:
        prefect.stop_server()


_QUICK = ("openai", "anthropic", "requests")
"""The SDKs that `make test` calls; `make test-all` calls the others too."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
        called = getattr(parameters.get("case"), "caller", None) or parameters.get("name")
        if called not in (*_QUICK, None) and _HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
