"""What a job prints, listings that are watched, and tables that fit the terminal."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from failwell.cli.listing import text_table
from tests.cli.job_place import Place, finish, read_until
from tests.cli.running import environment

TELLER = """
import logging, os, sys, time
from failwell.capability import progress

def tell(path=None):
    print("first line")
    print("on stderr", file=sys.stderr)
    logging.getLogger("teller").warning("logged")
    progress(0.25, "a quarter \\x1b[31mred")
    while path and not os.path.exists(path):
        time.sleep(0.005)
    print("last line")
    return "told"
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path, "echo")
    (tmp_path / "teller.py").write_text(TELLER)
    (tmp_path / "tell.toml").write_text('name = "tell"\nobject = "teller:tell"\n')
    assert place("capabilities", "add", str(tmp_path / "tell.toml")).code == 0
    return place


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, leader: int, process: "subprocess.Popen[bytes]") -> None:
        self._leader = leader
        self.process = process
        self.text = ""

    def read(self) -> bool:
        """Read what there is; whether the command may print more."""
        try:
            piece = os.read(self._leader, 65_536)
        except OSError:
            return False
        self.text += piece.decode(errors="replace")
        return bool(piece)

    def until(self, holds: Callable[[str], bool]) -> None:
        while not holds(self.text):
            assert self.read(), self.text

    def rest(self) -> str:
        while self.read():
            continue
        self.process.wait(25)
        return self.text


@contextmanager
def on_terminal(place: Place, *arguments: str, columns: int = 80) -> Generator[Terminal]:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "failwell", *arguments, "--store", str(place.folder / "state")],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment(TERM="xterm", COLUMNS=str(columns)),
        start_new_session=True,
    )
    os.close(follower)
    with process:
        try:
            yield Terminal(leader, process)
        finally:
            process.kill()
            os.close(leader)


def test_what_a_job_printed_is_shown_by_stream_and_number(place: Place) -> None:
    place("jobs", "submit", "tell", "--wait")
    silent = place("jobs", "submit", "echo").out.strip()

    job = place("jobs", "list", "--json").data[1]["id"]
    whole = place("jobs", "logs", job)
    errors = place("jobs", "logs", job, "--stream", "stderr", "--json")
    last = place("jobs", "logs", job, "-n", "1", "--format", "markdown")
    nothing = place("jobs", "logs", silent)
    wrong = place("jobs", "logs", job, "--follow", "-n", "1")

    texts = [line.split("Z  ", 1)[1] for line in whole.out.splitlines()]
    assert sorted(texts) == sorted(["first line", "stderr: on stderr", "warning: logged", "last line"])
    assert [json.loads(line)["text"] for line in errors.out.splitlines()] == ["on stderr"]
    assert last.out == "- stdout: `last line`\n"
    assert (nothing.code, nothing.out) == (0, "")
    assert "has printed nothing" in nothing.err
    assert (wrong.code, place("jobs", "logs", "none").code) == (2, 2)


def test_logs_follow_a_job_to_its_end(place: Place) -> None:
    go = place.folder / "go"
    job = place("jobs", "submit", "tell", f"path={go}").out.strip()
    with place.start("jobs", "logs", job, "--follow", "--json") as logs, place.start("workers", "run"):
        first = json.loads(read_until(logs.stdout, "first line"))
        go.touch()
        rest, _ = finish(logs)

    assert (first["stream"], first["text"]) == ("stdout", "first line")
    assert json.loads(rest.splitlines()[-1])["text"] == "last line"
    assert logs.returncode == 0


def test_a_watched_list_prints_a_line_for_each_change_where_there_is_no_terminal(place: Place) -> None:
    first = place("jobs", "submit", "echo", "value=1").out.strip()
    with (
        place.start("jobs", "list", "--watch", "--json") as watched,
        place.start("jobs", "stats", "--watch") as stats,
    ):
        before = json.loads(read_until(watched.stdout, first))
        read_until(stats.stdout, "pending")
        place("workers", "run", "--until-empty")
        after = json.loads(read_until(watched.stdout, "completed"))
        counted = read_until(stats.stdout, "completed")
        second = place("jobs", "submit", "echo", "value=2").out.strip()
        new = json.loads(read_until(watched.stdout, second))
        watched.send_signal(signal.SIGINT)
        watched.wait(25)

    assert (before["id"], before["status"]) == (first, "pending")
    assert (after["id"], after["status"]) == (first, "completed")
    assert "echo  1" in counted
    assert new["status"] == "pending"
    assert watched.returncode == 130


def test_a_watched_list_is_drawn_again_and_gives_the_terminal_back(place: Place) -> None:
    place("jobs", "submit", "echo", "value=1")
    with on_terminal(place, "jobs", "list", "--watch", columns=60) as screen:
        screen.until(lambda text: "pending" in text)
        place("workers", "run", "--until-empty")
        screen.until(lambda text: "completed" in text)
        screen.process.send_signal(signal.SIGINT)
        text = screen.rest()

    assert "\x1b[?1049h" in text
    assert text.rstrip().endswith("\x1b[?1049l")
    assert "\x1b[?25h" in text
    assert screen.process.returncode == 130


def test_a_wait_without_a_terminal_draws_nothing(place: Place) -> None:
    done = place("jobs", "submit", "tell", "--wait")

    assert done.out == '"told"\n'
    assert "%" not in done.err
    assert "\x1b" not in done.err


def test_a_listing_fits_the_terminal(place: Place) -> None:
    for number in range(3):
        place("jobs", "submit", "tell", f"path={place.folder}/{number}", "--at", "2100-01-01")
    piped = place("jobs", "list").out.splitlines()
    ids = [line.split()[0] for line in piped[1:]]

    for columns in (40, 60, 200):
        with on_terminal(place, "jobs", "list", "--color", "never", columns=columns) as screen:
            lines = screen.rest().splitlines()
        assert max(map(len, lines)) <= columns
        assert [line.split()[0] for line in lines[1:]] == ids
        assert ("starts 2100-01-01" in "".join(lines)) == (columns >= 60)
    assert "attempt" in piped[0]


def test_a_table_leaves_out_what_it_can_do_without_and_never_cuts_the_first_column() -> None:
    args = Namespace(color="never", format="text")
    rows = [("0123456789", "running", "a long text that says what happened")]
    columns = ("id", "status", "what")

    for width in range(12, 80):
        lines = text_table(columns, rows, args, width=width, optional=("status",))
        assert lines[1].startswith("0123456789")
        assert max(map(len, lines)) <= width
    assert "running" not in text_table(columns, rows, args, width=40, optional=("status",))[1]
    assert text_table(columns, rows, args, width=40)[1].endswith("…")
    assert text_table(columns, rows, args)[1].endswith("happened")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back_too(place: Place, number: signal.Signals) -> None:
    with on_terminal(place, "jobs", "stats", "--watch") as terminal:
        terminal.until(lambda text: "\x1b[?1049h" in text and "status" in text.lower())
        terminal.process.send_signal(number)
        text = terminal.rest()

    assert "\x1b[?1049l" in text
    assert terminal.process.returncode == 128 + number
