"""The acceptance table: which test shows which item, read from the marks on the tests.

Items are listed in `docs/acceptance-items.toml`, in their own words. One that must wait for a part of the project that is
not there yet is also listed under `[waiting]` with what it waits for; one that does not hold as it is written is
listed under `[decided]` with what holds instead and the decision. A test claims items with
`@pytest.mark.acceptance("pipelex 7", ...)`. The marks are read from the syntax tree, so
nothing is imported and a broken test module still counts as what it claims.

A test that is always skipped shows nothing. Whether one that may be skipped has run, only a run can say: with
`FAILWELL_ACCEPTANCE=FILE` the tests append their outcomes to a file, and `--outcomes FILE` then counts only tests that passed.
"""

import argparse
import ast
import json
import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Items = Mapping[str, str]
"""Item, such as `pipelex 7`, to what it asks for."""
_LISTS = ("waiting", "decided")
"""Sections of the file that are no systems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One claim of one test: this is where that item is shown."""

    item: str
    test: str
    """As pytest names it: `tests/errors/test_wire.py::test_…`."""
    collected: bool
    """Whether pytest would run it; a mark on anything else shows nothing."""
    skipped: bool = False
    """Whether it is never run: `skip` or `xfail` without a condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What holds instead of an item, and the sections that say why."""

    instead: str
    decisions: tuple[str, ...]
    """Pages of `docs/decisions` with a section each: `retries#streams`."""


class BadMark(Exception):
    """A mark cannot be read without running the code around it."""


def read_items(root: Path) -> Items:
    """Every listed item, in the order of the file."""
    listed = tomllib.loads((root / "docs/acceptance-items.toml").read_text(encoding="utf-8"))
    return {
        f"{system} {number}": words
        for system, items in listed.items()
        if system not in _LISTS
        for number, words in items.items()
    }


def read_waiting(root: Path) -> Items:
    """The items that cannot be shown yet, each with what it waits for."""
    return tomllib.loads((root / "docs/acceptance-items.toml").read_text(encoding="utf-8")).get("waiting", {})


def read_decided(root: Path) -> Mapping[str, Decided]:
    """The items that do not hold as they are written."""
    listed = tomllib.loads((root / "docs/acceptance-items.toml").read_text(encoding="utf-8"))
    return {
        item: Decided(instead=entry["instead"], decisions=tuple(entry["decisions"]))
        for item, entry in listed.get("decided", {}).items()
    }


def read_sections(root: Path) -> frozenset[str]:
    """The sections of the decisions, as they are cited: `retries#streams`."""
    return frozenset(
        f"{page.stem}#{_anchor(heading)}"
        for page in (root / "docs/decisions").glob("*.md")
        for heading in re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    )


def read_outcomes(files: Sequence[Path]) -> Mapping[str, frozenset[str]]:
    """How the cases of each test ended, by the test's name without its parameters."""
    ended: dict[str, set[str]] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            ended.setdefault(entry["test"].partition("[")[0], set()).add(entry["outcome"])
    return {test: frozenset(outcomes) for test, outcomes in ended.items()}


def unrun(
    items: Items, marks: Sequence[Mark], waiting: Collection[str], outcomes: Mapping[str, frozenset[str]]
) -> list[str]:
    """One line for each item that no test has shown in a run: skipped, failed and absent tests do not count."""
    lines: list[str] = []
    for item, words in items.items():
        tests = [mark.test for mark in marks if mark.item == item and mark.collected]
        passed = [test for test in tests if outcomes.get(test, frozenset()) & {"passed"}]
        failed = [test for test in tests if "failed" in outcomes.get(test, frozenset())]
        if tests and item not in waiting and (failed or not passed):
            how = "; ".join(
                f"{test}: {', '.join(sorted(outcomes.get(test, ('not run',))))}" for test in tests
            )
            lines.append(f"{item} was not shown ({how}): {words}")
    return lines


