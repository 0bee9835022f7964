"""Where data goes: stdout, with colour only where somebody sees it."""

import os
import sys
from argparse import Namespace
from json import dumps
from typing import Any

WIDTH = 100
"""Columns that running text is wrapped to."""


def say(text: str) -> None:
    """Print data as it is, all of it, now.

    Raises:
        Unwritable: the disk is full, or the stream refuses for another reason of the system's.
        BrokenPipeError: nobody reads it any more.
    """
    try:
        print(text.rstrip("\n"), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        from failwell.apps.cli.faults import Unwritable, reason

        raise Unwritable.wrap(
            error, f"cannot write the output: {reason(error)}", caller_facing=True
        ) from error


def say_json(value: Any) -> None:
    """Print data as JSON that a person can also read."""
    say(dumps(value, indent=2, ensure_ascii=False))


def wants_color(args: Namespace) -> bool:
    """Whether stdout may be coloured: as asked, else on a terminal unless `NO_COLOR` is set."""
    if args.color != "auto":
        return args.color == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and is_terminal(sys.stdout)


def is_terminal(stream: Any) -> bool:
    """Whether a person sits at the other end of `stream`."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        # A closed stream has nobody at its end.
        return False


def bold(text: str, args: Namespace) -> str:
    """`text` in bold where colour is wanted; the words carry the meaning alone."""
    return f"\x1b[1m{text}\x1b[0m" if wants_color(args) else text


def wrapped(text: str, indent: str = "") -> str:
    """`text` in lines that fit a terminal, later lines of a numbered step set in."""
    from textwrap import wrap

    lines: list[str] = []
    for paragraph in text.splitlines():
        step = paragraph[:2].rstrip(".").isdecimal() and paragraph[1:3] == ". "
        lines += wrap(
            paragraph,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}   " if step else indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)
