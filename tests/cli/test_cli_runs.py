"""`failwell runs`: what was run, how it stands, and what to do next."""

import io
import json
import os
import re
import stat
from contextlib import closing
from pathlib import Path
from time import time
from typing import Any

import pytest

from failwell.cli.main import main
from failwell.store.sqlite.run_store import SqliteStore
from tests.cli.running import failwell
from tests.store.building import a_fact, a_run, completed, failed

HOSTILE = "moved\n\x1b[31m| `x` <b>"
GATE: dict[str, Any] = {
    "path": "approve",
    "node": "approve",
    "type": "human_gate",
    "gate": "approve",
    "prompt": "Ship it?",
    "options": [{"label": "Yes", "value": "yes"}, {"label": "No", "value": "no"}],
}


def a_node(path: str, **more: Any) -> Any:
    return a_fact("node:started", path=path, node=path, type="script", visit=1, attempt=1, **more)


def a_broken(path: str, message: str = HOSTILE) -> Any:
    envelope: dict[str, Any] = {"kind": "external.git.drift", "message": message, "details": {}}
    return a_fact("node:failed", path=path, failure={"envelope": envelope})


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A journal with a run of each sort."""
    folder = tmp_path / "state"
    with closing(SqliteStore(folder)) as store:
        ended = [a_node("build"), a_broken("build"), failed()]
        a_run(store, "aa-failed", *ended, at=100.0, sources={"n.yaml": "x: 1"})
        a_run(store, "bb-waiting", a_fact("human_gate:paused", **GATE), at=101.0, workflow="ask")
        store.append("bb-waiting", [a_fact("run:paused", gates=["approve"])])
        a_run(store, "bc-parked", a_fact("run:paused", gates=[], blocked_until=500.0), at=102.0)
        a_run(store, "cc-completed", completed(), at=103.0)
        a_run(store, "dd-gone", a_node("fetch"), at=104.0)
    return folder


class Said:
    """What one command line answered."""

    def __init__(self, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._state = state
        self._capsys = capsys
        self.code = 0
        self.out = ""
        self.err = ""

    def __call__(self, *arguments: str) -> "Said":
        self.code = main(["runs", *arguments, "--store", str(self._state)])
        self.out, self.err = self._capsys.readouterr()
        return self

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def ask(state: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(state, capsys)


def test_the_list_is_an_array_of_objects_with_ids(ask: Said) -> None:
    said = ask("list", "--format", "json")

    assert [one["id"] for one in said.data] == [
        "dd-gone",
        "cc-completed",
        "bc-parked",
        "bb-waiting",
        "aa-failed",
    ]
    assert [one["status"] for one in said.data] == [
        "interrupted",
        "completed",
        "parked",
        "waiting",
        "failed",
    ]
    assert said.data[-1]["failure"] == {
        "kind": "external.git.drift",
        "message": "the tree has moved",
        "node": "build",
    }


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--status", "interrupted"], ["dd-gone"]),
        (["--status", "running"], []),
        (["--status", "failed", "--status", "completed"], ["cc-completed", "aa-failed"]),
        (["--workflow", "ask"], ["bb-waiting"]),
        (["--since", "1970-01-01T00:01:43Z"], ["dd-gone", "cc-completed"]),
        (["--since", "1h"], []),
        (["--limit", "1"], ["dd-gone"]),
        (["--limit", "1", "--status", "interrupted"], ["dd-gone"]),
        (["--limit", "0"], []),
    ],
)
def test_filters_narrow_the_list(ask: Said, filters: list[str], expected: list[str]) -> None:
    said = ask("list", "--json", *filters)

    assert [one["id"] for one in said.data] == expected


def test_a_run_with_a_living_process_is_running(ask: Said, state: Path) -> None:
    with closing(SqliteStore(state)) as store, store.lock("dd-gone"):
        said = ask("list", "--json", "--status", "running")

    assert [one["id"] for one in said.data] == ["dd-gone"]


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_the_list_is_a_table(ask: Said, format_: str) -> None:
    said = ask("--format", format_)

    assert [line.split()[0 if format_ == "text" else 1].strip("`") for line in said.out.splitlines()][-1] == (
        "aa-failed"
    )
    assert "external.git.drift in build" in said.out
    assert "1 gate pending" in said.out
    assert "until 1970" in said.out.replace("\\", "")


def test_where_nothing_was_ever_recorded_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = Said(tmp_path / "none", capsys)

    listed, told = ask("list", "--json").data, ask("list").err
    unknown = ask("show", "last").code

    assert (listed, told.strip(), unknown) == ([], "no runs are recorded yet", 2)
    assert not (tmp_path / "none").exists()


def test_the_environment_names_the_state_folder(state: Path) -> None:
    done = failwell("runs", "--json", env={"FAILWELL_STORE": str(state)})

    assert len(done.data) == 5


@pytest.mark.parametrize(("name", "found"), [("last", "dd-gone"), ("aa", "aa-failed"), ("cc-completed",) * 2])
def test_a_run_is_named_by_its_id_its_beginning_or_last(ask: Said, name: str, found: str) -> None:
    assert ask("show", name, "--json").data["id"] == found


def test_the_whole_id_wins_over_longer_ones_that_begin_so(ask: Said, state: Path) -> None:
    with closing(SqliteStore(state)) as store:
        a_run(store, "cc")

    assert ask("show", "cc", "--json").data["id"] == "cc"


def test_a_beginning_that_several_share_is_refused_with_all_of_them(ask: Said) -> None:
    said = ask("show", "b")

    assert said.code == 2
    assert "matches several runs" in said.err
    assert "`bc-parked` or `bb-waiting`" in said.err


@pytest.mark.acceptance("relavium 60")
@pytest.mark.parametrize("action", ["show", "tail", "export"])
def test_an_unknown_run_is_refused_with_those_that_are_near(ask: Said, action: str) -> None:
    said = ask(action, "aa-faield", "--error-format", "json")

    error = json.loads(said.err)
    assert (said.code, said.out) == (2, "")
    assert error["near"] == ["aa-failed"]
    assert "session.no_snapshot" in said.err
    assert "failwell runs list" in said.err


def test_a_failed_run_shows_its_nodes_its_failure_and_the_way_on(ask: Said, state: Path) -> None:
    said = ask("show", "aa", "--json").data

    assert said["nodes"][0]["id"] == "build"
    assert (said["nodes"][0]["status"], said["nodes"][0]["attempts"]) == ("failed", 1)
    assert said["failure"]["envelope"]["kind"] == "external.git.drift"
    assert [step["command"] for step in said["next"]] == [f"failwell resume aa-failed --store {state}"]


@pytest.mark.parametrize(
    ("run", "command"),
    [
        ("bb", "failwell gates answer bb-waiting approve yes"),
        ("bc", "failwell resume bc-parked"),
        ("dd", "failwell resume dd-gone"),
    ],
)
@pytest.mark.parametrize("format_", ["text", "markdown", "json"])
def test_whatever_rests_says_what_moves_it(ask: Said, run: str, command: str, format_: str) -> None:
    assert command in ask("show", run, "--format", format_).out


def test_a_run_whose_questions_are_answered_is_to_be_resumed(ask: Said, state: Path) -> None:
    with closing(SqliteStore(state)) as store:
        store.append("bb-waiting", [a_fact("human_gate:answered", path="approve", gate="approve")])

    assert "answered; resume it" in ask("list").out
    assert (
        ask("show", "bb", "--json").data["next"][0]["command"]
        == f"failwell resume bb-waiting --store {state}"
    )


def test_a_failure_of_a_known_kind_can_be_looked_up(ask: Said, state: Path) -> None:
    with closing(SqliteStore(state)) as store:
        a_run(store, "ee", failed(kind="provider.rate_limited"))

    assert "failwell explain provider.rate_limited" in ask("show", "ee").out


def test_a_completed_run_needs_nothing(ask: Said) -> None:
    assert ask("show", "cc", "--json").data["next"] == []


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_a_waiting_run_shows_the_question_and_its_answers(ask: Said, format_: str) -> None:
    said = ask("show", "bb", "--format", format_)

    assert "Ship it?" in said.out
    assert "yes, no" in said.out


@pytest.mark.parametrize("action", ["show", "tail"])
@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_what_nodes_said_cannot_act_on_whoever_reads_it(ask: Said, action: str, format_: str) -> None:
    said = ask(action, "aa", "--format", format_)

    assert "\x1b" not in said.out
    assert "moved" in said.out
    if format_ == "markdown":
        assert "<b>" not in said.out.replace("\\<b\\>", "")


def test_a_run_of_many_nodes_shows_the_telling_ones_first(ask: Said, state: Path) -> None:
    with closing(SqliteStore(state)) as store:
        many = [fact for n in range(80) for fact in (a_node(f"n{n}"), a_fact("node:completed", path=f"n{n}"))]
        a_run(store, "many", *many, a_node("odd"), a_broken("odd"))

    short, whole = ask("show", "many").out, ask("show", "many", "--all").out

    assert "odd" in short
    assert "n7 " not in short
    assert "81 nodes: 80 completed, 1 failed" in short
    assert "n7 " in whole


def test_tail_of_an_ended_run_prints_it_and_ends(ask: Said) -> None:
    said = ask("tail", "aa", "--json")

    assert [json.loads(line)["seq"] for line in said.out.splitlines()] == [0, 1, 2, 3]


def test_tail_from_the_middle(ask: Said) -> None:
    assert len(ask("tail", "aa", "--after", "1").out.splitlines()) == 2


def test_tail_of_a_run_that_nobody_runs_says_so_and_ends(ask: Said) -> None:
    said = ask("tail", "dd")

    assert said.code == 0
    assert len(said.out.splitlines()) == 2
    assert "run dd-gone is interrupted" in said.err


def test_export_writes_a_line_for_each_event(ask: Said) -> None:
    lines = ask("export", "aa").out.splitlines()

    assert [json.loads(line)["type"] for line in lines] == [
        "run:started",
        "node:started",
        "node:failed",
        "run:failed",
    ]


def test_export_writes_one_document_with_the_sources(ask: Said) -> None:
    said = ask("export", "aa", "--format", "json").data

    assert said["run"]["id"] == "aa-failed"
    assert said["sources"] == {"n.yaml": "x: 1"}
    assert len(said["events"]) == 4


def test_export_to_a_file_does_not_replace_one_unless_told_to(ask: Said, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"

    codes = [ask("export", "aa", "--output", str(target)).code for _ in range(2)]
    refusal = ask.err
    forced = ask("export", "cc", "--output", str(target), "--force").code

    assert (codes, forced) == ([0, 2], 0)
    assert "`--force` replaces it" in refusal
    assert [json.loads(line)["type"] for line in target.read_text().splitlines()] == [
        "run:started",
        "run:completed",
    ]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_export_into_a_folder_that_is_not_there_says_so(ask: Said, tmp_path: Path) -> None:
    said = ask("export", "aa", "--output", str(tmp_path / "no" / "out"))

    assert said.code == 2
    assert "no such file or directory" in said.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["list", "--all"], "`--all` is for `failwell runs show`"),
        (["show", "last", "--status", "failed"], "`--status` is for"),
        (["prune", "--since", "1h", "--keep", "1"], "`--since` is for"),
        (["list", "last"], "unexpected argument `last`"),
        (["show"], "missing RUN"),
        (["show", ""], "no run ``"),
        (["list", "--since", "yesterday"], "takes a span"),
        (["list", "--limit", "-1"], "too small; it is at least 0"),
        (["prune"], "choose which runs to delete"),
        (["prune", "--older-than", "soon"], "takes a span"),
        (["shwo"], "did you mean `show`"),
    ],
)
def test_a_mistake_is_named_with_what_would_be_right(ask: Said, arguments: list[str], told: str) -> None:
    said = ask(*arguments)

    assert said.code == 2
    assert told in said.err


def test_pruning_asks_first(ask: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())

    said = ask("prune", "--keep", "0")

    assert said.code == 2
    assert "2 runs with 6 events would be deleted" in said.err
    assert len(ask("list", "--json").data) == 5


def test_a_dry_run_deletes_nothing(ask: Said) -> None:
    said = ask("prune", "--keep", "1", "--dry-run", "--json")

    assert said.data == {"deleted": False, "runs": ["aa-failed"], "events": 4, "kept_live": []}
    assert len(ask("list", "--json").data) == 5


def test_pruning_deletes_what_it_says(ask: Said, state: Path) -> None:
    (state / "runs" / "aa-failed").mkdir(parents=True, exist_ok=True)
    (state / "runs" / "aa-failed" / "errors.jsonl").write_text("{}\n")

    said = ask("prune", "--older-than", "1d", "--yes")

    assert said.out.splitlines()[0] == "deleted 2 runs with 6 events"
    assert not (state / "runs" / "aa-failed").exists()
    assert [one["id"] for one in ask("list", "--json").data] == ["dd-gone", "bc-parked", "bb-waiting"]


def test_interrupted_runs_can_be_pruned_and_living_ones_cannot(ask: Said, state: Path) -> None:
    with closing(SqliteStore(state)) as store:
        a_run(store, "living", at=time())
        with store.lock("living"):
            said = ask("prune", "--status", "interrupted", "--yes", "--json")

    assert said.data["runs"] == ["dd-gone"]
    assert said.data["kept_live"] == ["living"]


def test_pruning_where_there_is_nothing_says_so(ask: Said) -> None:
    assert ask("prune", "--older-than", "1d", "--status", "cancelled").out == (
        "deleted 0 runs with 0 events\nno recorded run matches; running ones are never deleted\n"
    )


@pytest.mark.parametrize(("answer", "left"), [("y\n", 3), ("\n", 5)])
def test_a_person_is_asked_and_heard(
    ask: Said, answer: str, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, follower = os.openpty()
    with closing(os.fdopen(follower)) as terminal:
        os.write(leader, answer.encode())
        monkeypatch.setattr("sys.stdin", terminal)

        said = ask("prune", "--keep", "0")
    os.close(leader)

    assert "delete 2 runs with 6 events? [y/N]" in said.err
    assert len(ask("list", "--json").data) == left


def test_a_damaged_journal_is_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "journal.db").write_bytes(b"no database at all, whatever it is called" * 100)

    said = Said(tmp_path, capsys)("list")

    assert said.code == 1
    assert "is damaged, or is no journal" in said.err
    assert "sqlite3" not in said.err


def test_a_file_where_the_state_folder_should_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.txt"
    file.touch()

    assert main(["runs", "list", "--store", str(file)]) == 2

    assert f"the state folder `{file}` is a file" in capsys.readouterr().err


def test_a_running_run_has_lasted_since_its_start_and_a_dead_one_until_its_last_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "state"
    start = time() - 7_200
    with closing(SqliteStore(folder)) as store:
        a_run(store, "alive", a_fact(at=start + 1), at=start)
        a_run(store, "dead", a_fact(at=start + 1), at=start)
        with store.lock("alive"):
            assert main(["runs", "list", "--store", str(folder)]) == 0
            listed = capsys.readouterr().out.splitlines()
            assert main(["runs", "show", "alive", "--store", str(folder)]) == 0
            shown = capsys.readouterr().out

    rows = {line.split()[0]: line for line in listed}
    assert "running" in rows["alive"]
    assert "2 h" in rows["alive"]
    assert "interrupted" in rows["dead"]
    assert "1.0 s" in rows["dead"]
    assert re.search(r"lasted +2 h", shown)
