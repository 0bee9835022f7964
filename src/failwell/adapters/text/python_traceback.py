"""Read a Python traceback copied from a terminal, a log or a chat.

Understands chains, exception groups, notes, colours, markers under the source, Rich's boxes, log
prefixes, and the last line alone. It reads names, places and order; it decides nothing.
"""

import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from failwell.errors.lazy_regex import lazy_regex

Via = Literal["cause", "context"]


@dataclass(frozen=True, slots=True)
class TextFrame:
    """One line of the stack: where the program was."""

    file: str
    line: int
    function: str


@dataclass(slots=True, kw_only=True)
class TextError:
    """One printed exception, with those it was raised from and those it groups."""

    module: str = ""
    """As printed; empty for a builtin and for a class of the main script."""
    name: str = ""
    text: str = ""
    rest: list[str] = field(default_factory=list[str])
    """Lines below the first: the rest of a long message, then notes. Print does not tell them apart."""
    frames: list[TextFrame] = field(default_factory=list[TextFrame])
    below: "TextError | None" = None
    via: Via = "cause"
    """How it was raised from `below`."""
    members: list["TextError"] = field(default_factory=list["TextError"])

    @property
    def dotted(self) -> str:
        """Module and class as they are printed."""
        return f"{self.module}.{self.name}" if self.module else self.name


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    depth: int = 0
    opens_member: bool = False


_HEADER = "Traceback (most recent call last)"
_LINKS: dict[str, Via] = {
    "The above exception was the direct cause of the following exception:": "cause",
    "During handling of the above exception, another exception occurred:": "context",
}
_MOST_REST = 50
_LONGEST_LINE = 10_000
_DEEPEST = 32
"""Printing stops at ten levels of groups; a crafted text may not."""

_COLOUR = lazy_regex(r"\x1b\[[0-9;?]*[A-Za-z]")
_FRAME = lazy_regex(r'  File "(?P<file>[^"\n]*)", line (?P<line>\d{1,9})(?:, in (?P<function>.+?))?\s*$')
# Possessive, so that a long line of anything is walked once.
_NAME = r"(?:[^\W\d]\w*+|<locals>)(?:\.(?:[^\W\d]\w*+|<locals>))*+"
_RAISED = lazy_regex(rf"(?P<name>{_NAME})(?:: ?(?P<text>.*))?$")
_ALONE = lazy_regex(rf"(?:^|[\s\[\](>|:])(?P<name>{_NAME})(?:: (?P<text>.*))$")
_GROUP_HEADER = lazy_regex(rf"( *)\+ Exception Group {re.escape(_HEADER)}")
_MARGIN = lazy_regex(r"( *)\|(?: (.*)|)$")
_MEMBER = lazy_regex(r"( *)(\+-)?\+-{3,} (?:\d+|\.\.\.) -{3,}$")
_CLOSE = lazy_regex(r" *\+-{3,}$")
_LOG_LINE = lazy_regex(r"\W*(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\b)")
_BOX_FRAME = lazy_regex(r"[│|] (?P<file>\S.*?):(?P<line>\d+) in (?P<function>\S+)")
_SPEAKING_NAME = lazy_regex(
    r"[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Timeout|Group|Iteration|Fault)$"
)
_CAMEL_NAME = lazy_regex(r"[A-Z]\w*[a-z]\w*$")


def read_traceback(text: str) -> TextError | None:
    """The outermost exception in `text`, or `None` when no line of it names one.

    Of several unrelated tracebacks the last is read: in a log it is the one that ended things.
    """
    lines = list(_unprefixed([_COLOUR.sub("", line[:_LONGEST_LINE]) for line in text.splitlines()]))
    return _chain(list(_with_margins(lines))) or _last_named(lines)


def _chain(lines: list[_Line], depth: int = 0) -> TextError | None:
    """The last exception of one level of indentation, linked to those it was raised from."""
    level = _Level(depth)
    for line in lines:
        level.take(line)
    level.close_members()
    return level.finished


