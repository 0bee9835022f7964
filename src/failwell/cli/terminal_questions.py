"""Asks the questions of gates at the terminal. They go to stderr: stdout is for the result."""

import getpass
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from failwell.cli.output import is_terminal, print_stderr
from failwell.delivery.plain_text import neutral, one_line

if TYPE_CHECKING:
    from failwell.workflows.running.settings import GateAnswer

_END = "."


def can_ask() -> bool:
    """Whether stdin and stderr are a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def user_name() -> str:
    """The name that an answer is recorded under."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


async def first_option(_gate: str, question: Mapping[str, Any]) -> "GateAnswer | None":
    """What `--skip-gates` answers: the first option. Questions are skipped, so that no answer is invented."""
    from failwell.workflows.machine.gate_steps import SKIPPED
    from failwell.workflows.running.settings import GateAnswer

    if question.get("type") == "questions":
        return GateAnswer(decision=SKIPPED, by="--skip-gates", payload={})
    if not question.get("options"):
        return None
    return GateAnswer(decision=question["options"][0]["value"], by="--skip-gates")


async def ask_gate(gate: str, question: Mapping[str, Any]) -> "GateAnswer | None":
    """Ask the question of a gate; `None` when the input has ended."""
    from failwell.workflows.running.settings import GateAnswer

    print_stderr(f"\n{quoted('? ', question.get('prompt') or gate)}")
    if question.get("type") == "questions":
        return await _questions(question)
    if question.get("type") == "limit":
        return await _steps(question)
    option = await choose(question["options"])
    if option is None:
        return None
    payload = None
    if option.get("prompt_for"):
        text = await read_text(f"{one_line(option['prompt_for'])}: ", several=bool(option.get("multiline")))
        if text is None:
            return None
        payload = {option["prompt_for"]: text}
    return GateAnswer(decision=option["value"], by=user_name(), payload=payload)


