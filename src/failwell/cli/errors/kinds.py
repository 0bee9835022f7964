"""`failwell kinds`: list the kinds of failure and what follows from each."""

from argparse import Namespace
from typing import Any

from failwell.cli.exit_codes import Exit
from failwell.cli.output import bold, print_json, print_text
from failwell.cli.parser import Parser, usage_error
from failwell.errors.axes import Category, Repeat
from failwell.errors.kinds_table import Kind

_COLUMNS = ("id", "category", "retry", "status", "title")


def add_options(parser: Parser) -> None:
    """Declare the filters."""
    parser.add_argument(
        "--category", choices=[str(category) for category in Category], help="only kinds of this category"
    )
    parser.add_argument("--prefix", help="only kinds that begin with this, such as `provider`")


def run(args: Namespace) -> int:
    """Print the list."""
    from failwell.errors.kind_registry import kinds

    selected = [
        kind
        for kind in kinds()
        if args.category in (None, kind.category) and (args.prefix is None or _under(kind.name, args.prefix))
    ]
    if args.prefix is not None and not any(_under(kind.name, args.prefix) for kind in kinds()):
        namespaces = dict.fromkeys(kind.name.partition(".")[0] for kind in kinds())
        raise usage_error(
            f"no kind begins with `{args.prefix}`",
            value=args.prefix,
            valid=namespaces,
            see="failwell kinds",
        )
    if args.format == "json":
        print_json([summary(kind) for kind in selected])
    elif args.format == "markdown":
        print_text(_markdown(selected))
    elif selected:
        print_text(_table(selected, args))
    return Exit.DONE


def summary(kind: Kind) -> dict[str, Any]:
    """One kind as JSON."""
    return {
        "id": kind.name,
        "title": kind.title,
        "summary": kind.summary,
        "category": kind.category.value,
        "domain": kind.category.domain.value,
        "certainty": kind.certainty.value,
        "blame": kind.blame.value,
        "retryable": kind.category.retryable,
        "repeat": repeat(kind).value,
        "resubmit": kind.resubmit,
        "status": kind.status,
        "policy": kind.policy,
        "action": {"kind": kind.action.value, "detail": kind.advice},
    }


def repeat(kind: Kind) -> Repeat:
    """What has to happen before the runtime repeats it by itself; never, where no policy does."""
    return Repeat.NEVER if kind.policy == "none" else kind.category.repeat


def _under(name: str, prefix: str) -> bool:
    return (
        name == prefix
        or name.startswith(f"{prefix.rstrip('.')}.")
        or ("." in prefix and name.startswith(prefix))
    )


def _row(kind: Kind) -> tuple[str, ...]:
    return (
        kind.name,
        kind.category.value,
        repeat(kind).value.replace("_", " "),
        str(kind.status),
        kind.title,
    )


def _table(selected: list[Kind], args: Namespace) -> list[str]:
    rows = [_row(kind) for kind in selected]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (_COLUMNS, *rows)
    ]
    return [bold(lines[0], args), *lines[1:]]


def _markdown(selected: list[Kind]) -> list[str]:
    rows = [(f"`{name}`", *rest) for name, *rest in map(_row, selected)]
    return [
        f"| {' | '.join(_COLUMNS)} |",
        f"|{' --- |' * len(_COLUMNS)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
