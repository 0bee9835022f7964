"""One failure as plain text for a terminal or a log file."""

from failwell.delivery.words import Audience, words
from failwell.report.record import ErrorReport


def render_text(report: ErrorReport, audience: Audience = "user") -> str:
    """What happened, where, and what to do next; no colour, no trailing newline.

    A user is told what the user's view holds. An operator is also told who is to blame, what the
    provider answered, what was tried, and why the failure was classified as it was.
    """
    said = words(report, audience)
    lines = [f"error: {said.message}", *(f"  {label}: {value}" for label, value in said.rows)]
    for label, block in said.blocks:
        lines += [f"  {label}:", *(f"    {line}" for line in block)]
    if said.hint:
        lines.append(f"hint: {said.hint}")
    return "\n".join(lines)
