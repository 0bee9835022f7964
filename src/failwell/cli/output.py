r"""Everything that the command line writes: data on stdout, remarks and errors on stderr.

No other module of the command line prints. What is written may hold text of files, scripts, models and
peers, so control characters, escape sequences and marks that turn or hide text are written out here, as
`\x1b`. In JSON they become JSON's own escapes, so a reader of the JSON gets the text as it was.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from json import dumps
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from failwell.cli.exit_codes import Exit
from failwell.errors.missing_extra import need

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
"""Columns that running text is wrapped to."""
Text = str | Sequence[str]
"""A text, or the lines of one."""
_T = TypeVar("_T")


class Heading(str):
    """A line that is printed in bold."""

    __slots__ = ()


def print_text(text: Text) -> None:
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


def console_of(args: Namespace, stream: TextIO) -> "Console":
    """The console of a live display on a terminal, coloured as `--color` says."""
    return terminal(stream, color={"always": True, "never": False}.get(args.color), force_terminal=True)


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


def print_data(
    args: Namespace,
    data: Any,
    text: Text | Callable[[], Text],
    markdown: Text | Callable[[], Text] | None = None,
) -> int:
    """Print data in the chosen format: as JSON, as text, or as Markdown if that differs. Each may be a function.

    Returns:
        The exit code of a command that is done.
    """
    if args.format == "json":
        print_json(data() if callable(data) else data)
        return Exit.DONE
    chosen = text if markdown is None or args.format != "markdown" else markdown
    print_text(chosen() if callable(chosen) else chosen)
    return Exit.DONE


def print_fields(args: Namespace, data: Any, fields: Sequence[tuple[str, str]]) -> int:
    """Print one object: as JSON, or its fields as lines or as a Markdown table."""
    from failwell.cli.listing import markdown_table

    width = max((len(name) for name, _ in fields), default=0) + 1
    return print_data(
        args,
        data,
        lambda: [f"{f'{name}:':<{width}} {value}" for name, value in fields],
        lambda: markdown_table(("field", "value"), fields),
    )


def print_aside(args: Namespace, text: str) -> None:
    """Print a remark for a person on stderr; nothing where errors are JSON, so that they can be parsed."""
    if error_format(args) != "json":
        print_if_read(text)


def error_format(args: Namespace) -> str:
    """The format of errors: its own option, else that of the data."""
    return args.error_format or args.format


def terminal_width(stream: Any) -> int | None:
    """The columns of a terminal; `None` if `stream` is none. `COLUMNS` overrides them."""
    if not is_terminal(stream):
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


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
