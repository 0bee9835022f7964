"""Unique ids that sort by time: the milliseconds since 1970, then random digits, both in hexadecimal."""

import os
import time
from collections.abc import Callable

_AT_ONCE = 64


def time_ids(digits: int) -> Callable[[], str]:
    """A function that makes ids with so many random digits, an even number. Threads may share it."""
    random_parts: list[str] = []
    if hasattr(os, "register_at_fork"):
        # A child process must not use the parts that its parent uses.
        os.register_at_fork(after_in_child=random_parts.clear)

    def new_id() -> str:
        try:
            # Taking one off the end is a single step, so no two threads get the same.
            random_part = random_parts.pop()
        except IndexError:
            # To ask the system for each id would take longer than all else that is done for it.
            text = os.urandom(_AT_ONCE * digits // 2).hex()
            random_part, *rest = [text[at : at + digits] for at in range(0, len(text), digits)]
            random_parts.extend(rest)
        return f"{time.time_ns() // 1_000_000:011x}{random_part}"

    return new_id
