"""What SDKs leave open is collected here, so that no later test is blamed for it."""

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        # Clients that were cut off in the middle of a reply do not always close their sockets.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
