"""The page of frameworks: written from real runs, for the newest release of each, and for every plugin."""

from pathlib import Path
from typing import Any

import pytest

from tools.docs import frameworks

REQUIREMENTS = Path(__file__).parents[2] / "requirements/sdks"
HARNESS = Path(__file__).parents[1] / "sdks/plugins/frameworks"


def a_row(scenario: str, place: int, version: str = "1.9.0", **parts: Any) -> dict[str, Any]:
    names = {
        "module": "acme",
        "framework": "Acme",
        "package": "acme-agents",
        "version": version,
        "line": "plug()",
    }
    return {**names, "scenario": scenario, "place": place, "title": f"{scenario}, told", **parts}


def a_result(calls: int, **parts: Any) -> dict[str, Any]:
    return {"calls": calls, "seconds": 1.25, "outcome": "done", "error_type": None, "seen": "", **parts}


def test_the_newest_release_is_shown_with_its_scenarios_in_order() -> None:
    rows = [
        a_row("second", 1, "1.10.0", before=a_result(3), after=a_result(1)),
        a_row("first", 0, "1.10.0", absent="it has no such thing"),
        a_row("first", 0, "1.9.0", before=a_result(9), after=a_result(9)),
    ]

    (entry,) = frameworks.fold(rows)

    assert entry["version"] == "1.10.0"
    assert list(entry["scenarios"]) == ["first", "second"]


def test_a_table_shows_both_columns_and_why_one_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = a_result(1, outcome="provider.auth", error_type="AuthError")
    rows = [
        a_row("first", 0, before=failed, after=a_result(2, seen='{"kind": "tool.failed"} | `x`\n')),
        a_row("second", 1, absent="it has no tools"),
        a_row("third", 2, before=a_result(6, outcome="still repeating after 20 s"), after=a_result(1)),
    ]
    monkeypatch.setattr(frameworks, "results", lambda: frameworks.fold(rows))

    page = frameworks.frameworks_page()

    assert "| first, told | before | 1 | 1.2 | `AuthError` (provider.auth) |  |" in page
    assert '|  | after | 2 | 1.2 | an answer | `{"kind": "tool.failed"} \\| \'x\'` |' in page
    assert "- second, told: it has no tools" in page
    assert "| third, told | before | 6 | 1.2 | still repeating after 20 s |  |" in page


def test_every_plugin_is_on_the_page_and_has_an_agent_that_runs_before_and_after_it() -> None:
    assert {"openai_agents", "pydantic_ai"} <= frameworks.plugins()
    assert frameworks.plugins() == {path.stem for path in HARNESS.glob("*.py")}
    assert frameworks.missing() == []


def test_the_page_shows_the_releases_that_the_tests_use() -> None:
    pinned = {line for path in REQUIREMENTS.glob("*.txt") for line in path.read_text().splitlines()}

    shown = {f"{entry['package']}=={entry['version']}" for entry in frameworks.results()}

    assert shown - pinned == set()


def test_a_plugin_that_is_not_on_the_page_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(frameworks, "results", list)

    assert frameworks.main(["--check"]) == 1
    assert "does not show celery" in capsys.readouterr().out
