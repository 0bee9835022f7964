"""One failure as a Rich panel. Every word is a `Text`, never a markup string.

Model names, file names and messages hold square brackets and colons; as markup they would
vanish, turn into emoji, or raise.
"""

from typing import TYPE_CHECKING

from failwell.delivery.text import Audience, failure_text
from failwell.report.record import ErrorReport

if TYPE_CHECKING:
    from rich.panel import Panel


def panel(report: ErrorReport, audience: Audience = "user") -> "Panel":
    """A panel for `console.print`; colour carries no meaning that the words do not."""
    from rich.console import Group, RenderableType
    from rich.padding import Padding
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    said = failure_text(report, audience)
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for label, value in said.rows:
        rows.add_row(Text(label, style="dim"), Text(value, overflow="fold"))

    parts: list[RenderableType] = [Text(said.message, style="bold", overflow="fold"), Text(""), rows]
    for label, lines in said.blocks:
        block = Text("\n".join(lines), overflow="fold")
        parts += [Text(""), Text(label, style="dim"), Padding(block, (0, 0, 0, 2))]
    if said.hint:
        hint = Text("hint: ", style="bold green", overflow="fold")
        parts += [Text(""), hint.append(said.hint, style="not bold green")]

    title = Text.assemble(("✗ ", "bold red"), (said.title, "bold red"))
    return Panel(Group(*parts), title=title, title_align="left", border_style="red", padding=(1, 2))