async def choose(options: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The option that a person chooses by its number or value; `None` when the input has ended."""
    for number, option in enumerate(options, 1):
        print_stderr(f"  {number}. {one_line(option['label'])} ({one_line(option['value'])})")
    while True:
        line = await read_line("choose: ")
        if line is None:
            return None
        option = _choice(line.strip(), options)
        if option is not None:
            return option
        print_stderr(f"  write a number from 1 to {len(options)}, or a value")


async def _steps(question: Mapping[str, Any]) -> "GateAnswer":
    """Ask for more steps at an iteration limit. The end of the input stops the run, as does 0."""
    from failwell.workflows.running.settings import GateAnswer

    default = question["max_iterations"]
    while True:
        line = await read_line(f"more steps [{default}; 0 stops]: ")
        text = "0" if line is None else line.strip() or str(default)
        if text.isascii() and text.isdecimal() and len(text) <= 6:
            steps = int(text)
            decision = "more" if steps else "stop"
            return GateAnswer(decision=decision, by=user_name(), payload={"steps": steps} if steps else None)
        print_stderr("  write a number of steps")


async def _questions(gate: Mapping[str, Any]) -> "GateAnswer | None":
    """Ask one question after the other. `:back` returns to the previous one, also after the last."""
    from failwell.workflows.machine.gate_steps import ABORTED, ANSWERED, SKIPPED
    from failwell.workflows.running.settings import GateAnswer

    questions: list[dict[str, Any]] = gate["questions"]
    print_stderr(f"  ({_controls(gate)})")
    answers: dict[str, Any] = {}
    position = 0
    while position < len(questions) or gate.get("allow_back", True):
        if position < len(questions):
            reply = await _ask_question(questions[position], gate, position)
        else:
            reply = await _review(questions, answers, gate)
        if reply is _END_OF_INPUT:
            return None
        if reply is _BACK:
            position -= 1
        elif reply is _ABORT:
            return GateAnswer(decision=ABORTED, by=user_name(), payload=answers)
        elif reply is _SKIP_ALL:
            missing = [entry["id"] for entry in questions[position:] if _is_needed(entry)]
            if not missing:
                return GateAnswer(decision=SKIPPED, by=user_name(), payload=answers)
            print_stderr(f"  these need an answer: {one_line(', '.join(missing))}")
        elif position == len(questions):
            break
        else:
            answers[questions[position]["id"]] = reply
            position += 1
    return GateAnswer(decision=ANSWERED, by=user_name(), payload=answers)


_END_OF_INPUT = object()
_BACK, _SKIP_ALL, _ABORT = object(), object(), object()
_CONTROL_WORDS = (":back", ":skip", ":abort")


def _controls(gate: Mapping[str, Any]) -> str:
    """The words that move between questions, as far as this step allows them."""
    words = [
        (gate.get("allow_skip", True), "an empty line skips a question"),
        (gate.get("allow_back", True), "`:back` returns to the previous one"),
        (gate.get("allow_skip_all", True), "`:skip` skips the rest"),
        (gate.get("can_abort", False), "`:abort` leaves"),
    ]
    return "; ".join(text for is_allowed, text in words if is_allowed) or "every question needs an answer"


def _control(text: str, gate: Mapping[str, Any], position: int) -> object | None:
    """What a control word asks for, if this step allows it."""
    if text == ":back" and gate.get("allow_back", True) and position > 0:
        return _BACK
    if text == ":skip" and gate.get("allow_skip_all", True):
        return _SKIP_ALL
    if text == ":abort" and gate.get("can_abort"):
        return _ABORT
    return None


def _is_needed(question: Mapping[str, Any]) -> bool:
    return bool(question.get("required")) and question.get("default") is None


async def _review(
    questions: list[dict[str, Any]], answers: Mapping[str, Any], gate: Mapping[str, Any]
) -> object:
    """Show every answer, so that the last question can be revised too."""
    for number, question in enumerate(questions, 1):
        answer = answers.get(question["id"])
        shown = question.get("default") if answer is None else answer
        print_stderr(
            f"  {number}. {one_line(question['text'])}: {'-' if shown is None else one_line(str(shown))}"
        )
    while True:
        line = await read_line("  an empty line finishes: ")
        if line is None:
            return _END_OF_INPUT
        if not line.strip():
            return None
        control = _control(line.strip(), gate, len(questions))
        if control in (_BACK, _ABORT):
            return control
        print_stderr("  write nothing, or `:back`")


def quoted(mark: str, text: object) -> str:
    """`text` after `mark`, each further line behind a bar, so that it cannot pose as options or as our own lines."""
    first, *rest = neutral(str(text)).split("\n")
    return "\n".join([f"{mark}{first}", *(f"{' ' * len(mark)}│ {line}" for line in rest)])


async def _ask_question(question: Mapping[str, Any], gate: Mapping[str, Any], position: int) -> Any:
    print_stderr(quoted("  ", question["text"]))
    if question.get("hint"):
        print_stderr(f"  ({one_line(question['hint'])})")
    choices = [str(choice) for choice in question.get("choices") or ()]
    for number, choice in enumerate(choices, 1):
        print_stderr(f"    {number}. {one_line(choice)}")
    default = question.get("default")
    may_skip = gate.get("allow_skip", True) and not question.get("required")
    while True:
        line = await read_line(f"  [{one_line(str(default))}] " if default is not None else "  ")
        if line is None:
            return _END_OF_INPUT
        text = line.strip()
        if not text and (default is not None or may_skip):
            return default
        control = _control(text, gate, position)
        if control is not None:
            return control
        if text in _CONTROL_WORDS:
            print_stderr(f"  `{text}` is not possible here")
            continue
        if text.isdecimal() and choices and 1 <= int(text) <= len(choices):
            return choices[int(text) - 1]
        if text and (not choices or text in choices or question.get("allow_free_text", True)):
            return text
        print_stderr("  choose one of these" if choices else "  this needs an answer")


def _choice(text: str, options: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if text.isdecimal() and 1 <= int(text) <= len(options):
        return options[int(text) - 1]
    return next((option for option in options if option["value"] == text), None)


async def read_text(prompt: str, *, several: bool) -> str | None:
    """A text of one or several lines; `None` when the input has ended."""
    if not several:
        return await read_line(prompt)
    print_stderr(f"{prompt}(end with a line that holds `{_END}` alone)")
    lines: list[str] = []
    while (line := await read_line("")) is not None and line != _END:
        lines.append(line)
    return "\n".join(lines)


async def read_line(prompt: str) -> str | None:
    """One line of stdin, without blocking the run; `None` at its end."""
    from asyncio import get_running_loop

    print_stderr(prompt, end="")
    loop = get_running_loop()
    ready = loop.create_future()
    stdin = sys.stdin.fileno()
    loop.add_reader(stdin, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(stdin)
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None
