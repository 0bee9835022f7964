"""The exit codes that a shell, a scheduler or an agent may branch on."""

from enum import IntEnum


class Exit(IntEnum):
    """How a command ended. Every command uses these and no other numbers."""

    DONE = 0
    """The command succeeded."""
    FAILED = 1
    """The work failed, or the program itself did; the error says which and what to do."""
    INVALID_USAGE = 2
    """Invalid usage, input or configuration: an option, a file, its content, or the configuration."""
    HALTED = 3
    """A run stopped on a typed error that none of its routes handled."""
    WAITING = 4
    """A run waits for a person's answer or for a time, and can be resumed after it."""
    HUNG_UP = 129
    """The terminal was closed before the command was done."""
    INTERRUPTED = 130
    """It was interrupted from the keyboard."""
    PIPE_CLOSED = 141
    """The reader of the output closed it, as `head` does. This is no failure."""
    TERMINATED = 143
    """SIGTERM ended it before it was done."""

    @classmethod
    def of_signal(cls, number: int) -> "Exit":
        """The code of a command that a signal ended, as a shell counts it."""
        return cls(128 + number)
