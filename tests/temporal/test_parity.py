"""Workflows give the same outputs, reports and events on Temporal as on one machine.

What may differ is listed in docs/guides/temporal-runs.md, and nowhere else.
"""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from failwell import workflows
from failwell.temporal.runs.remote_driver import TemporalEngine
from tests.conductor.suite import Case, cases_of, run_case, topics
from tests.temporal.engines import sequences, temporal_engine

pytestmark = pytest.mark.slow


async def _observe(
    case: Case, folder: Path, store: Path, engine: TemporalEngine | None
) -> tuple[list[str], list[Any]]:
    """What is not as expected of a case, and the events of its runs."""
    shutil.rmtree(folder, ignore_errors=True)
    problems = await run_case(case, folder, store, engine)
    runs = sorted(workflows.list_runs(store=store), key=lambda run: run.started)
    return problems, [sequences(workflows.read_events(run.id, store=store)) for run in runs]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("topic", topics())
def test_a_workflow_of_the_suite_does_the_same_on_both_engines(
    topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    different: dict[str, Any] = {}

    async def compare() -> int:
        cases = cases_of(topic)
        async with temporal_engine(tmp_path / "worker") as engine:
            for number, case in enumerate(cases):
                with monkeypatch.context() as patch:
                    for name, value in case.env.items():
                        patch.setenv(name, value)
                    folder = tmp_path / f"case-{number}"
                    local = await _observe(case, folder, tmp_path / f"local-{number}", None)
                    remote = await _observe(case, folder, tmp_path / f"remote-{number}", engine)
                if local != remote:
                    different[case.title] = [local, remote]
        return len(cases)

    assert asyncio.run(compare()) > 0
    assert different == {}
