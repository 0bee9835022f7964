"""`failwell doctor`: check that the errors of the installed SDKs are known."""

from argparse import Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.output import bold, print_data
from failwell.cli.parser import Parser

if TYPE_CHECKING:
    from failwell.adapters.doctor.sdks import Sdk


_EPILOG = """\
mapped: a rule names the class. inherited: a rule names a base, or its exceptions carry a status, a code or a reply.
unspecific: a rule names a base, and by it alone the failure is not recognised. beside: no failure of a call.
unknown: no rule; the line beside it gives the class a kind.

exit codes: 0 the packages were checked, 1 with --strict if a class is unknown or a package cannot be checked.

try it: failwell doctor sdks --all"""
_STANDINGS = ("mapped", "inherited", "unspecific", "beside", "unknown")


def add_options(parser: Parser) -> None:
    """Declare what to look at."""
    parser.add_argument("subject", choices=["sdks"], help="what to look at")
    parser.add_argument(
        "--sdk", metavar="MODULE", action="append", help="only this top-level module (may be repeated)"
    )
    parser.add_argument("--all", action="store_true", help="list every class, not only the unknown ones")
    parser.add_argument(
        "--load",
        action="store_true",
        help="load each package in a process of its own, instead of reading its source (takes a minute)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit with 1 if a class is unknown or a package can be neither read nor loaded",
    )
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _EPILOG


def run(args: Namespace) -> int:
    """Probe the installed SDKs and print the result."""
    from failwell.adapters.doctor.sdks import installed

    sdks = installed(args.sdk, load=args.load)
    print_data(
        args,
        lambda: [summary(sdk) for sdk in sdks],
        lambda: list(_text(sdks, args)),
        lambda: list(_markdown(sdks, everything=args.all)),
    )
    bad = any(sdk.unknown or sdk.broken for sdk in sdks)
    return Exit.FAILED if args.strict and bad else Exit.DONE


def summary(sdk: "Sdk") -> dict[str, Any]:
    """One package as JSON."""
    return {"id": sdk.top, **asdict(sdk), "counts": dict(Counter(entry.standing for entry in sdk.classes))}


def _head(sdk: "Sdk") -> str:
    name = ", ".join(sdk.releases) or sdk.top
    return f"{name} ({', '.join(sdk.http)})" if sdk.http else name


def _count(sdk: "Sdk") -> str:
    if sdk.broken:
        return f"cannot be loaded here ({sdk.broken})"
    counts = Counter(entry.standing for entry in sdk.classes)
    text = ", ".join(f"{counts[name]} {name}" for name in _STANDINGS if counts[name])
    return text or "no exception classes"


def _rows(sdk: "Sdk", *, everything: bool) -> Iterator[tuple[str, str, str]]:
    for entry in sdk.classes:
        if entry.standing == "unknown":
            yield entry.standing, entry.name, entry.proposal or ""
        elif everything and entry.standing == "unspecific":
            yield entry.standing, entry.name, f"by {entry.by}, as {entry.kind}: {entry.proposal}"
        elif everything:
            yield (
                entry.standing,
                entry.name,
                str(entry.by) if entry.standing == "beside" else f"by {entry.by}",
            )


def _text(sdks: "list[Sdk]", args: Namespace) -> Iterator[str]:
    for sdk in sdks:
        yield bold(f"{_head(sdk)}: {_count(sdk)}", args)
        for standing, name, more in _rows(sdk, everything=args.all):
            yield f"  {standing:<10}  {name}  {more}"
    unknown = sum(len(sdk.unknown) for sdk in sdks)
    unspecific = sum(len(sdk.unspecific) for sdk in sdks)
    packages = "1 package" if len(sdks) == 1 else f"{len(sdks)} packages"
    yield f"{packages}, {sum(len(sdk.classes) for sdk in sdks)} exception classes, {unspecific} unspecific, {unknown} unknown"
    if unknown:
        yield "Give each a kind at start-up with the line beside it; `failwell kinds` lists the kinds."


def _markdown(sdks: "list[Sdk]", *, everything: bool) -> Iterator[str]:
    for sdk in sdks:
        yield f"## {_head(sdk)}\n\n{_count(sdk)}\n"
        yield from (
            f"- {standing}: `{name}` {f'`{more}`' if standing == 'unknown' else more}"
            for standing, name, more in _rows(sdk, everything=everything)
        )
        yield ""
