"""One explanation, and the way it is written down in the modules beside this one.

The source is wrapped for reading; `explain` unwraps it, so that a terminal or a page can
wrap it again to its own width.
"""

import re
from dataclasses import dataclass
from inspect import cleandoc
from typing import Literal

Language = Literal["python", "yaml", "sh"]

_STEP = re.compile(r"\d+\. ")


@dataclass(frozen=True, slots=True)
class Explanation:
    """The long words for one kind."""

    cause: str
    """When it happens, and how it is told apart from its neighbours."""
    remedy: str
    """What the person in charge does about it: numbered steps, one per line."""
    example: str
    """Code alone, that raises it, routes it or shows it."""
    language: Language = "python"
    """What the example is written in."""


def explain(cause: str, remedy: str, example: str, language: Language = "python") -> Explanation:
    """An `Explanation` from indented, wrapped source text."""
    return Explanation(
        cause=" ".join(cause.split()), remedy=_steps(remedy), example=cleandoc(example), language=language
    )


def _steps(text: str) -> str:
    steps: list[str] = []
    for line in cleandoc(text).splitlines():
        if steps and not _STEP.match(line):
            steps[-1] += f" {line.strip()}"
        else:
            steps.append(line.strip())
    return "\n".join(steps)
