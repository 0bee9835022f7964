"""The exit codes: what a shell, a scheduler or an agent may branch on."""

from enum import IntEnum


class Exit(IntEnum):
    """How a command ended. Every command uses these and no other numbers."""

    DONE = 0
    """The command did what it was asked to do."""
    FAILED = 1
    """The work failed, or the program itself did; the error says which and what to do."""
    ASKED_WRONGLY = 2
    """Something the caller gave is wrong: an option, a file, its content, or the configuration."""
    HALTED = 3
    """A run stopped on a typed error that none of its routes took."""
    WAITING = 4
    """A run waits, for a person's answer or for a time, and can go on after it."""
    HUNG_UP = 129
    """Its terminal went away before it was done."""
    INTERRUPTED = 130
    """It was interrupted from the keyboard."""
    PIPE_CLOSED = 141
    """Whoever read the output stopped reading, as `head` does. Nothing went wrong."""
    TERMINATED = 143
    """It was asked to end, by SIGTERM, before it was done."""
