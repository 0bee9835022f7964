"""`--watch`: a listing that is drawn again after every commit; elsewhere than on a terminal, the lines that changed."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from failwell.cli.output import (
    Heading,
    drawing,
    is_terminal,
    leaving_on_signals,
    print_json_text,
    print_text,
    terminal,
    text_table,
)
from failwell.cli.parser import Parser

if TYPE_CHECKING:
    from failwell.jobs.store.sqlite import JobStore

_PAUSE = 0.1
"""Seconds between two drawings: a busy store commits more often than anybody can read."""


class Listing(NamedTuple):
    """The rows of a listing, and the same as JSON objects with an `id`."""

    rows: Sequence[Sequence[str]]
    objects: Sequence[dict[str, Any]]


def add_watch(parser: Parser) -> None:
    """Declare `--watch`."""
    parser.add_argument(
        "--watch",
        action="store_true",
        help="show changes as they are recorded, until Ctrl-C; one line for each if stdout is no terminal",
    )


def watch_table(
    args: Namespace,
    store: "JobStore",
    columns: Sequence[str],
    read: Callable[[], Listing],
    optional: Sequence[str] = (),
) -> NoReturn:
    """Print a listing again and again, until the process is interrupted or nobody reads it any more."""
    with store.commit_watch() as watch:

        def wait() -> None:
            from failwell.calls.clock import SYSTEM_CLOCK

            SYSTEM_CLOCK.sleep(_PAUSE)
            watch.wait(watch.interval)

        if args.format == "text" and is_terminal(sys.stdout):
            _draw(args, columns, read, wait, optional)
        _print_changes(args, read, wait)


def _draw(
    args: Namespace,
    columns: Sequence[str],
    read: Callable[[], Listing],
    wait: Callable[[], None],
    optional: Sequence[str],
) -> NoReturn:
    from rich.live import Live
    from rich.text import Text

    color = {"always": True, "never": False}.get(args.color)
    console = terminal(sys.stdout, color=color, force_terminal=True)

    def drawn() -> Text:
        lines = text_table(columns, read().rows, args, width=console.width, optional=optional)
        text = Text(no_wrap=True, overflow="ellipsis")
        for line in lines[: max(2, console.height - 1)]:
            text.append(f"{line}\n", style="bold" if isinstance(line, Heading) else "")
        return text

    # `screen` restores what was on the terminal, also after Ctrl-C.
    with (
        leaving_on_signals(),
        drawing(Live(drawn(), console=console, screen=True, auto_refresh=False)) as live,
    ):
        while True:
            wait()
            live.update(drawn(), refresh=True)


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
