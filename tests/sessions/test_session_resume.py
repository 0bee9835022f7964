"""What a session that was left can and cannot be resumed with."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, environment, failwell, failwell_process
from tests.sessions.agents import call, write_agent
from tests.sessions.terminal_process import Terminal

REPLIES: list[dict[str, Any]] = [{"text": "One."}, {"text": "Two."}, {"text": "Three."}]


def chat(folder: Path, *arguments: str) -> Done:
    return failwell("chat", *arguments, "--store", str(folder / "state"), cwd=folder)


def begin(folder: Path, **keys: Any) -> str:
    """A session with one turn; its id."""
    agent = write_agent(folder, REPLIES, **keys)
    done = chat(folder, str(agent), "-p", "hi")
    assert done.code == 0, done.err
    return str(
        failwell("sessions", "list", "--format", "json", "--store", str(folder / "state")).data[0]["id"]
    )


def change_journal(folder: Path, statement: str, *values: str) -> None:
    connection = sqlite3.connect(folder / "state" / "journal.db")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.acceptance("stud-cli 52")
def test_a_process_that_is_killed_in_a_turn_leaves_the_input_the_results_and_a_typed_end_of_the_open_call(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "pipe")
    agent = write_agent(
        tmp_path,
        [call("count_words", text="it is blue"), call("slow"), {"text": "Fine."}],
        tools={
            "count_words": {"python": "session_tools:count_words", "effect": "read"},
            "slow": {"command": ["sh", "-c", "echo $$ > pipe; sleep 615"]},
        },
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "failwell",
            "chat",
            str(agent),
            "-p",
            "go",
            "--store",
            str(tmp_path / "state"),
        ],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    (tmp_path / "pipe").read_text()

    process.kill()
    process.communicate()
    resumed = chat(tmp_path, "--continue", "-p", "and now?")

    shown = failwell("sessions", "show", "last", "--format", "json", "--store", str(tmp_path / "state")).data
    talk = shown["conversation"]
    assert (resumed.code, resumed.out) == (0, "Fine.\n")
    assert talk[0] == {"user": "go"}
    assert [(item["tool"], item["kind"]) for item in talk if "tool" in item] == [
        ("count_words", None),
        ("slow", "tool.interrupted"),
    ]
    assert ">\n3\n<" in next(item["result"] for item in talk if item.get("tool") == "count_words")
    assert '"may_have_run": true' in next(item["result"] for item in talk if item.get("tool") == "slow")
    assert talk[-2:] == [{"user": "and now?"}, {"agent": "Fine."}]


@pytest.mark.acceptance("stud-cli 53")
def test_a_session_of_another_store_is_refused_before_its_agent_is_read_and_others_resume(
    tmp_path: Path,
) -> None:
    foreign, own = begin(tmp_path), begin(tmp_path)
    change_journal(
        tmp_path,
        "UPDATE events SET data = json_set(data, '$.manifest.store', 'elsewhere', '$.manifest.file', '/gone.yaml')"
        " WHERE type = 'session:started' AND run = (SELECT key FROM runs WHERE id = ?)",
        foreign,
    )

    refused = chat(tmp_path, "--resume", foreign, "-p", "more")
    resumed = chat(tmp_path, "--resume", own, "-p", "more")
    latest = chat(tmp_path, "--continue", "-p", "more")

    assert refused.code == 2
    assert "session.resume_mismatch" in refused.err
    assert (resumed.code, resumed.out) == (0, "Two.\n")
    assert latest.code == 0


@pytest.mark.acceptance("stud-cli 54")
def test_a_corrupt_a_missing_and_an_unreadable_record_are_three_errors(tmp_path: Path) -> None:
    corrupt, other = begin(tmp_path / "one"), begin(tmp_path / "one")
    unreadable = begin(tmp_path / "two")
    change_journal(
        tmp_path / "one",
        'UPDATE events SET data = \'{"manifest": {"format": 1}}\''
        " WHERE type = 'session:started' AND run = (SELECT key FROM runs WHERE id = ?)",
        corrupt,
    )
    journal = tmp_path / "two" / "state" / "journal.db"
    journal.rename(journal.with_name("journal.copy"))
    journal.mkdir()

    kinds = [
        json.loads(chat(tmp_path / folder, "--resume", session, "-p", "x", "--error-format", "json").err)[
            "kind"
        ]
        for folder, session in (("one", corrupt), ("one", "20200101-nothing"), ("two", unreadable))
    ]

    assert kinds == ["session.store_corrupt", "session.no_snapshot", "session.store_unavailable"]
    assert chat(tmp_path / "one", "--resume", other, "-p", "more").code == 0


def test_an_agent_that_has_changed_is_named_and_accepted_only_on_request(tmp_path: Path) -> None:
    session = begin(tmp_path)
    write_agent(tmp_path, REPLIES, tools={"pay": {"python": "session_tools:pay"}})

    refused = chat(tmp_path, "--resume", session, "-p", "more")
    accepted = chat(tmp_path, "--resume", session, "-p", "more", "--accept-changes")
    again = chat(tmp_path, "--resume", session, "-p", "more")

    assert refused.code == 2
    assert "session.manifest_drift" in refused.err
    assert "missing tools: count_words, sleep" in refused.err
    assert (accepted.code, accepted.out) == (0, "Two.\n")
    assert (again.code, again.out) == (0, "Three.\n")


@pytest.mark.acceptance("stud-cli 55")
def test_a_manifest_of_a_newer_version_is_refused_an_older_one_is_read_and_each_resume_is_audited(
    tmp_path: Path,
) -> None:
    older, newer, changed = begin(tmp_path), begin(tmp_path), begin(tmp_path)
    for session, version in ((older, 0), (newer, 2)):
        change_journal(
            tmp_path,
            f"UPDATE events SET data = json_set(data, '$.manifest.format', {version})"
            " WHERE type = 'session:started' AND run = (SELECT key FROM runs WHERE id = ?)",
            session,
        )

    read = chat(tmp_path, "--resume", older, "-p", "more")
    refused = chat(tmp_path, "--resume", newer, "-p", "more")
    write_agent(tmp_path, REPLIES, system_prompt="You help otherwise.")
    drifted = chat(tmp_path, "--resume", changed, "-p", "more")
    accepted = chat(tmp_path, "--resume", changed, "-p", "more", "--accept-changes")

    records = failwell(
        "audit", "show", "--type", "session:resumed", "--format", "json", "--store", str(tmp_path / "state")
    ).data
    assert (read.code, read.out) == (0, "Two.\n")
    assert refused.code == 2
    assert "session.resume_mismatch" in refused.err
    assert "the format 2, and this version reads up to 1" in refused.err
    assert drifted.code == 2
    assert "session.manifest_drift" in drifted.err
    assert accepted.code == 0
    assert [(record["run"], record["data"]["changes"]) for record in records] == [
        (older, []),
        (changed, [f"the file {tmp_path / 'helper.yaml'} was changed"]),
    ]


def test_another_model_is_a_change_too(tmp_path: Path) -> None:
    session = begin(tmp_path)

    refused = chat(tmp_path, "--resume", session, "-p", "more", "--model", "scripted:other.yaml")

    assert refused.code == 2
    assert "the model is scripted:other.yaml instead of scripted:replies.yaml" in refused.err


@pytest.mark.acceptance("stud-cli 57")
def test_a_second_process_cannot_open_a_session_that_is_open(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, REPLIES)
    store = ("--store", str(tmp_path / "state"))
    terminal = Terminal(tmp_path, str(agent), "--session-id", "held")
    terminal.expect("> ")

    refused = failwell_process("chat", "--resume", "held", "-p", "x", "--error-format", "json", *store)
    read = failwell_process("sessions", "show", "held", *store)
    terminal.type("hi\n")
    terminal.expect("One.")
    terminal.type("/exit\n")

    assert terminal.end() == 0
    assert (refused.code, refused.out, refused.error["kind"]) == (2, "", "session.locked")
    assert str(terminal.pid) in refused.error["message"]
    # It may be read meanwhile, and be written to afterwards.
    assert read.code == 0
    assert chat(tmp_path, "--resume", "held", "-p", "x").out == "Two.\n"


def test_a_call_whose_outcome_nobody_knows_is_not_made_again_by_a_later_turn(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    tool = {"command": ["sh", "-c", "echo x >> paid.txt; echo $$ > pipe; sleep 616"]}
    agent = write_agent(
        tmp_path, [call("pay_once"), call("pay_once"), {"text": "Unclear."}], tools={"pay_once": tool}
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "failwell",
            "chat",
            str(agent),
            "-p",
            "go",
            "--store",
            str(tmp_path / "state"),
        ],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    (tmp_path / "pipe").read_text()
    process.send_signal(signal.SIGKILL)
    process.communicate()

    resumed = chat(tmp_path, "--continue", "-p", "pay again")

    shown = failwell("sessions", "show", "last", "--format", "json", "--store", str(tmp_path / "state")).data
    kinds = [item["kind"] for item in shown["conversation"] if "tool" in item]
    assert resumed.out == "Unclear.\n"
    assert (tmp_path / "paid.txt").read_text() == "x\n"
    assert kinds[0] == "tool.interrupted"
    assert kinds[1] is not None
