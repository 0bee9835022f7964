"""The pages of the kinds: what each one means, and what other systems call it."""

from collections.abc import Iterator
from itertools import groupby

from failwell.errors.explanations import explanation, rosetta
from failwell.errors.kinds_table import CATALOGUE, Kind


def kinds_page() -> str:
    """The index of the kinds: their namespaces, then all of them in one table."""
    lines = [
        "# Kinds",
        "",
        "A kind is the stable name of one way to fail. Category, certainty, blame, HTTP status and retry",
        "policy follow from it. `failwell explain KIND` prints the same text in the terminal. The prefixes",
        "below belong to the runtime; choose one of your own for your kinds, such as `external.`.",
        "",
        "| namespace | kinds |",
        "| --- | --- |",
        *(f"| [{name}](kinds/{name}.md) | {_links(members)} |" for name, members in _namespaces()),
        "",
        "## All kinds",
        "",
        "| kind | category | HTTP | policy | what happened |",
        "| --- | --- | --: | --- | --- |",
        *map(_row, CATALOGUE),
    ]
    return "\n".join(lines) + "\n"


def namespaces() -> list[str]:
    """The first parts of the kinds' names, each with a page of its own."""
    return [name for name, _ in _namespaces()]


def namespace_page(namespace: str) -> str:
    """Every kind of one namespace with its explanation and an example."""
    members = dict(_namespaces())[namespace]
    lines = [f"# {namespace}", "", "All namespaces: [kinds](../kinds.md)."]
    for kind in members:
        lines += ["", *_entry(kind)]
    return "\n".join(lines) + "\n"


def rosetta_page() -> str:
    """One table: our kinds down the side, five systems across."""
    known = {kind for table in rosetta().values() for kind in table}
    lines = [
        "# Rosetta table",
        "",
        "What five other systems call the same failures. Where a system uses a word in several lists, the",
        "list comes first, as in `sandbox/timeout`. `failwell.errors.explanations.translate_name` looks a name up.",
        "",
        f"| kind | {' | '.join(rosetta())} |",
        f"| --- |{' --- |' * len(rosetta())}",
    ]
    for kind in CATALOGUE:
        if kind.name in known:
            cells = ("<br>".join(f"`{n}`" for n in table.get(kind.name, ())) for table in rosetta().values())
            lines.append(f"| {kind_link(kind.name)} | {' | '.join(cells)} |")
    alone = ", ".join(kind_link(kind.name) for kind in CATALOGUE if kind.name not in known)
    return "\n".join([*lines, "", f"None of the five has a name for: {alone}."]) + "\n"


def _namespaces() -> Iterator[tuple[str, list[Kind]]]:
    for name, made in groupby(CATALOGUE, key=lambda kind: kind.name.partition(".")[0]):
        yield name, list(made)


def _entry(kind: Kind) -> Iterator[str]:
    words = explanation(kind.name)
    if words is None:
        raise LookupError(
            f"`{kind.name}` has no explanation; write one in src/failwell/errors/data/explanations"
        )
    yield f"## {kind.name}"
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


def kind_link(name: str) -> str:
    """A kind's name as a link from a page of docs/reference to its entry."""
    return f"[`{name}`]({_target(name)})"


def _row(kind: Kind) -> str:
    return (
        f"| {kind_link(kind.name)} | `{kind.category}` | {kind.status} | `{kind.policy}` | {kind.summary} |"
    )


def _links(members: list[Kind]) -> str:
    return ", ".join(f"[{kind.name.partition('.')[2]}]({_target(kind.name)})" for kind in members)


def _target(name: str) -> str:
    return f"kinds/{name.partition('.')[0]}.md#{_anchor(name)}"


def _anchor(heading: str) -> str:
    """The anchor that GitHub and most renderers give a heading."""
    return heading.lower().replace(".", "").replace(" ", "-")
