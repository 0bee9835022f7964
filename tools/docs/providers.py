"""The page of providers: which SDK, in which version, was understood in which scenario.

Results come from `make providers`, which calls every installed SDK against the laboratory. They are kept
in docs/reference/providers.json, so that the page can be written again without the SDKs.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tools.docs.kinds import kind_link

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/reference/providers.json"

Row = Mapping[str, Any]


def fold(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One entry for each caller and version: in how many ways it was called, and what that was taken for."""
    made: dict[tuple[str, str], dict[str, Any]] = {}
    once = {(row["caller"], row["version"], row["scenario"], row["mode"], row["got"]): row for row in rows}
    for row in sorted(
        once.values(), key=lambda row: (row["caller"], _numbers(row["version"]), row["scenario"])
    ):
        names: dict[str, Any] = {"caller": row["caller"], "sdk": row["sdk"], "version": row["version"]}
        entry = made.setdefault((row["caller"], row["version"]), {**names, "scenarios": dict[str, Any]()})
        found = entry["scenarios"].setdefault(
            row["scenario"], {"calls": 0, "wrong": 0, "expected": [], "got": []}
        )
        found["calls"] += 1
        found["wrong"] += row["expected"] != row["got"]
        for field in ("expected", "got"):
            name = row[field] or "fine"
            found[field] = sorted({*found[field], name})
    return list(made.values())


def providers_page() -> str:
    """The table, and beneath it the calls behind it."""
    entries = cast("list[dict[str, Any]]", json.loads(RESULTS.read_text(encoding="utf-8")))
    scenarios = sorted({name for entry in entries for name in entry["scenarios"]})
    calls = sum(found["calls"] for entry in entries for found in entry["scenarios"].values())
    wrong = list(_wrong(entries))
    missed = sum(found["wrong"] for entry in entries for found in entry["scenarios"].values())
    lines = [
        "# Providers",
        "",
        "Every row is a real client of that version, called against the laboratory (`failwell lab`), which",
        "fails as the provider does. A number says in how many ways of calling (sync, async, each with and",
        "without a stream) failwell named the failure as what it is; a blank, that the provider or its client",
        "cannot show it. `make providers` runs all of it again.",
        "",
        f"{len(entries)} clients, {calls} calls, {missed or 'none'} of them misunderstood.",
        "",
        f"| client | version | {' | '.join(f'`{name}`' for name in scenarios)} |",
        f"| --- | --- |{' --: |' * len(scenarios)}",
    ]
    for entry in entries:
        cells = (_cell(entry["scenarios"].get(name)) for name in scenarios)
        lines.append(f"| {_title(entry)} | {entry['version']} | {' | '.join(cells)} |")
    if wrong:
        lines += ["", "## Misunderstood", "", *wrong]
    lines += ["", "## What each scenario is", "", "| scenario | named |", "| --- | --- |"]
    for name in scenarios:
        named = dict.fromkeys(
            kind for entry in entries for kind in entry["scenarios"].get(name, {}).get("expected", ())
        )
        lines.append(f"| `{name}` | {', '.join(map(_link, named))} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fold the results of test runs into docs/reference/providers.json."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs.providers", description=main.__doc__)
    parser.add_argument("results", nargs="+", type=Path, help="files that FAILWELL_MATRIX wrote")
    args = parser.parse_args(arguments)

    rows = [
        json.loads(line) for path in args.results for line in path.read_text(encoding="utf-8").splitlines()
    ]
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in fold(rows))
    RESULTS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"wrote {RESULTS.relative_to(ROOT)} from {len(rows)} calls")
    return 0


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    return "✗" if found["wrong"] else str(found["calls"])


def _wrong(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for name, found in entry["scenarios"].items():
            if found["wrong"]:
                told, expected = ", ".join(found["got"]), ", ".join(found["expected"])
                yield f"- {_title(entry)} {entry['version']}, `{name}`: {told} instead of {expected}"


def _title(entry: Mapping[str, Any]) -> str:
    caller, sdk = str(entry["caller"]), str(entry["sdk"])
    same = caller.replace("_", "-") == sdk.replace("_", "-")
    return f"`{sdk}`" if same else f"`{sdk}` ({caller.replace('_', ' ')})"


def _link(name: str) -> str:
    return name if name == "fine" else kind_link(name)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


if __name__ == "__main__":
    sys.exit(main())
