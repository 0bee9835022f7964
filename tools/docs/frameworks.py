"""The page of agent frameworks: what happened in each scenario without the plugin and with it.

Results come from `make frameworks`, which runs a real agent of every framework against the lab, in the environment
in which that framework is installed. They are kept in docs/reference/frameworks.json, so that the page can be
written again without the frameworks.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs/reference/frameworks.json"
INTEGRATIONS = ROOT / "src/failwell/integrations"
TEMPORAL = ROOT / "src/failwell/temporal/plugin/__init__.py"

Row = Mapping[str, Any]


def fold(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One entry for each framework in its newest version, with all scenarios."""
    newest: dict[str, str] = {}
    for row in rows:
        module, version = row["module"], row["version"]
        newest[module] = max(newest.get(module, version), version, key=_numbers)
    entries: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["place"]):
        if row["version"] != newest[row["module"]]:
            continue
        names = {name: row[name] for name in ("module", "framework", "package", "version", "line")}
        entry = entries.setdefault(row["module"], {**names, "scenarios": dict[str, Any]()})
        shown = ("title", "absent", "before", "after")
        entry["scenarios"][row["scenario"]] = {name: row[name] for name in shown if name in row}
    return sorted(entries.values(), key=lambda entry: entry["framework"].lower())


def frameworks_page() -> str:
    """One table for each framework."""
    entries = results()
    lines = [
        "# Frameworks",
        "",
        "Every table is a real agent of that release, run against the lab (`failwell lab`), which fails as the",
        "provider does: first as the framework's documentation writes it, then with one line more. `make frameworks`",
        "runs all of it again. How to use the plugins is in [the guide](../guides/frameworks.md).",
        "",
        "Calls are requests that arrived at the server, seconds the time of the whole run. The outcome is the answer, or",
        "the exception and the kind that failwell gives it. A run that would have taken too long was ended.",
        "",
        "| framework | release | module | the line |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| [{entry['framework']}](#{_anchor(entry['framework'])}) | `{entry['package']}` {entry['version']} "
        f"| `failwell.integrations.{entry['module']}` | {_code(entry['line'])} |"
        for entry in entries
    ]
    for entry in entries:
        lines += ["", f"## {entry['framework']}", "", *_table(entry)]
    return "\n".join(lines) + "\n"


def results() -> list[dict[str, Any]]:
    """The entries of all frameworks."""
    return cast("dict[str, Any]", json.loads(RESULTS.read_text(encoding="utf-8")))["frameworks"]


def plugins() -> set[str]:
    """The frameworks that have a plugin: modules of `failwell.integrations`, and Temporal."""
    modules = {path.stem: path.read_text(encoding="utf-8") for path in INTEGRATIONS.glob("[!_]*.py")}
    modules["temporal"] = TEMPORAL.read_text(encoding="utf-8")
    return {name for name, source in modules.items() if "\ndef reliability(" in source}


def missing() -> list[str]:
    """The plugins that the page does not show."""
    return sorted(plugins() - {entry["module"] for entry in results()})


def main(arguments: Sequence[str] | None = None) -> int:
    """Fold the results of test runs into docs/reference/frameworks.json."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs.frameworks", description=main.__doc__)
    parser.add_argument("results", nargs="*", type=Path, help="files that FAILWELL_FRAMEWORKS wrote")
    parser.add_argument("--check", action="store_true", help="exit 1 if the page does not show every plugin")
    args = parser.parse_args(arguments)
    if args.check:
        unseen = missing()
        if unseen:
            print(
                f"error: docs/reference/frameworks.md does not show {', '.join(unseen)}: run `make frameworks`"
            )
            return 1
        print("docs: the page of frameworks shows every plugin")
        return 0
    if not args.results:
        parser.error("name the files that FAILWELL_FRAMEWORKS wrote; `make frameworks` does")
    rows = [
        json.loads(line) for path in args.results for line in path.read_text(encoding="utf-8").splitlines()
    ]
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in fold(rows))
    RESULTS.write_text(f'{{"frameworks": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"wrote {RESULTS.relative_to(ROOT)} from {len(rows)} runs")
    return 0


def _table(entry: Mapping[str, Any]) -> list[str]:
    lines = [
        "| what goes wrong | | calls | seconds | outcome | the model saw |",
        "| --- | --- | --: | --: | --- | --- |",
    ]
    reasons: list[str] = []
    for scenario in entry["scenarios"].values():
        title = scenario["title"]
        if "absent" in scenario:
            reasons.append(f"- {title}: {scenario['absent']}")
            continue
        lines.append(_line(title, "before", scenario["before"]))
        lines.append(_line("", "after", scenario["after"]))
    return [*lines, "", "Not shown:", "", *reasons] if reasons else lines


def _line(title: str, name: str, result: Mapping[str, Any]) -> str:
    outcome = "an answer" if result["outcome"] == "done" else result["outcome"]
    if result["error_type"]:
        outcome = f"`{result['error_type']}` ({outcome})"
    return f"| {title} | {name} | {result['calls']} | {result['seconds']:.1f} | {outcome} | {_cell(result['seen'])} |"


def _code(lines: str) -> str:
    """Lines of code in one cell of a table."""
    return "<br>".join(f"`{line}`" for line in lines.splitlines())


def _cell(text: str) -> str:
    """Text as one cell of a table."""
    plain = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return f"`{plain}`" if plain else ""


def _anchor(title: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in title.lower())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


if __name__ == "__main__":
    sys.exit(main())