def read_marks(root: Path) -> list[Mark]:
    """Every mark in the tests below `root`, ordered by file and line."""
    return [
        mark
        for path in sorted((root / "tests").rglob("*.py"))
        for mark in _marks_in(path, path.relative_to(root).as_posix())
    ]


def read_tests(root: Path, file: str) -> frozenset[str]:
    """The tests that pytest runs in one file, by the names that it gives them; without those that are always skipped.

    Raises:
        OSError: there is no such file.
    """
    path = root / file
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return frozenset(
        test
        for node, test, runs in _definitions(tree.body, file, collected=_is_test_file(path))
        if runs and not any(_is_skip(decorator) for decorator in node.decorator_list)
    )


def problems(
    items: Items,
    marks: Sequence[Mark],
    waiting: Collection[str] = (),
    decided: Mapping[str, Decided] | None = None,
    sections: Collection[str] = (),
) -> list[str]:
    """What is wrong with the table: one line each, empty if nothing is."""
    others = decided or {}
    shown = {mark.item for mark in marks if mark.collected and not mark.skipped}
    missing = [item for item in items if item not in shown and item not in waiting]
    return [
        *(f"{item} is decided otherwise and not listed" for item in others if item not in items),
        *(f"{item} waits and is decided otherwise: it is one of them" for item in others if item in waiting),
        *(
            f"{item} names the decision `{name}`, which is not in docs/decisions"
            for item, entry in others.items()
            for name in entry.decisions or ("",)
            if name not in sections
        ),
        *(
            f"{mark.test} claims `{mark.item}`, but it is always skipped"
            for mark in marks
            if mark.collected and mark.skipped
        ),
        *(f"{item} has no test: {items[item]}" for item in missing),
        *(f"{item} waits for nothing: a test shows it" for item in waiting if item in shown),
        *(f"{item} is waited for and not listed" for item in waiting if item not in items),
        *(
            f"{mark.test} claims `{mark.item}`, which is not listed"
            for mark in marks
            if mark.item not in items
        ),
        *(
            f"{mark.test} claims `{mark.item}`, but pytest would not run it"
            for mark in marks
            if not mark.collected
        ),
    ]


