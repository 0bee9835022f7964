"""Questions of the session as lines at the terminal, and typed lines as their answers."""

from json import dumps
from typing import Any

from failwell.apps.cli.workflows.terminal import quoted
from failwell.delivery.plain_text import one_line
from failwell.interaction.requests import Answer, Approve, Ask, DeviceCode, Refusal, Request, Select

_YES = frozenset({"y", "yes"})
_NO = frozenset({"n", "no", ""})


def question_lines(request: Request) -> list[str]:
    """The question. Text of a model or a tool is escaped and stands behind a bar."""
    lines = [quoted("? ", request.text)]
    details: dict[str, Any] = request.to_dict().get("details") or {}
    if isinstance(request, Approve) and details:
        lines.append(
            quoted("  ", "\n" + dumps(details, ensure_ascii=True, indent=2, default=str)).lstrip("\n")
        )
    if isinstance(request, Select):
        lines += [
            f"  {number}. {one_line(option.label or option.value)}"
            for number, option in enumerate(request.options, 1)
        ]
    elif isinstance(request, DeviceCode):
        lines.append(f"  open {one_line(request.url)} and enter {one_line(request.code)}")
    lines.append(f"  ({_how(request)})")
    return lines


def answer_of(request: Request, line: str, by: str) -> tuple[Answer | Refusal | None, str]:
    """The answer that a line is, or why it is none."""
    text = line.strip()
    if isinstance(request, Ask):
        return Answer(value=text or request.default or "", by=by), ""
    if isinstance(request, Select):
        if text.isdecimal() and 1 <= int(text) <= len(request.options):
            return Answer(value=request.options[int(text) - 1].value, by=by), ""
        answer = Answer(value=text, by=by)
        problem = request.problem_with(answer)
        return (answer, "") if problem is None else (None, f"  {problem}")
    if request.is_secret:
        return (Answer(value=line, by=by), "") if line else (Refusal(by=by), "")
    if text.lower() in _YES:
        return Answer(value=True, by=by), ""
    if text.lower() in _NO:
        # Whoever does not say yes has not agreed.
        return Answer(value=False, by=by), ""
    return None, "  write `y` or `n`"


def _how(request: Request) -> str:
    if isinstance(request, Ask):
        return (
            "write the answer"
            if request.default is None
            else f"an empty line is `{one_line(request.default)}`"
        )
    if isinstance(request, Select):
        return f"write a number from 1 to {len(request.options)}, or a value"
    return (
        "it is shown while you type; an empty line refuses"
        if request.is_secret
        else "y or n; an empty line is no"
    )
