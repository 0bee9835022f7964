"""Where an exception was raised: types, files, lines and functions, without any text of a foreign exception.

Most failures of a program come from a few places again and again, so what was composed for a stack is looked up
the next time. Everything that is returned is masked and cut. Call `refresh` first.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from failwell.errors.causes import (
    DEEPEST,
    MOST_LINKS,
    Link,
    below,
    full_name,
    members,
    traceback_of,
)
from failwell.errors.fault import is_fault
from failwell.errors.foreign_code import is_installed_file
from failwell.errors.foreign_objects import safe_call, safe_getattr
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.redact import cut, masked, masked_stacks

TRACEBACK_CAP = 12_000
WITHHELD = "[withheld]"
"""Stands in a traceback where the text of a foreign exception would be."""
HEAD_LINE = "Traceback (most recent call last):\n"
LONGEST_NAME = 300
_PLACE = lazy_regex(r' {2}File "([^"\n]*)", line (\d+), in ([^\n]*)')
_JOINS = {
    "cause": "\nThe above exception was the direct cause of the following exception:\n\n",
    "context": "\nDuring handling of the above exception, another exception occurred:\n\n",
}
_MORE_CAUSES = "… [more causes cut]\n"
_FRAMES_SHOWN = 40
_FRAMES_IN_ALL = 96
_FEWEST_FRAMES = 4
_MOST_FRAMES = 2_000
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_OURSELVES = os.path.dirname(os.path.dirname(__file__)) + os.sep
_INSTALLED = os.path.join(sys.prefix, "lib") + os.sep
_MOST_SITES = 1_024
_LONGEST_KNOWN = 64
"""Frames of the longest stack for which something is stored."""

Frames = tuple[tuple[str, str, str, int], ...]
"""The frames of a traceback, the outermost first: file, function, qualified function and line of each."""
Block = Callable[[BaseException, int], str]
"""Prints one exception, with at most so many frames."""
_sites: dict[Frames, str] = {}


def frames_of(error: BaseException) -> Frames:
    """The frames that `error` passed through."""
    trace = traceback_of(error)
    if trace is None:
        return ()
    frames: list[tuple[str, str, str, int]] = []
    while trace is not None and len(frames) < _MOST_FRAMES:
        code = trace.tb_frame.f_code
        frames.append((code.co_filename, code.co_name, code.co_qualname, trace.tb_lineno))
        trace = trace.tb_next
    return tuple(frames)


def site(frames: Frames) -> str:
    """The deepest function of the application's own among `frames`, as `file:function`."""
    known = _sites.get(frames)
    if known is None:
        known = _deepest(frames)
        if len(frames) <= _LONGEST_KNOWN:
            if len(_sites) >= _MOST_SITES:
                _sites.clear()
            _sites[frames] = known
    return known


def _deepest(frames: Frames) -> str:
    own = (frame for frame in reversed(frames) if is_own_file(frame[0]))
    frame = next(own, frames[-1] if frames else None)
    if frame is None:
        return ""
    stem = frame[0].replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
    return f"{stem}:{frame[2]}"


def is_own_file(path: str) -> bool:
    """Whether a frame of a stack is in a file of the application, and not of Python, of an installed library or of failwell."""
    if is_installed_file(path) or path.startswith("<frozen"):
        return False
    return not path.startswith((_LIBRARY, _OURSELVES, _INSTALLED))


def stack_text(error: BaseException, frames: Frames, causes: Sequence[Link], was_cut: bool) -> str | None:
    """The traceback of `error` and of the exceptions below it; `None` if none of them was raised.

    A fault of ours keeps its message, because that was written to be read.
    """
    if not causes:
        return cut(_block(error, frames, _FRAMES_SHOWN), TRACEBACK_CAP) if frames else None

    if not frames and not _were_raised(causes):
        return None

    def block(link: BaseException, most: int) -> str:
        return _block(link, frames if link is error else frames_of(link), most)

    # Near the limit of recursion anything may raise.
    text = safe_call(chain_text, "", error, causes, was_cut, block)
    return cut(text, TRACEBACK_CAP) if "  File " in text else None


