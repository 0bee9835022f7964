"""Rows as text or as Markdown. Cells hold somebody else's words, so they are made harmless first."""

from argparse import Namespace
from collections.abc import Sequence

from failwell.apps.cli.output import bold

Row = Sequence[str]


def text_table(columns: Row, rows: Sequence[Row], args: Namespace, indent: str = "") -> list[str]:
    """Columns that line up, the heads in bold."""
    from failwell.delivery.plain import one_line

    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *shown, strict=True)]
    lines = [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (columns, *shown)
    ]
    return [bold(lines[0], args), *lines[1:]]


def markdown_table(columns: Row, rows: Sequence[Row]) -> list[str]:
    """A table of GitHub's dialect; the first column is what one could type."""
    from failwell.delivery.agent_output import code, escaped

    return [
        f"| {' | '.join(columns)} |",
        f"|{' --- |' * len(columns)}",
        *(
            f"| {' | '.join([code(first).replace('|', chr(92) + '|'), *map(escaped, rest)])} |"
            for first, *rest in rows
        ),
    ]
