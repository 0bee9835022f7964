"""`failwell chat`, or another command, in a process of its own, at a pseudo-terminal."""

import os
import pty
import select
import signal
import sys
import termios
from pathlib import Path
from time import monotonic

from tests.cli.running import environment

LONGEST = 60.0


class Terminal:
    """A conversation that a test types."""

    def __init__(self, folder: Path, *arguments: str, command: str = "chat") -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            _keep_typed_lines()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            words = [sys.executable, "-m", "failwell", command, *arguments, "--store", str(folder / "state")]
            os.execve(sys.executable, words, environment(TERM="dumb"))
        self.seen = ""
        self.matched = ""
        """What was expected last, and came."""

    def expect(self, text: str) -> str:
        """What was printed up to `text`."""
        return self.expect_one_of(text)

    def expect_one_of(self, *texts: str) -> str:
        """What was printed up to the first of `texts`."""
        while not any(text in self.seen for text in texts):
            assert self._read(LONGEST), self.seen
        first = min((text for text in texts if text in self.seen), key=self.seen.index)
        before, self.matched, self.seen = self.seen.partition(first)
        return before

    def watch(self, seconds: float) -> None:
        """Read what is printed for some time."""
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            if not self._read(left):
                return

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.descriptor], [], [], seconds)
        if not ready:
            return False
        try:
            content = os.read(self.descriptor, 65_536)
        except OSError:
            return False
        self.seen += content.decode("utf-8", "replace")
        return bool(content)

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self.descriptor, text.encode())

    def end(self) -> int:
        """The exit code, once the process is gone."""
        try:
            while os.read(self.descriptor, 65_536):
                pass
        except OSError:
            pass
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _keep_typed_lines() -> None:
    """Let Ctrl-C leave what was typed before it. A terminal throws away what nobody has read yet."""
    modes = termios.tcgetattr(0)
    modes[3] |= termios.NOFLSH
    termios.tcsetattr(0, termios.TCSANOW, modes)
