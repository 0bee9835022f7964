"""Listings: columns and rows for people, an array of objects for programs; printed once, or watched."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from failwell.cli.exit_codes import Exit
from failwell.cli.output import (
    bold,
    is_terminal,
    print_data,
    print_json_text,
    print_stderr,
    print_text,
    terminal_width,
)
from failwell.cli.parser import Parser
from failwell.errors.text_table import aligned

if TYPE_CHECKING:
    from failwell.jobs.store.sqlite import JobStore

Row = Sequence[str]
_SHORTEST = 8
"""Characters that a cut cell keeps."""
_PAUSE = 0.1
"""Seconds between two drawings: a busy store commits more often than anybody can read."""


class Listing(NamedTuple):
    """What a command lists."""

    columns: Row
    rows: Sequence[Row]
    objects: Sequence[Any]
    """The same as JSON objects, each with an `id`."""
    empty: str = ""
    """What stderr says if there is nothing."""
    optional: Row = ()
    """Columns that are left out of text on a narrow terminal, the first one first."""


def print_listing(args: Namespace, listing: Listing) -> int:
    """Print a listing in the chosen format: a table, or for JSON an array of objects. Returns the exit code."""
    columns, rows, objects, empty, optional = listing
    if args.format == "text" and not rows:
        if empty:
            print_stderr(empty)
        return Exit.DONE
    return print_data(
        args,
        list(objects),
        lambda: text_table(columns, rows, args, width=terminal_width(sys.stdout), optional=optional),
        lambda: markdown_table(columns, rows),
    )


def text_table(
    columns: Row,
    rows: Sequence[Row],
    args: Namespace,
    indent: str = "",
    width: int | None = None,
    optional: Row = (),
) -> list[str]:
    """The lines of a table with aligned columns and bold heads. Cells are made safe for a terminal.

    With a `width`, the table fits into it: `optional` columns are left out, then long cells are cut, then further columns
    are left out. The first column is never cut, so that it can be copied.
    """
    from failwell.delivery.plain_text import one_line

    safe = [[one_line(cell) for cell in row] for row in rows]
    if width is not None:
        columns, safe = _fitted(columns, safe, width - len(indent), optional)
    lines = [indent + line for line in aligned((columns, *safe))]
    return [bold(lines[0], args), *lines[1:]]


def _fitted(columns: Row, rows: list[list[str]], width: int, optional: Row) -> tuple[Row, list[list[str]]]:
    """The columns and rows of a table that is at most `width` wide, if that is possible."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    places = list(range(len(columns)))

    def excess() -> int:
        return sum(widths[place] for place in places) + 2 * (len(places) - 1) - width

    for name in optional:
        if excess() > 0 and name in columns:
            places.remove(list(columns).index(name))
    while excess() > 0:
        widest = max(places[1:], key=lambda place: widths[place], default=None)
        if widest is None or widths[widest] <= _SHORTEST:
            break
        widths[widest] = max(_SHORTEST, widths[widest] - excess())
    while excess() > 0 and len(places) > 1:
        places.pop()
    cut = [[_cut(row[place], widths[place], place) for place in places] for row in rows]
    return [_cut(columns[place], widths[place], place) for place in places], cut


def _cut(cell: str, width: int, place: int) -> str:
    return cell if place == 0 or len(cell) <= width else f"{cell[: width - 1]}…"


def markdown_table(columns: Row, rows: Sequence[Row]) -> list[str]:
    """The lines of a GitHub table. The first column is code, so that it can be copied."""
    from failwell.delivery.agent_output import code, escaped

    return [
        f"| {' | '.join(columns)} |",
        f"|{' --- |' * len(columns)}",
        *(
            f"| {' | '.join([code(first).replace('|', chr(92) + '|'), *map(escaped, rest)])} |"
            for first, *rest in rows
        ),
    ]


def add_watch(parser: Parser) -> None:
    """Declare `--watch`."""
    parser.add_argument(
        "--watch",
        action="store_true",
        help="show changes as they are recorded, until Ctrl-C; one line for each if stdout is no terminal",
    )


def watch_listing(args: Namespace, store: "JobStore", read: Callable[[], Listing]) -> NoReturn:
    """Print a listing after every commit, until the process is interrupted or nobody reads it any more.

    On a terminal it is drawn again; elsewhere, the lines that changed are printed.
    """
    with store.commit_watch() as watch:

        def wait() -> None:
            from failwell.calls.clock import SYSTEM_CLOCK

            SYSTEM_CLOCK.sleep(_PAUSE)
            watch.wait(watch.interval)

        if args.format == "text" and is_terminal(sys.stdout):
            from failwell.cli.live_screen import draw_again

            def drawn(width: int) -> list[str]:
                listing = read()
                return text_table(listing.columns, listing.rows, args, width=width, optional=listing.optional)

            draw_again(args, drawn, wait)
        _print_changes(args, read, wait)


def _print_changes(args: Namespace, read: Callable[[], Listing], wait: Callable[[], None]) -> NoReturn:
    from json import dumps

    known: dict[Any, Any] = {}
    while True:
        listing = read()
        # Oldest first, as a log is read.
        for row, data in reversed(list(zip(listing.rows, listing.objects, strict=True))):
            if known.get(data["id"]) == data:
                continue
            known[data["id"]] = data
            if args.format == "json":
                print_json_text(dumps(data, ensure_ascii=False))
            elif args.format == "markdown":
                from failwell.delivery.agent_output import code, escaped

                print_text(f"- {code(row[0])} {' · '.join(escaped(cell) for cell in row[1:] if cell)}")
            else:
                from failwell.delivery.plain_text import one_line

                print_text("  ".join(one_line(cell) for cell in row if cell))
        ids = {data["id"] for data in listing.objects}
        known = {name: data for name, data in known.items() if name in ids}
        wait()
