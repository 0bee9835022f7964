"""`failwell kinds`: list the kinds of failure and what follows from each."""

from argparse import Namespace
from typing import Any

from failwell.cli.listing import Listing, print_listing
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
    rows, objects = [_row(kind) for kind in selected], [summary(kind) for kind in selected]
    return print_listing(args, Listing(_COLUMNS, rows, objects))


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
