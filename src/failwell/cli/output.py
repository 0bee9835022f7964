r"""Everything that the command line writes: data on stdout, remarks and errors on stderr.

No other module of the command line prints. What is written may hold text of files, scripts, models and
peers, so control characters, escape sequences and marks that turn or hide text are written out here, as
`\x1b`. In JSON they become JSON's own escapes, so a reader of the JSON gets the text as it was.

Lets a command that draws on the terminal clean up when a signal ends it.
"""

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from json import dumps
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

from failwell.cli.exit_codes import Exit
from failwell.errors.missing_extra import need

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
"""Columns that running text is wrapped to."""
Row = Sequence[str]
_T = TypeVar("_T")


class Heading(str):
    """A line that is printed in bold."""

    __slots__ = ()


def print_text(text: str | Sequence[str]) -> None:
    """Print data, a text or the lines of one, and flush it.

    Raises:
        Unwritable: the disk is full, or the system refuses for another reason.
        BrokenPipeError: the reader has closed the stream.
    """
    lines = [text] if isinstance(text, str) else text
    _print_data("\n".join(_bold(_safe(line)) if isinstance(line, Heading) else _safe(line) for line in lines))


def print_piece(text: str) -> None:
    """Print a piece of a text that is still coming in, without a line end, and flush it."""
    from failwell.delivery.plain_text import neutral

    # Character by character, so an escape sequence that is spread over two pieces is written out as well.
    print(neutral(text), end="", flush=True)


def print_json_text(text: str) -> None:
    """Print data that is JSON already, and flush it."""
    from failwell.delivery.plain_text import neutral_json

    _print_data(neutral_json(text))


def print_stderr(text: str, *, end: str = "\n", is_json: bool = False) -> None:
    """Print a remark, a question or an error on stderr, and flush it."""
    from failwell.delivery.plain_text import neutral_json

    print(neutral_json(text) if is_json else _safe(text), end=end, file=sys.stderr, flush=True)


def print_if_read(text: str, *, is_json: bool = False) -> None:
    """`print_stderr`, where it is no failure that nobody reads it: what was done stays done, and the exit code says it."""
    try:
        print_stderr(text, is_json=is_json)
    except OSError:
        return


def until_it_fails(show: Callable[[_T], object]) -> Callable[[_T], None]:
    """`show`, which is not called again once it has raised: a stream that is closed or full stays so."""
    from failwell.cli.faults import Unwritable

    failed: list[Exception] = []

    def call(value: _T) -> None:
        if failed:
            return
        try:
            show(value)
        except (OSError, Unwritable) as error:
            failed.append(error)
            raise

    return call


def print_stderr_lines(lines: Sequence[str]) -> None:
    """Print texts on stderr, each on one line."""
    print("\n".join(map(_one_line, lines)), file=sys.stderr, flush=True)


def terminal(stream: TextIO, *, color: bool | None = None, force_terminal: bool | None = None) -> "Console":
    """What draws panels and live views on `stream`. The drawn text is made safe too.

    Args:
        stream: Where to draw.
        color: Whether to use colour; by default as the terminal and `NO_COLOR` say.
        force_terminal: Whether to take the stream for a terminal; by default as it is.
    """
    need("rich", "engine")
    from rich.console import Console
    from rich.segment import Segment

    from failwell.delivery.plain_text import neutral

    class SafeConsole(Console):
        """Writes control characters of the content out; those of the drawing are rich's own."""

        def render(self, *args: Any, **options: Any) -> Any:
            for segment in super().render(*args, **options):
                # A control segment moves the cursor; rich alone makes those.
                yield segment if segment.control else Segment(neutral(segment.text), segment.style)

    return SafeConsole(
        file=stream,
        force_terminal=force_terminal,
        no_color=None if color is None else not color,
        highlight=False,
    )


def print_drawing(text: str) -> None:
    """Print what a console of `terminal` drew; its text is safe already."""
    _print_data(text)