def acceptance_page(root: Path = ROOT) -> str:
    """The table as Markdown: system, item, what it asks for, the tests that show it."""
    items, marks, waiting, decided = (
        read_items(root),
        read_marks(root),
        read_waiting(root),
        read_decided(root),
    )
    lines = [
        "# Acceptance",
        "",
        "What the systems failwell learns from expect of an error model, in their own words, and the tests that show it.",
        "The items are listed in `docs/acceptance-items.toml`; a test claims one with",
        '`@pytest.mark.acceptance("pipelex 7")`. Items that do not hold as they are written are under',
        "[Decided otherwise](#decided-otherwise).",
    ]
    for system in dict.fromkeys(item.split()[0] for item in items):
        lines += ["", f"## {system}", "", "| item | what is expected | shown by |", "| --: | --- | --- |"]
        for item, words in items.items():
            name, number = item.split()
            if name == system and item not in decided:
                tests = _tests(item, marks)
                unshown = f"waits for {waiting[item]}" if item in waiting else "no test"
                lines.append(f"| {number} | {_cell(words)} | {tests or unshown} |")
    if decided:
        lines += [
            "",
            "## Decided otherwise",
            "",
            "The tests show what holds instead.",
            "",
            "| item | what is expected | what holds instead | decision | shown by |",
            "| --- | --- | --- | --- | --- |",
        ]
    for item, entry in decided.items():
        reasons = ", ".join(_section_link(name) for name in entry.decisions)
        lines.append(
            f"| {item} | {_cell(items[item])} | {_cell(entry.instead)} | {reasons} | {_tests(item, marks)} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Say how complete the table is; with `--check`, fail unless it is."""
    parser = argparse.ArgumentParser(prog="python -m tools.acceptance", description=main.__doc__)
    parser.add_argument(
        "--check", action="store_true", help="exit 1 if an item has no test, or a mark no item"
    )
    parser.add_argument(
        "--outcomes",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="files that tests with FAILWELL_ACCEPTANCE wrote; only tests that passed in them count",
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="where docs/ and tests/ are (default: this project)"
    )
    args = parser.parse_args(arguments)

    try:
        items, marks, waiting = read_items(args.root), read_marks(args.root), read_waiting(args.root)
        decided, outcomes = read_decided(args.root), read_outcomes(args.outcomes)
    except (BadMark, OSError) as bad:
        print(f"error: {bad}", file=sys.stderr)
        return 1
    wrong = problems(items, marks, waiting, decided, read_sections(args.root))
    if args.outcomes:
        wrong += unrun(items, marks, waiting, outcomes)
    for line in wrong:
        print(line, file=sys.stderr if args.check else sys.stdout)
    shown = {mark.item for mark in marks if mark.collected and not mark.skipped} & (
        items.keys() - decided.keys()
    )
    later = f", {len(waiting)} wait" if waiting else ""
    otherwise = f", {len(decided)} are decided otherwise" if decided else ""
    tests = len({mark.test for mark in marks})
    print(f"acceptance: {len(shown)} of {len(items)} items are shown by {tests} tests{otherwise}{later}")
    return 1 if wrong and args.check else 0


def _tests(item: str, marks: Sequence[Mark]) -> str:
    return "<br>".join(f"`{mark.test}`" for mark in marks if mark.item == item)


def _anchor(heading: str) -> str:
    """What a heading is called in an address."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def _section_link(name: str) -> str:
    page, _, anchor = name.partition("#")
    return f"[{anchor.replace('-', ' ')}](../decisions/{page}.md#{anchor})"


def _cell(text: str) -> str:
    """`text` in a cell of a Markdown table."""
    return text.replace("|", "\\|")


def _marks_in(path: Path, name: str) -> Iterator[Mark]:
    text = path.read_text(encoding="utf-8")
    if "acceptance" not in text:
        return
    tree = ast.parse(text, filename=str(path))
    yield from _walk(tree.body, name, collected=_is_test_file(path))


def _is_test_file(path: Path) -> bool:
    return path.name.startswith("test_") or path.name.endswith("_test.py")


def _walk(body: Sequence[ast.stmt], owner: str, *, collected: bool) -> Iterator[Mark]:
    for node, test, runs in _definitions(body, owner, collected=collected):
        skipped = any(_is_skip(decorator) for decorator in node.decorator_list)
        for decorator in node.decorator_list:
            for item in _claimed(decorator, test):
                yield Mark(item=item, test=test, collected=runs, skipped=skipped)


def _definitions(
    body: Sequence[ast.stmt], owner: str, *, collected: bool
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, str, bool]]:
    """Functions and classes with their names and whether pytest runs them."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        prefix = "Test" if isinstance(node, ast.ClassDef) else "test_"
        runs = collected and node.name.startswith(prefix)
        test = f"{owner}::{node.name}"
        yield node, test, runs
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node.body, test, collected=runs)


def _is_skip(decorator: ast.expr) -> bool:
    """Whether a decorator keeps a test from ever showing anything."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(target, ast.Attribute) and ast.unparse(target).endswith(("mark.skip", "mark.xfail"))


def _claimed(decorator: ast.expr, test: str) -> list[str]:
    call = decorator if isinstance(decorator, ast.Call) else None
    target = call.func if call else decorator
    if not (isinstance(target, ast.Attribute) and ast.unparse(target).endswith("mark.acceptance")):
        return []
    arguments = call.args if call else []
    texts = [
        node.value for node in arguments if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    if not texts or len(texts) != len(arguments) or (call and call.keywords):
        raise BadMark(f'{test}: write the items as plain strings, such as acceptance("pipelex 7")')
    return texts


if __name__ == "__main__":
    sys.exit(main())
