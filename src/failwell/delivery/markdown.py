"""Somebody else's text inside Markdown: shown as it is, and unable to become structure."""

import re

from failwell.delivery.plain import neutral, one_line

# An underscore inside a word is only an underscore, and names are full of them.
_MARKS = re.compile(r"[\\`*\[\]<>#|~&!$^@]|(?<![^\W_])_|_(?![^\W_])")
_BLOCK_START = re.compile(r"^(?P<number>\d{1,9})?(?P<mark>[-+=.):])", re.ASCII)
# A scheme or a `www.` makes a link of a bare address in GitHub's dialect.
_ADDRESS = re.compile(r"(?P<head>\bwww|https?|ftp|mailto|xmpp)(?P<mark>[.:])", re.IGNORECASE)


def escaped(text: str, limit: int = 2_000) -> str:
    """`text` as words on one line, every mark in it shown and none of them read."""
    line = _MARKS.sub(r"\\\g<0>", one_line(text, limit))
    line = _ADDRESS.sub(r"\g<head>\\\g<mark>", line)
    return _BLOCK_START.sub(lambda start: f"{start['number'] or ''}\\{start['mark']}", line)


def code(text: str, limit: int = 2_000) -> str:
    """`text` as a code span, in a fence that it does not contain."""
    line = one_line(text, limit)
    fence = "`" * (_longest_run(line) + 1)
    # A blank on each side is taken away by the reader, and keeps a backtick at an end apart.
    pad = " " if not line or line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def fenced(text: str, language: str = "text", indent: str = "") -> str:
    """`text` as a code block, in a fence that it does not contain."""
    fence = "`" * max(3, _longest_run(text) + 1)
    lines = [f"{fence}{language}", *neutral(text).split("\n"), fence]
    return "\n".join(f"{indent}{line}" for line in lines)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
