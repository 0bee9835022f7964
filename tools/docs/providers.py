"""The page of providers: which SDK, in which version, was understood in which scenario.

Results come from `make providers`, which calls every installed SDK against the laboratory. They are kept
in docs/reference/providers.json, so that the page can be written again without the SDKs. The file names the
commit that the results were seen with.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tools.docs.kinds import kind_link

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/reference/providers.json"
ADAPTERS = "src/failwell/adapters"

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


def results() -> tuple[dict[str, str], list[dict[str, Any]]]:
    """What was tested (`commit`), and the entries of each client."""
    document = cast("dict[str, Any]", json.loads(RESULTS.read_text(encoding="utf-8")))
    return document["source"], document["clients"]


def providers_page() -> str:
    """The table, and beneath it the calls behind it."""
    source, entries = results()
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
        f"{len(entries)} clients, {calls} calls, {missed or 'none'} of them misunderstood. Made from commit",
        f"`{source['commit'][:12]}`.",
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
    parser.add_argument("results", nargs="*", type=Path, help="files that FAILWELL_MATRIX wrote")
    args = parser.parse_args(arguments)
    if not args.results:
        parser.error("name the files that FAILWELL_MATRIX wrote; `make providers` does")
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        parser.error("the results name the commit they were made from; run this in a git checkout")
    if _git("status", "--porcelain", "--", ADAPTERS):
        parser.error(f"{ADAPTERS} has changes that are not committed; commit them, then run `make providers`")
    rows = [
        json.loads(line) for path in args.results for line in path.read_text(encoding="utf-8").splitlines()
    ]
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in fold(rows))
    source = json.dumps({"commit": commit})
    RESULTS.write_text(f'{{"source": {source},\n"clients": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"wrote {RESULTS.relative_to(ROOT)} from {len(rows)} calls")
    return 0


def _git(*arguments: str) -> str | None:
    """What git answers in this project; None if it cannot."""
    command = ("git", "-C", str(ROOT), *arguments)
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  (our own argv)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


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
