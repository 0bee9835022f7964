"""What one rendering may use up: steps, and room for what it makes.

Both are counts, not clocks, so the same template over the same data always ends in the same way.
"""

from itertools import chain
from typing import Any, cast

from failwell.workflow.language.mistakes import Mistake, Sort

STEPS = 5_000_000
"""Steps of one rendering; a second or two of work."""
ROOM = 32 * 1024 * 1024
"""Characters of all texts that one rendering makes, those it throws away included."""
OUTPUT = 4 * 1024 * 1024
"""Characters of the text that comes out."""
DEEPEST_DATA = 256
"""How deep a value may be nested."""
MACROS = 40
"""Macros, parts and recursive loops inside one another."""
ITEM = 8
"""What an item of a list takes, in characters."""
WIDEST = 14_000
"""Bits of a whole number: as many digits as Python writes out."""


class Pair(tuple[Any, ...]):
    """A group of `groupby`: a tuple whose two parts have names."""

    __slots__ = ()


class Budget:
    """Counts down. Nothing is ever given back."""

    __slots__ = ("depth", "room", "steps")

    def __init__(self, steps: int = STEPS, room: int = ROOM) -> None:
        self.steps = steps
        self.room = room
        self.depth = 0

    def step(self, count: int) -> None:
        """Use `count` steps."""
        self.steps -= count
        if self.steps < 0:
            raise Mistake(Sort.STEPS)

    def take(self, size: int) -> None:
        """Use room for `size` characters."""
        self.room -= size
        if self.room < 0:
            raise Mistake(Sort.MEMORY)

    def text(self, made: str) -> str:
        """`made`, with its room taken."""
        self.take(len(made))
        return made

    def items(self, made: Any) -> Any:
        """`made`, a list or a mapping, with room taken for its items."""
        self.take(len(made) * ITEM + ITEM)
        self.step(len(made))
        return made

    def number(self, made: Any) -> Any:
        """`made`, if it is not a whole number of thousands of digits."""
        if type(made) is int and made.bit_length() > WIDEST:
            raise Mistake(Sort.MEMORY)
        return made

    def deeper(self) -> None:
        """Go into a macro, a part or a recursive loop."""
        self.depth += 1
        if self.depth > MACROS:
            raise Mistake(Sort.DEPTH)

    def weigh(self, value: Any) -> int:
        """Take room for `value` as if it were written out, each part as often as it occurs.

        Gives how many levels of indentation its parts have, all together.

        A template can nest one list into the next a few dozen times and so describe more than any
        machine holds. Counting before writing or comparing stops that, and costs less than the writing.
        """
        if type(value) not in _CONTAINERS:
            return 0
        room = self.room
        level: list[Any] = [value]
        spread = 0
        for depth in range(DEEPEST_DATA):
            below: list[Any] = []
            for one in level:
                room -= ITEM * len(one) + ITEM
                spread += depth * len(one) + 1
                for inner in chain(one, one.values()) if type(one) is dict else one:
                    kind = type(inner)
                    if kind is str:
                        room -= len(inner)
                    elif kind in _CONTAINERS:
                        below.append(inner)
                    elif kind is int:
                        room -= inner.bit_length() // 3
                    elif inner is not None and kind is not bool and kind is not float:
                        raise Mistake(Sort.RESULT)
                if room < 0:
                    raise Mistake(Sort.MEMORY)
            if not below:
                self.step((self.room - room) // ITEM)
                self.room = room
                return spread
            if len(below) * ITEM > room:
                raise Mistake(Sort.MEMORY)
            level = below
        raise Mistake(Sort.DEPTH)


_CONTAINERS = frozenset({list, dict, tuple, Pair})


def length(value: Any) -> int:
    """How many items or characters `value` has."""
    if isinstance(value, str | list | tuple | dict):
        return len(cast("str", value))
    raise Mistake(Sort.OPERATION)
