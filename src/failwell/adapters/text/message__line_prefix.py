"""Takes off what a program that passes on the output of others puts before each line: journald, torchrun, Docker Compose."""

import re

_FROM_OTHERS = re.compile(
    r"\[(?:default|rank)?\d{1,4}\]:? ?|[\w.-]{1,60} {1,30}\| ?|#\d{1,4} \d{1,6}\.\d{1,4} "
)
_WITH_A_TIME = re.compile(
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [^\s:]{1,80} [^\s:]{1,80}: ?|\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]{2,12}(?:Z|[+-]\d\d:?\d\d) "
)
_FEWEST, _MOST = 2, 4_000
_TRACEBACK = "Traceback (most recent call last)"


def without_prefixes(text: str) -> str:
    """The text without what stands before every line. Times are taken from the lines of a traceback only: elsewhere they tell records apart."""
    if "\n" not in text:
        return text
    lines = text.split("\n", _MOST)
    for prefix in (_FROM_OTHERS, _WITH_A_TIME) if _TRACEBACK in text else (_FROM_OTHERS,):
        matches = [prefix.match(line) for line in lines]
        shown = [match for match, line in zip(matches, lines, strict=True) if line.strip()]
        if len(shown) >= _FEWEST and None not in shown:
            return "\n".join(
                line if match is None else line[match.end() :]
                for match, line in zip(matches, lines, strict=True)
            )
    return text
