"""Asks the questions of gates at the terminal. They go to stderr: stdout is for the result."""

import getpass
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.output import is_terminal, print_stderr
from failwell.delivery.plain_text import neutral, one_line

if TYPE_CHECKING:
    from failwell.apps.cli.workflows.progress import Progress
    from failwell.workflow.run.run_settings import GateAnswer

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
    """What `--skip-gates` answers: the first option, or the default of each question."""
    from failwell.workflow.run.run_settings import GateAnswer

    if question.get("type") == "questions":
        defaults = {entry["id"]: entry.get("default") for entry in question["questions"]}
        return GateAnswer(decision="answered", by="--skip-gates", payload=defaults)
    return GateAnswer(decision=question["options"][0]["value"], by="--skip-gates")


class Terminal:
    """Asks one question after the other; drawing pauses meanwhile."""

    def __init__(self, display: "Progress | None") -> None:
        self._display = display
        self._turn: Any = None

    async def ask(self, gate: str, question: Mapping[str, Any]) -> "GateAnswer | None":
        """Ask the question of a gate; `None` when the input has ended."""
        from asyncio import Lock

        self._turn = self._turn or Lock()
        async with self._turn:
            if self._display is None:
                return await self._ask(gate, question)
            self._display.pause()
            try:
                return await self._ask(gate, question)
            finally:
                self._display.resume()

    async def _ask(self, gate: str, question: Mapping[str, Any]) -> "GateAnswer | None":
        from failwell.workflow.run.run_settings import GateAnswer

        print_stderr(f"\n{quoted('? ', question.get('prompt') or gate)}")
        if question.get("type") == "questions":
            return await self._questions(question)
        options = question["options"]
        for number, option in enumerate(options, 1):
            print_stderr(f"  {number}. {one_line(option['label'])} ({one_line(option['value'])})")
        while True:
            line = await _line("choose: ")
            if line is None:
                return None
            option = _choice(line.strip(), options)
            if option is None:
                print_stderr(f"  write a number from 1 to {len(options)}, or a value")
                continue
            payload = None
            if option.get("prompt_for"):
                text = await _text(
                    f"{one_line(option['prompt_for'])}: ", several=bool(option.get("multiline"))
                )
                if text is None:
                    return None
                payload = {option["prompt_for"]: text}
            return GateAnswer(decision=option["value"], by=user_name(), payload=payload)

    async def _questions(self, question: Mapping[str, Any]) -> "GateAnswer | None":
        from failwell.workflow.run.run_settings import GateAnswer

        answers: dict[str, Any] = {}
        for item in question["questions"]:
            answer = await _ask_question(item)
            if answer is _END_OF_INPUT:
                return None
            answers[item["id"]] = answer
        return GateAnswer(decision="answered", by=user_name(), payload=answers)


_END_OF_INPUT = object()


def quoted(mark: str, text: object) -> str:
    """`text` after `mark`, each further line behind a bar, so that it cannot pose as options or as our own lines."""
    first, *rest = neutral(str(text)).split("\n")
    return "\n".join([f"{mark}{first}", *(f"{' ' * len(mark)}│ {line}" for line in rest)])


async def _ask_question(question: Mapping[str, Any]) -> Any:
    print_stderr(quoted("  ", question["text"]))
    if question.get("hint"):
        print_stderr(f"  ({one_line(question['hint'])})")
    choices = [str(choice) for choice in question.get("choices") or ()]
    for number, choice in enumerate(choices, 1):
        print_stderr(f"    {number}. {one_line(choice)}")
    default = question.get("default")
    while True:
        line = await _line(f"  [{one_line(str(default))}] " if default is not None else "  ")
        if line is None:
            return _END_OF_INPUT
        text = line.strip()
        if not text and default is not None:
            return default
        if text.isdecimal() and choices and 1 <= int(text) <= len(choices):
            return choices[int(text) - 1]
        if text and (not choices or text in choices or question.get("allow_free_text", True)):
            return text
        if not text and not question.get("required", True):
            return None
        print_stderr("  choose one of these" if choices else "  this needs an answer")


def _choice(text: str, options: list[dict[str, Any]]) -> dict[str, Any] | None:
    if text.isdecimal() and 1 <= int(text) <= len(options):
        return options[int(text) - 1]
    return next((option for option in options if option["value"] == text), None)


async def _text(prompt: str, *, several: bool) -> str | None:
    if not several:
        return await _line(prompt)
    print_stderr(f"{prompt}(end with a line that holds `{_END}` alone)")
    lines: list[str] = []
    while (line := await _line("")) is not None and line != _END:
        lines.append(line)
    return "\n".join(lines)


async def _line(prompt: str) -> str | None:
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
