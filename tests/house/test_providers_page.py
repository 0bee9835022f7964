"""The page of providers speaks of every caller, of the versions that are pinned, and of no guess."""

import re
from pathlib import Path
from typing import Any

from tests.sdks.matrix import caller, caller_names
from tools.docs import providers

ROOT = Path(__file__).resolve().parents[2]
SOURCE, ENTRIES = providers.results()


def a_row(**more: Any) -> dict[str, Any]:
    row = {"caller": "one", "sdk": "one", "version": "1.0", "scenario": "ok", "mode": "sync"}
    return {**row, "expected": "provider.auth", "got": "provider.auth", **more}


def pinned(name: str) -> dict[str, str]:
    lines = (ROOT / "requirements/sdks" / name).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line)
    return {distribution.replace("-", "_"): version for distribution, version in pairs}


def test_every_caller_has_results() -> None:
    assert {entry["caller"] for entry in ENTRIES} == set(caller_names()), "run `make providers`"


def test_the_results_are_those_of_the_pinned_versions() -> None:
    tested = {(str(entry["sdk"]).replace("-", "_"), entry["version"]) for entry in ENTRIES}
    callers = {caller(name).DISTRIBUTION.replace("-", "_") for name in caller_names()}

    missing = [
        (path.name, distribution, version)
        for path in sorted((ROOT / "requirements/sdks").glob("*.txt"))
        # What has a folder of its own there is not called through the laboratory.
        if not (ROOT / "tests/sdks" / path.stem).is_dir()
        for distribution, version in pinned(path.name).items()
        if distribution in callers and (distribution, version) not in tested
    ]

    assert missing == [], "run `make providers`"


def test_no_result_on_the_page_is_wrong() -> None:
    wrong = [
        (entry["caller"], entry["version"], name)
        for entry in ENTRIES
        for name, found in entry["scenarios"].items()
        if found["wrong"]
    ]

    assert wrong == []


def test_a_call_that_was_made_twice_counts_once_and_a_wrong_one_shows() -> None:
    rows = [a_row(), a_row(), a_row(mode="async", got=None), a_row(version="2.0")]

    first, second = providers.fold(rows)

    assert first["scenarios"]["ok"] == {
        "calls": 2,
        "wrong": 1,
        "expected": ["provider.auth"],
        "got": ["fine", "provider.auth"],
    }
    assert (second["version"], second["scenarios"]["ok"]["calls"]) == ("2.0", 1)


def test_the_page_counts_what_its_table_shows() -> None:
    page = providers.providers_page()

    told = re.search(r"(\d+) clients, (\d+) calls, none", page)

    assert told is not None
    assert int(told.group(1)) == len(ENTRIES)
    assert int(told.group(2)) == sum(int(cell) for cell in re.findall(r"(?<=\| )\d+(?= \|)", page))


def test_the_page_names_the_commit_it_was_made_from() -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", SOURCE["commit"])
    assert f"`{SOURCE['commit'][:12]}`" in providers.providers_page()
