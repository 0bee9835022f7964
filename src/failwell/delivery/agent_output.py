"""One failure for a program that reads a command's error output: JSON or Markdown.

Both say the same. Causes are named by their type and kind; the text of a foreign
exception is not repeated.
"""

import re
from collections.abc import Iterable
from typing import Any, cast

from failwell.delivery.plain_text import json_text, neutral, one_line
from failwell.errors.redact import cut, redact_value
from failwell.errors.report import ErrorReport
from failwell.errors.views import user_message

# An underscore inside a word is only an underscore, and names are full of them.
_MARKS = re.compile(r"[\\`*\[\]<>#|~&!$^@]|(?<![^\W_])_|_(?![^\W_])")
_BLOCK_START = re.compile(r"^(?P<number>\d{1,9})?(?P<mark>[-+=.):])", re.ASCII)
# A scheme or a `www.` makes a link of a bare address in GitHub's dialect.
_ADDRESS = re.compile(r"(?P<head>\bwww|https?|ftp|mailto|xmpp)(?P<mark>[.:])", re.IGNORECASE)


def escaped(text: str, limit: int = 2_000) -> str:
    """`text` on one line, every mark in it shown as it is and none interpreted."""
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


_SHOWN_ELSEWHERE = frozenset({"error", "error_type", "message", "hint", "error_source"})


def agent_json(report: ErrorReport, **extras: Any) -> dict[str, Any]:
    """The failure as one flat object; `extras` of the command are added and win.

    `retryable` is there only when it is true, so its absence never reads as an answer.
    """
    document: dict[str, Any] = {
        "error": True,
        "error_type": one_line(report.error_type),
        "kind": report.kind,
        "message": cut(neutral(_message(report))),
    }
    if report.user_action.detail:
        document["hint"] = cut(neutral(report.user_action.detail))
    if report.retryable:
        document["retryable"] = True
    document |= {"error_domain": report.domain.value, "error_category": report.category.value}
    if report.model is not None:
        document["model"] = one_line(report.model)
    if report.provider is not None:
        document["provider"] = one_line(report.provider)
    if "not_before" in (view := report.view("user")):
        document["not_before"] = view["not_before"]
    document |= {"id": report.id, "error_source": list(_source(report))}
    return document | redact_value(extras)


def agent_markdown(report: ErrorReport, **extras: Any) -> str:
    """The failure as a short document: heading, message, hint, details, causes."""
    document = agent_json(report, **extras)
    parts = [f"# Error: {escaped(str(document['error_type']))}", escaped(str(document["message"]))]
    if document.get("hint"):
        parts.append(f"> 💡 {escaped(str(document['hint']))}")
    details = [_bullet(name, value) for name, value in document.items() if name not in _SHOWN_ELSEWHERE]
    parts += ["## Details", "\n".join(details).rstrip()]
    parts += ["## Error source", fenced(_lines(document["error_source"]))]
    return "\n\n".join(parts) + "\n"


def _message(report: ErrorReport) -> str:
    # Where the original's text is recorded, the message may be nothing but that text. Only what was written
    # for the caller is repeated then.
    kept = report.internal
    withheld = kept is None or kept.repr == report.error_type
    return report.message if report.caller_facing or withheld else user_message(report)


def _source(report: ErrorReport) -> Iterable[str]:
    yield one_line(f"{report.error_type} @ {report.kind}")
    for cause in report.causes:
        yield one_line(f"{cause.type} @ {cause.kind or 'unclassified'}")


def _lines(source: object) -> str:
    # A command may have put something of its own in the place of the list.
    if not isinstance(source, list):
        return json_text(source)
    return "\n".join(map(str, cast("list[object]", source)))


def _bullet(name: str, value: object) -> str:
    label = escaped(name)
    if isinstance(value, str):
        return f"- {label}: {code(value)}" if value else f"- {label}:"
    if value is None or isinstance(value, bool | int | float):
        return f"- {label}: {json_text(value)}"
    return f"- {label}:\n\n{fenced(json_text(value, indent=2), 'json', indent='  ')}\n"