class _Level:
    """Reads the exceptions of one level of indentation, line by line."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.finished: TextError | None = None
        # A member of a group may be printed without a stack, so its first line may name it already.
        self.open: TextError | None = TextError() if depth else None
        self.link: Via | None = None
        self.bare: TextError | None = None
        """What the last line named, when there was no stack above it."""
        self.quiet = False
        self.inner: list[_Line] = []

    def take(self, line: _Line) -> None:
        """Take the next line; deeper ones are kept for the members they belong to."""
        if line.depth > self.depth or line.opens_member:
            self.inner.append(line)
            return
        self.close_members()
        frame = _FRAME.match(line.text)
        if line.text.strip() in _LINKS:
            self.link = _LINKS[line.text.strip()]
            self.finished = self.finished or self.bare
            self.open = TextError()
        elif _HEADER in line.text:
            self.open = TextError()
        elif frame is not None:
            self.open = self.open or TextError()
            self.open.frames.append(TextFrame(frame["file"], int(frame["line"]), frame["function"] or ""))
        elif self.open is not None:
            self._name(self.open, line.text)
        else:
            self._continue(line.text)

    def close_members(self) -> None:
        """Give the exception above what was collected below it."""
        if self.inner and self.finished is not None and self.depth < _DEEPEST:
            self.finished.members = _members(self.inner)
            self.quiet = True
        self.inner = []

    def _name(self, error: TextError, text: str) -> None:
        raised = None if text.startswith("  ") else _RAISED.match(text)
        if raised is None:
            return
        _name(error, raised["name"], raised["text"])
        if self.link is not None:
            error.below, error.via = self.finished, self.link
        self.finished, self.open, self.link, self.quiet = error, None, None, False

    def _continue(self, text: str) -> None:
        """Below an exception's line: more of its message, its notes, or other people's lines."""
        if self.finished is None:
            raised = _RAISED.match(text)
            if raised is not None and _names_an_exception(raised["name"]):
                self.bare = TextError()
                _name(self.bare, raised["name"], raised["text"])
            return
        self.quiet = self.quiet or not text.strip() or _LOG_LINE.match(text) is not None
        if not self.quiet and len(self.finished.rest) < _MOST_REST:
            self.finished.rest.append(text)


def _members(lines: list[_Line]) -> list[TextError]:
    """One exception for each part of a group that is marked as a member."""
    parts: list[list[_Line]] = []
    depth = lines[0].depth
    for line in lines:
        if line.opens_member and line.depth == depth:
            parts.append([])
        elif parts:
            parts[-1].append(line)
    chains = (_chain(part, depth) for part in parts)
    return [member for member in chains if member is not None]


def _with_margins(lines: list[str]) -> Iterator[_Line]:
    """Each line with the depth of the group it stands in, its margin taken off."""
    depth, closed = 0, True
    for line in lines:
        if (header := _GROUP_HEADER.match(line)) is not None:
            depth, closed = len(header[1]) // 2, False
            # The group itself belongs to the level it was raised at.
            yield _Line(_HEADER)
        elif not depth:
            yield _Line(line)
        elif (member := _MEMBER.match(line)) is not None:
            depth = len(member[1]) // 2 + (1 if member[2] else 0)
            closed = False
            yield _Line("", depth - 1, opens_member=True)
        elif (margin := _MARGIN.match(line)) is not None:
            depth, closed = len(margin[1]) // 2, False
            yield _Line(margin[2] or "", max(depth - 1, 0))
        elif _CLOSE.match(line) is not None:
            closed = True
        elif closed or line.strip() in _LINKS or _HEADER in line:
            depth = 0
            yield _Line(line)
        else:
            # Python 3.11 prints the later lines of a message without their margin.
            yield _Line(line, max(depth - 1, 0))


def _unprefixed(lines: list[str]) -> Iterator[str]:
    """The lines without what a logger, a container or a mail program put in front of them."""
    prefix: re.Pattern[str] | None = None
    boxed = False
    for number, line in enumerate(lines):
        start = line.find(_HEADER)
        if "╭" in line and start >= 0:
            boxed = True
            yield f"{_HEADER}:"
            continue
        if boxed:
            boxed = not line.lstrip().startswith("╰")
            frame = _BOX_FRAME.match(line.lstrip())
            if frame is not None:
                yield f'  File "{frame["file"]}", line {frame["line"]}, in {frame["function"]}'
            continue
        if prefix is None and start > 0 and not _margin_only(line[:start]):
            before = line[:start].removesuffix("  + Exception Group ")
            after = lines[number + 1] if number + 1 < len(lines) else ""
            pattern = re.compile(re.sub(r"\d+", r"\\d+", re.escape(before)))
            if pattern.match(after) is not None:
                prefix = pattern
            else:
                line = line[len(before) :]  # noqa: PLW2901  (only the header has it)
        if prefix is not None:
            # A line that lost its trailing blanks has lost the end of the prefix too.
            cut = prefix.match(line) or prefix.match(f"{line} ")
            yield line[cut.end() :] if cut is not None else line
        else:
            yield line


def _margin_only(before: str) -> bool:
    return re.fullmatch(r"(?: +[+|] (?:Exception Group )?)", before) is not None


def _last_named(lines: list[str]) -> TextError | None:
    """What the last line that names an exception and says something names."""
    for line in reversed(lines):
        for pattern in (_ALONE, _RAISED):
            match = pattern.search(line) if pattern is _ALONE else pattern.match(line.strip())
            if match is not None and _names_an_exception(match["name"]):
                error = TextError()
                _name(error, match["name"], match["text"])
                return error
    return None


def _names_an_exception(name: str) -> bool:
    """Whether a word of running text is the name of an exception rather than of anything else."""
    module, _, last = name.rpartition(".")
    if not module and isinstance(getattr(builtins, last, None), type):
        return issubclass(getattr(builtins, last), BaseException)
    if _SPEAKING_NAME.match(last) and last not in {"Error", "Warning", "Exception", "Timeout", "Group"}:
        return True
    if not module or not module[0].islower() or not all(_is_part(part) for part in module.split(".")):
        return False
    return last == "Error" or _CAMEL_NAME.match(last) is not None


def _is_part(part: str) -> bool:
    """Whether a part of a dotted name is a module or a class. A part of a token is neither: its letters are mixed."""
    return part.islower() or part[:1].isupper()


def _name(error: TextError, printed: str, text: str | None) -> None:
    """Split `pkg.module.Outer.<locals>.Name` into the module and the class's own name."""
    *before, error.name = printed.split(".")
    module: list[str] = []
    for part in before:
        if part == "<locals>":
            # What stands before it is a function, and its module is not printed.
            module = module[:-1]
            break
        if part[0].isupper():
            break
        module.append(part)
    error.module = ".".join(module)
    error.text = text or ""
