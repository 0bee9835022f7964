"""The acceptance table: which test shows which item, read from the marks on the tests.

Items are listed in `docs/acceptance-items.toml`; one that must wait for a part of the project that is
not there yet is listed under `[waiting]` with what it waits for. A test claims items with
`@pytest.mark.acceptance("pipelex 7", ...)`. The marks are read from the syntax tree, so
nothing is imported and a broken test module still counts as what it claims.
"""

import argparse
import ast
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Items = Mapping[str, str]
"""Item, such as `pipelex 7`, to what it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One claim of one test: this is where that item is shown."""

    item: str
    test: str
    """As pytest names it: `tests/report/test_wire.py::test_…`."""
    collected: bool
    """Whether pytest would run it; a mark on anything else shows nothing."""


class BadMark(Exception):
    """A mark cannot be read without running the code around it."""


def read_items(root: Path) -> Items:
    """Every listed item, in the order of the file."""
    listed = tomllib.loads((root / "docs/acceptance-items.toml").read_text(encoding="utf-8"))
    return {
        f"{system} {number}": words
        for system, items in listed.items()
        if system != "waiting"
        for number, words in items.items()
    }


def read_waiting(root: Path) -> Items:
    """The items that cannot be shown yet, each with what it waits for."""
    return tomllib.loads((root / "docs/acceptance-items.toml").read_text(encoding="utf-8")).get("waiting", {})


def read_marks(root: Path) -> list[Mark]:
    """Every mark in the tests below `root`, ordered by file and line."""
    return [
        mark
        for path in sorted((root / "tests").rglob("*.py"))
        for mark in _marks_in(path, path.relative_to(root).as_posix())
    ]


def problems(items: Items, marks: Sequence[Mark], waiting: Collection[str] = ()) -> list[str]:
    """What is wrong with the table: one line each, empty if nothing is."""
    shown = {mark.item for mark in marks if mark.collected}
    missing = [item for item in items if item not in shown and item not in waiting]
    return [
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
    items, marks, waiting = read_items(root), read_marks(root), read_waiting(root)
    lines = [
        "# Acceptance",
        "",
        "What the systems failwell learns from expect of an error model, and the tests that show it.",
        "The items are listed in `docs/acceptance-items.toml`; a test claims one with",
        '`@pytest.mark.acceptance("pipelex 7")`.',
    ]
    for system in dict.fromkeys(item.split()[0] for item in items):
        lines += ["", f"## {system}", "", "| item | what is expected | shown by |", "| --: | --- | --- |"]
        for item, words in items.items():
            name, number = item.split()
            if name == system:
                tests = [f"`{mark.test}`" for mark in marks if mark.item == item]
                unshown = f"waits for {waiting[item]}" if item in waiting else "no test"
                lines.append(f"| {number} | {words} | {'<br>'.join(tests) or unshown} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Say how complete the table is; with `--check`, fail unless it is."""
    parser = argparse.ArgumentParser(prog="python -m tools.acceptance", description=main.__doc__)
    parser.add_argument(
        "--check", action="store_true", help="exit 1 if an item has no test, or a mark no item"
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="where docs/ and tests/ are (default: this project)"
    )
    args = parser.parse_args(arguments)

    try:
        items, marks, waiting = read_items(args.root), read_marks(args.root), read_waiting(args.root)
    except BadMark as bad:
        print(f"error: {bad}", file=sys.stderr)
        return 1
    wrong = problems(items, marks, waiting)
    for line in wrong:
        print(line, file=sys.stderr if args.check else sys.stdout)
    shown = {mark.item for mark in marks if mark.collected} & items.keys()
    later = f", {len(waiting)} wait" if waiting else ""
    print(
        f"acceptance: {len(shown)} of {len(items)} items are shown by {len({m.test for m in marks})} tests{later}"
    )
    return 1 if wrong and args.check else 0


def _marks_in(path: Path, name: str) -> Iterator[Mark]:
    text = path.read_text(encoding="utf-8")
    if "acceptance" not in text:
        return
    tree = ast.parse(text, filename=str(path))
    is_test_file = path.name.startswith("test_") or path.name.endswith("_test.py")
    yield from _walk(tree.body, name, collected=is_test_file)


def _walk(body: Sequence[ast.stmt], owner: str, *, collected: bool) -> Iterator[Mark]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        prefix = "Test" if isinstance(node, ast.ClassDef) else "test_"
        runs = collected and node.name.startswith(prefix)
        test = f"{owner}::{node.name}"
        for decorator in node.decorator_list:
            for item in _claimed(decorator, test):
                yield Mark(item=item, test=test, collected=runs)
        if isinstance(node, ast.ClassDef):
            yield from _walk(node.body, test, collected=runs)


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
