"""What a job printed and logged, for `jobs show` and `jobs tail`."""

from typing import TYPE_CHECKING, Any

from failwell.apps.cli.times import clock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from failwell.jobs.output import OutputLine

SHOWN = 40
"""Lines that are shown to people; programs ask for JSON and get all that are kept."""


def output_block(lines: "Sequence[OutputLine]", form: str) -> list[str]:
    """The last lines of a job, below the rest of what is shown of it."""
    if not lines:
        return []
    last = [line_text(one) for one in lines[-SHOWN:]]
    hidden = lines[-1].n - len(last)
    title = "printed" if hidden <= 0 else f"printed (the last {len(last)} of {lines[-1].n} lines)"
    if form == "markdown":
        from failwell.delivery.agent_output import fenced

        return ["", f"## {title}", "", fenced("\n".join(last))]
    return ["", title, *(f"  {one}" for one in last)]


def line_text(line: "OutputLine") -> str:
    """One line for people: what was said, and where if not on the standard output."""
    from failwell.delivery.plain import neutral

    source = line.level.lower() if line.stream == "log" else line.stream
    mark = "" if line.stream == "stdout" else f"{source}: "
    return f"{clock(line.at)}  {mark}{neutral(line.text)}".rstrip()


def line_json(line: "OutputLine") -> dict[str, Any]:
    """One line for programs."""
    told: dict[str, Any] = {"n": line.n, "at": line.at, "stream": line.stream, "text": line.text}
    if line.stream == "log":
        told |= {"level": line.level, "logger": line.logger}
    return told


class OutputFollower:
    """The lines of jobs as they come, each once."""

    def __init__(self, folder: "Path") -> None:
        self._folder = folder
        self._last: dict[str, int] = {}

    def new(self, job: str) -> "list[OutputLine]":
        """Lines of a job that were not told before."""
        from failwell.jobs.output import read_lines

        found = read_lines(self._folder, job, self._last.get(job, 0))
        if found:
            self._last[job] = found[-1].n
        return found