def _were_raised(causes: Sequence[Link]) -> bool:
    """Whether any of the causes has a traceback."""
    for link in causes:  # noqa: SIM110  (a generator takes twice as long)
        if traceback_of(link.error) is not None:
            return True
    return False


def chain_text(error: BaseException, causes: Sequence[Link], was_cut: bool, block: Block) -> str:
    """The blocks of an exception, its causes above it and the members of a group below it, in Python's order."""
    # The more exceptions there are, the fewer frames each of them can show.
    most = max(_FEWEST_FRAMES, min(_FRAMES_SHOWN, _FRAMES_IN_ALL // (len(causes) + 1)))
    if "member" in [link.via for link in causes]:
        return _tree_text(error, block, most, {id(error)}, 1)
    text = block(error, most)
    for link in causes:
        text = f"{block(link.error, most)}{_JOINS[link.via]}{text}"
    return _MORE_CAUSES + text if was_cut else text


def _tree_text(error: BaseException, block: Block, most: int, seen: set[int], level: int) -> str:
    text = block(error, most)
    under = below(error)
    if under is not None and _is_new(under[0], seen, level):
        text = f"{_tree_text(under[0], block, most, seen, level + 1)}{_JOINS[under[1]]}{text}"
    elif under is not None:
        text = _MORE_CAUSES + text
    for member in members(error):
        if _is_new(member, seen, level):
            lines = _tree_text(member, block, most, seen, level + 1).splitlines(keepends=True)
            text += "".join([f"  | {line}" for line in lines])
    return text


def _is_new(error: BaseException, seen: set[int], level: int) -> bool:
    if id(error) in seen or level > DEEPEST or len(seen) > MOST_LINKS:
        return False
    seen.add(id(error))
    return True


def _block(error: BaseException, frames: Frames, most: int) -> str:
    name, ours = full_name(error), is_fault(error)
    text = _stack(frames, name, most)
    own = one_sentence(error) if ours else WITHHELD
    if issubclass(type(error), SyntaxError):
        own += _syntax_place(error)
    return f"{text}: {own}\n" if own else f"{text}\n"


def _syntax_place(error: BaseException) -> str:
    """The place of a mistake of syntax, which no frame has."""
    file, line = safe_getattr(error, "filename"), safe_getattr(error, "lineno")
    # The name of a text that is no file is the program's to choose, as a message is.
    if type(file) is not str or type(line) is not int or not safe_call(os.path.isfile, None, file):
        return ""
    return masked(f" ({file[:LONGEST_NAME]}, line {line})").replace("\n", " ")


def one_sentence(fault: BaseException) -> str:
    """What a fault of ours says, masked, on one line."""
    # An author's `summary` may raise anything.
    return " ".join(masked(safe_call(str, "", fault), LONGEST_NAME).split())


def _stack(frames: Frames, name: str, most: int) -> str:
    """The frames of a traceback as Python prints them, without source lines, and the type below them."""
    stacks, key = masked_stacks(), (frames, name, most)
    text = stacks.get(key)
    if text is None:
        text = "".join(_lines(frames, most)) + masked(name)
        if len(frames) <= _LONGEST_KNOWN:
            stacks[key] = text
    return text


def _lines(frames: Frames, most: int) -> Iterator[str]:
    if frames:
        yield HEAD_LINE
    if len(frames) > most:
        # The outermost ones are the least telling.
        yield f"  … [{len(frames) - most} frames cut]\n"
    for (file, function, _, line), same in groupby(frames[-most:]):
        place = f'  File "{file[:LONGEST_NAME]}", line {line}, in {function[:LONGEST_NAME]}'
        yield masked(place).replace("\n", " ") + "\n"
        times = sum(1 for _ in same)
        if times > 1:
            yield f"  [Previous line repeated {times - 1} more times]\n"


def place_in(traceback: str) -> str | None:
    """Where a traceback of ours passed through the application last, as `file:line in function`."""
    own = traceback.partition("\n  | ")[0].rpartition("\n\n")[2]
    places = [(match[1], f"{match[1]}:{match[2]} in {match[3]}") for match in _PLACE.finditer(own)]
    ours = [place for file, place in places if is_own_file(file)]
    return next(reversed(ours or [place for _, place in places]), None)
