"""Names that lead nowhere, found in a file whose shape is broken.

A file that compiles is checked as a whole plan. One that does not has no plan, and still nobody should
have to mend its shape first to hear that a route of it leads to a step that does not exist.
"""

from collections.abc import Iterator
from difflib import get_close_matches

from failwell.files.mistakes import Problems
from failwell.files.tree import Item, Path, is_list, is_map
from failwell.workflow.compile.step_index import SECTIONS
from failwell.workflow.plan import END

_MOST_NAMES = 40
"""Beyond this many, looking for a name that is near takes longer than it helps."""


def loose_ends(root: Item, on: Problems) -> None:
    """Note every target that is no step's name."""
    steps = list(_steps(root))
    names: set[str] = {name for step, _ in steps if (name := _text(step, "name")) is not None}
    for item, at, what in _targets(root, steps):
        if item.value in names or item.value == END or item.veiled:
            continue
        target: str = item.value
        near = get_close_matches(target, names, n=1) if len(names) <= _MOST_NAMES else []
        hint = f"did you mean `{near[0]}`?" if near else "add a step with that name, or write `$end`"
        on.wrong(item, at, f"{what} leads to `{target[:100]}`, and no step has that name", hint=hint)


def _steps(root: Item) -> Iterator[tuple[Item, Path]]:
    for section in SECTIONS:
        listed = root.value.get(section)
        if listed is not None and is_list(listed.value):
            for index, step in enumerate(listed.value):
                if is_map(step.value):
                    yield step, (((), section), index)


def _targets(root: Item, steps: list[tuple[Item, Path]]) -> Iterator[tuple[Item, Path, str]]:
    head = root.value.get("workflow")
    if head is not None and is_map(head.value):
        yield from _named(head, "entry_point", ((), "workflow"), "the entry point")
    for step, at in steps:
        name = _text(step, "name") or "a step"
        yield from _each(step, "routes", "to", at, f"a route of `{name}`")
        yield from _each(step, "options", "route", at, f"an option of `{name}`")
        yield from _named(step, "abort_route", at, f"the abort route of `{name}`")


def _each(step: Item, key: str, inner: str, at: Path, what: str) -> Iterator[tuple[Item, Path, str]]:
    listed = step.value.get(key)
    if listed is not None and is_list(listed.value):
        for index, entry in enumerate(listed.value):
            if is_map(entry.value):
                yield from _named(entry, inner, ((at, key), index), what)


def _named(item: Item, key: str, at: Path, what: str) -> Iterator[tuple[Item, Path, str]]:
    target = item.value.get(key)
    if target is not None and type(target.value) is str:
        yield target, (at, key), what


def _text(item: Item, key: str) -> str | None:
    found = item.value.get(key)
    return found.value if found is not None and type(found.value) is str else None
