"""`failwell explain`: what a kind means and what to do about it, or why a saved failure was classified so."""

from argparse import Namespace
from typing import Any

from failwell.cli.output import bold, print_data, wrapped
from failwell.cli.parser import Parser, usage_error
from failwell.errors.axes import Category, Repeat
from failwell.errors.kinds_table import Kind

_RETRY = {
    Repeat.AFTER_WAITING: "yes, after a wait",
    Repeat.AFTER_FREEING: "yes, once something was freed",
    Repeat.AFTER_CHECKING: "only if the work is known to be safe to repeat",
    Repeat.NEVER: "no",
}
_WHO_ACTS = {
    Category.TRANSIENT: "the runtime: it waits and repeats",
    Category.RESOURCE: "the runtime: it frees what is in the way",
    Category.AMBIGUOUS: "a reconcile hook, or a person who checks what happened",
    Category.CAPACITY: "the owner of the account",
    Category.CONFIGURATION: "the operator",
    Category.CONTENT: "the caller, with other content",
    Category.USER_INPUT: "the caller, with other input",
    Category.DENIED: "the owner of the policy",
    Category.LIMIT: "a person, who raises the limit and resumes",
    Category.CANCELLED: "nobody: it was stopped on purpose",
    Category.FATAL: "a developer",
    Category.UNKNOWN: "a developer",
}


def add_options(parser: Parser) -> None:
    """Declare what is explained, and by which policy a saved failure is judged."""
    parser.add_argument(
        "kind",
        metavar="KIND",
        help="a kind, another system's name for one, or the file of a saved failure (`-`: stdin)",
    )
    parser.add_argument(
        "--policy", metavar="FILE", help="a policy in TOML, to show what it would make of the failure"
    )
    parser.add_argument(
        "--idempotent",
        action="store_const",
        const=True,
        help="judge the failure as that of a call that may be repeated",
    )


def run(args: Namespace) -> int:
    """Print the explanation of one kind, of each that a foreign name corresponds to, or of a failure."""
    from failwell.errors.kind_registry import find_kind

    known = find_kind(args.kind)
    if known is None and _is_file(args.kind):
        # A kind is explained without loading what judges a failure.
        from failwell.cli.errors.explain_report import explain_report

        return explain_report(args)
    for option in ("policy", "idempotent"):
        if getattr(args, option) is not None:
            raise usage_error(
                f"`--{option}` is about a saved failure, not a kind", see="failwell explain --help"
            )
    meanings = {known.name: ()} if known is not None else _foreign(args.kind)
    matches = [(find_kind(name), systems) for name, systems in meanings.items()]
    explained = [(kind, systems) for kind, systems in matches if kind is not None]
    objects = [_object(kind, args.kind, systems) for kind, systems in explained]
    return print_data(
        args,
        # A foreign name may mean several kinds, so its answer is a list even when it means one.
        objects if known is None else objects[0],
        lambda: [line for kind, systems in explained for line in ("", "", *_text(kind, systems, args))][2:],
        lambda: "\n\n".join(_markdown(kind, args.kind, systems) for kind, systems in explained),
    )


def _is_file(name: str) -> bool:
    """Whether a saved failure is meant: it is there, or it is written as only files are."""
    from os.path import isfile

    from failwell.errors.explanations import translate_name

    looks_so = name == "-" or "/" in name or name.endswith((".json", ".txt", ".log"))
    return (looks_so or isfile(name)) and not translate_name(name)  # noqa: PTH113  (as in `intake`: pathlib is slow to load)


def _foreign(name: str) -> dict[str, tuple[str, ...]]:
    """Kind → the systems that call it `name`."""
    from failwell.errors.explanations import translate_name
    from failwell.errors.kind_registry import kinds, near_kinds

    meanings: dict[str, tuple[str, ...]] = {}
    for system, kind in translate_name(name):
        meanings[kind] = (*meanings.get(kind, ()), system)
    if not meanings:
        near = near_kinds(name.lower()) or [kind.name for kind in kinds() if name.lower() in kind.name][:5]
        if not near:
            raise usage_error(f"nothing is called `{name}`", see="failwell kinds")
        raise usage_error(f"no kind is called `{name}`", value=near[0], valid=near, see="failwell kinds")
    return meanings


def _follows(kind: Kind) -> list[tuple[str, str]]:
    from failwell.cli.errors.kinds import repeat

    policy = "" if kind.policy == "none" else f" (policy `{kind.policy}`)"
    return [
        ("category", kind.category.value),
        ("retry", f"{_RETRY[repeat(kind)]}{policy}"),
        ("resubmit", "yes" if kind.resubmit else "no"),
        ("HTTP status", str(kind.status)),
        ("who acts", _WHO_ACTS[kind.category]),
        ("blame", kind.blame.value),
        ("certainty", kind.certainty.value),
        ("next step", kind.advice),
    ]


def _sections(kind: Kind) -> list[tuple[str, str]]:
    from failwell.errors.explanations import explanation

    words = explanation(kind.name)
    if words is None:
        return []
    return [("Cause", words.cause), ("Remedy", words.remedy), ("Example", words.example)]


def _object(kind: Kind, name: str, systems: tuple[str, ...]) -> dict[str, Any]:
    from failwell.cli.errors.kinds import summary

    data = summary(kind) | {section.lower(): text for section, text in _sections(kind)}
    return data | ({"asked": name, "known_there_as": list(systems)} if systems else {})


def _text(kind: Kind, systems: tuple[str, ...], args: Namespace) -> list[str]:
    lines = [bold(f"{kind.name}: {kind.title}", args)]
    if systems:
        lines.append(f"`{args.kind}` in {' and '.join(systems)}")
    lines += ["", wrapped(kind.summary), ""]
    lines += [f"  {label.ljust(11)}  {value}" for label, value in _follows(kind) if value]
    for heading, text in _sections(kind):
        body = (
            "\n".join(f"  {line}" for line in text.splitlines())
            if heading == "Example"
            else wrapped(text, "  ")
        )
        lines += ["", bold(heading, args), body]
    return lines


def _markdown(kind: Kind, name: str, systems: tuple[str, ...]) -> str:
    from failwell.errors.explanations import explanation

    parts = [f"# {kind.name}: {kind.title}"]
    if systems:
        parts.append(f"`{name}` in {' and '.join(systems)}.")
    parts += [kind.summary, "\n".join(f"- {label}: {value}" for label, value in _follows(kind) if value)]
    words = explanation(kind.name)
    if words is not None:
        parts += ["## Cause", words.cause, "## Remedy", words.remedy]
        parts += ["## Example", f"```{words.language}\n{words.example}\n```"]
    return "\n\n".join(parts)
