"""The pages of the kinds: what each one means, and what other systems call it."""

from collections.abc import Iterator
from itertools import groupby

from failwell.fault.catalogue import CATALOGUE
from failwell.fault.explanations import explanation
from failwell.fault.kind import Kind
from failwell.fault.rosetta import rosetta


def kinds_page() -> str:
    """Every kind of the runtime: a list, a table, then each with its explanation and an example."""
    lines = [
        "# Kinds",
        "",
        "A kind is the stable name of one way to fail. Category, certainty, blame, HTTP status and retry",
        "policy follow from it. `failwell explain KIND` prints the same text in the terminal. The prefixes",
        "below belong to the runtime; choose one of your own for your kinds, such as `external.`.",
        "",
        "## Contents",
        "",
        *(f"- [{name}](#{_anchor(name)}): {_links(made)}" for name, made in _namespaces()),
        "",
        "## Summary",
        "",
        "| kind | category | HTTP | policy | what happened |",
        "| --- | --- | --: | --- | --- |",
        *map(_row, CATALOGUE),
    ]
    for name, made in _namespaces():
        lines += ["", f"## {name}"]
        for kind in made:
            lines += ["", *_entry(kind)]
    return "\n".join(lines) + "\n"


def rosetta_page() -> str:
    """One table: our kinds down the side, five systems across."""
    known = {kind for table in rosetta().values() for kind in table}
    lines = [
        "# Rosetta table",
        "",
        "What five other systems call the same failures. Where a system uses a word in several lists, the",
        "list comes first, as in `sandbox/timeout`. `failwell.fault.rosetta.translate_name` looks a name up.",
        "",
        f"| kind | {' | '.join(rosetta())} |",
        f"| --- |{' --- |' * len(rosetta())}",
    ]
    for kind in CATALOGUE:
        if kind.name in known:
            cells = ("<br>".join(f"`{n}`" for n in table.get(kind.name, ())) for table in rosetta().values())
            lines.append(f"| {_link(kind, page='kinds.md')} | {' | '.join(cells)} |")
    alone = ", ".join(_link(kind, page="kinds.md") for kind in CATALOGUE if kind.name not in known)
    return "\n".join([*lines, "", f"None of the five has a name for: {alone}."]) + "\n"


def _namespaces() -> Iterator[tuple[str, list[Kind]]]:
    for name, made in groupby(CATALOGUE, key=lambda kind: kind.name.partition(".")[0]):
        yield name, list(made)


def _entry(kind: Kind) -> Iterator[str]:
    words = explanation(kind.name)
    if words is None:
        raise LookupError(
            f"`{kind.name}` has no explanation; write one in src/failwell/fault/data/explanations"
        )
    yield f"### {kind.name}"
    yield ""
    yield f"**{kind.title}.** {kind.summary}"
    yield ""
    yield "| category | certainty | blame | HTTP | policy | user action |"
    yield "| --- | --- | --- | --: | --- | --- |"
    yield (
        f"| `{kind.category}` | `{kind.certainty}` | `{kind.blame}` | {kind.status} "
        f"| `{kind.policy}` | `{kind.action}` |"
    )
    yield ""
    yield words.cause
    yield ""
    yield f"What to do: {kind.advice}"
    yield ""
    yield from words.remedy.splitlines()
    yield ""
    yield f"```{words.language}"
    yield from words.example.splitlines()
    yield "```"


def _row(kind: Kind) -> str:
    return f"| {_link(kind)} | `{kind.category}` | {kind.status} | `{kind.policy}` | {kind.summary} |"


def _links(made: list[Kind]) -> str:
    return ", ".join(f"[{kind.name.partition('.')[2]}](#{_anchor(kind.name)})" for kind in made)


def _link(kind: Kind, *, page: str = "") -> str:
    return f"[`{kind.name}`]({page}#{_anchor(kind.name)})"


def _anchor(heading: str) -> str:
    """The anchor that GitHub and most renderers give a heading."""
    return heading.lower().replace(".", "").replace(" ", "-")
