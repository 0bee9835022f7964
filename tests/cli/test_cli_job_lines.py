"""What a capability prints, in `jobs show` and `jobs tail`; and what of its secrets a screen shows: nothing."""

import json
from pathlib import Path

from tests.cli.job_place import Place, finish, read_until

TALKER = """
import logging, os, sys, time

class Talker:
    def execute(self, path=None):
        print("to stdout")
        print("to stderr", file=sys.stderr)
        logging.getLogger("talker").warning("to the log")
        print("\\x1b[31mred")
        while path and not os.path.exists(path):
            time.sleep(0.005)
        print("the end")

    def much(self, lines):
        for number in range(lines):
            print(f"line {number}")

    def twice(self, path):
        from failwell.capability import CapabilityTransientError
        print("first" if not os.path.exists(path) else "second")
        if not os.path.exists(path):
            open(path, "w").close()
            raise CapabilityTransientError("later", retry_after_seconds=0.01)

    def forge(self):
        logging.getLogger("talker").warning("first\\n\\nstatus       failed\\nresult       9")

    def word(self, given=None):
        return {"the word": os.environ["ITS_WORD"]}
"""


def _place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    (tmp_path / "talking.py").write_text(TALKER)
    (tmp_path / "talker.toml").write_text(
        'name = "talker"\nobject = "talking:Talker"\n[env]\nITS_WORD = { secret = true }\n'
    )
    assert made("capabilities", "add", str(tmp_path / "talker.toml")).code == 0
    return made


def test_show_ends_with_what_the_job_printed(tmp_path: Path) -> None:
    place = _place(tmp_path)
    place("jobs", "submit", "talker", "--wait")

    shown = place("jobs", "show", "last").out
    as_json = place("jobs", "show", "last", "--json").data
    as_markdown = place("jobs", "show", "last", "--format", "markdown").out

    printed = shown.partition("\nprinted\n")[2].split("\n\n")[0].splitlines()
    assert [line.split("  ", 2)[2] for line in printed][:3] == [
        "to stdout",
        "stderr: to stderr",
        "warning: to the log",
    ]
    assert printed[-1].endswith("the end")
    assert "\x1b" not in shown
    assert [(one["n"], one["stream"], one["text"]) for one in as_json["lines"]][:2] == [
        (1, "stdout", "to stdout"),
        (2, "stderr", "to stderr"),
    ]
    assert as_json["lines"][2]["logger"] == "talker"
    assert "## printed\n\n```text\n" in as_markdown


def test_a_log_record_of_several_lines_looks_like_no_line_of_the_record_of_a_job(tmp_path: Path) -> None:
    place = _place(tmp_path)
    place("jobs", "submit", "talker", "--action", "forge", "--wait")

    for command in (("show", "last"), ("logs", "last"), ("tail", "last")):
        lines = place("jobs", *command).out.splitlines()

        assert any(line.endswith("| status       failed") for line in lines), command
        assert not any(line.startswith(("status       failed", "result       9")) for line in lines), command


def test_of_many_lines_the_last_are_shown_with_how_many_there_were(tmp_path: Path) -> None:
    place = _place(tmp_path)
    place("jobs", "submit", "talker", "--action", "much", "lines=300", "--wait")

    shown = place("jobs", "show", "last").out

    assert "printed (the last 40 of 300 lines)" in shown
    assert "line 299" in shown
    assert "line 259" not in shown


def test_tail_prints_lines_while_the_job_runs_and_before_it_is_over(tmp_path: Path) -> None:
    place = _place(tmp_path)
    go = place.path("go")
    with place.start("workers", "run") as host:
        read_until(host.stderr, "runs the jobs of")
        job = place("jobs", "submit", "talker", f"path={go}", "--json").data["id"]
        with place.start("jobs", "tail", job, "--json") as tail:
            first = json.loads(read_until(tail.stdout, '"line"'))
            go.touch()
            rest, _ = finish(tail)
        host.terminate()
        finish(host)

    told = [json.loads(line) for line in rest.splitlines()]
    said = [one["data"]["text"] for one in [first, *told] if one["type"] == "line"]
    assert said == ["to stdout", "to stderr", "to the log", "\x1b[31mred", "the end"]
    assert told[-1]["type"] == "completed"


def test_tail_prints_the_lines_of_each_attempt_between_its_start_and_its_end(tmp_path: Path) -> None:
    place = _place(tmp_path)
    place("jobs", "submit", "talker", "--action", "twice", f"path={place.path('began')}", "--wait")
    job = place("jobs", "show", "last", "--json").data["id"]

    rows = [json.loads(line) for line in place("jobs", "tail", job, "--json").out.splitlines()]

    order = [row["data"]["text"] if row["type"] == "line" else row["type"] for row in rows]
    assert order == ["submitted", "started", "first", "retrying", "started", "second", "completed"]
    times = [round(row["at"], 3) for row in rows]
    assert times == sorted(times)


def test_a_secret_is_masked_on_the_screen_and_stays_in_the_data(tmp_path: Path) -> None:
    place = _place(tmp_path)
    secret = "plain words of mine"
    assert place("capabilities", "secret", "talker", "ITS_WORD", given=secret).code == 0
    place("jobs", "submit", "talker", "--action", "word", f"given={secret}", "--wait")

    shown = place("jobs", "show", "last").out
    data = place("jobs", "show", "last", "--json").data

    assert secret not in shown
    assert shown.count("[redacted]") == 2
    assert data["result"] == {"the word": secret}