def _safe(text: str) -> str:
    """`text` with everything written out that a terminal would act on. Lines of printable ASCII hold nothing of the kind."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    from failwell.delivery.plain_text import neutral

    return neutral(text)


def _one_line(text: str) -> str:
    """`text` on one line. A short text of printable ASCII is one already."""
    if len(text) <= WIDTH and text.isascii() and text.isprintable():
        return text
    from failwell.delivery.plain_text import one_line

    return one_line(text)


def _print_data(text: str) -> None:
    try:
        print(text.rstrip("\n"), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        from failwell.cli.faults import Unwritable, reason

        raise Unwritable.wrap(
            error, f"cannot write the output: {reason(error)}", caller_facing=True
        ) from error


def print_json(value: Any) -> None:
    """Print data as indented JSON."""
    print_json_text(dumps(value, indent=2, ensure_ascii=False))


def print_table(
    args: Namespace,
    columns: Row,
    rows: Sequence[Row],
    objects: Sequence[Any],
    empty: str = "",
    optional: Row = (),
) -> None:
    """Print a listing in the chosen format: a table, or for JSON an array of `objects`.

    Args:
        args: The parsed arguments.
        columns: The heads of the columns.
        rows: The cells, row by row.
        objects: The same rows as JSON objects, each with an `id`.
        empty: What to print on stderr if there are no rows.
        optional: Columns that are left out of text on a narrow terminal, the first one first.
    """
    if args.format == "json":
        print_json(list(objects))
    elif args.format == "markdown":
        print_text(markdown_table(columns, rows))
    elif rows:
        print_text(text_table(columns, rows, args, width=terminal_width(sys.stdout), optional=optional))
    elif empty:
        print_stderr(empty)


def print_aside(args: Namespace, text: str) -> None:
    """Print a remark for a person on stderr; nothing where errors are JSON, so that they can be parsed."""
    if error_format(args) != "json":
        print_if_read(text)


def error_format(args: Namespace) -> str:
    """The format of errors: its own option, else that of the data."""
    return args.error_format or args.format


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
    widths = [max(map(len, column)) for column in zip(columns, *safe, strict=True)]
    lines = [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *safe)
    ]
    return [bold(lines[0], args), *lines[1:]]


_SHORTEST = 8
"""Characters that a cut cell keeps."""


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


def terminal_width(stream: Any) -> int | None:
    """The columns of a terminal; `None` if `stream` is none. `COLUMNS` overrides them."""
    if not is_terminal(stream):
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


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


def wants_color(args: Namespace) -> bool:
    """Whether stdout may be coloured: as `--color` says, else on a terminal unless `NO_COLOR` is set."""
    if args.color != "auto":
        return args.color == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and is_terminal(sys.stdout)


def is_terminal(stream: Any) -> bool:
    """Whether `stream` is a terminal."""
    # While a display is drawn, rich stands before the stream; older releases of it are never a terminal.
    stream = getattr(stream, "rich_proxied_file", stream)
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        # A closed stream is no terminal.
        return False


def bold(text: str, args: Namespace) -> str:
    """`text` as a line that is printed in bold where colour is wanted."""
    return Heading(text) if wants_color(args) else text


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"


def wrapped(text: str, indent: str = "") -> str:
    """`text` wrapped to `WIDTH`; later lines of a numbered step are indented."""
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


if TYPE_CHECKING:
    from rich.live import Live


@contextmanager
def leaving_on_signals() -> Generator[None]:
    """Turn SIGTERM and SIGHUP into an exit with their codes, so that `with` blocks inside end as they do after Ctrl-C."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(Exit.of_signal(number))

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    before = {
        number: signal.signal(number, leave)
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def drawing(live: "Live") -> Generator["Live"]:
    """Start and stop a live display. Its own block leaves the terminal as it is if it is interrupted while it starts."""
    try:
        live.start(refresh=True)
        yield live
    finally:
        live.stop()
