"""`failwell chat -p`: one turn from a script, recorded, and resumed by the next command."""

import json
from pathlib import Path

from tests.cli.running import Done, failwell
from tests.sessions.agents import call, write_agent


def chat(tmp_path: Path, *arguments: str, given: str = "") -> Done:
    return failwell("chat", *arguments, "--store", str(tmp_path / "state"), given=given)


def test_an_answer_is_the_data_of_the_command_and_the_next_command_resumes_the_session(
    tmp_path: Path,
) -> None:
    agent = write_agent(
        tmp_path, [call("count_words", text="it is blue"), {"text": "Three."}, {"text": "Bye."}]
    )

    first = chat(tmp_path, str(agent), "-p", "count")
    second = chat(tmp_path, "--continue", "-p", "bye")

    assert (first.code, first.out) == (0, "Three.\n")
    assert "resume it with: failwell chat --resume" in first.err
    assert (second.code, second.out) == (0, "Bye.\n")


def test_events_are_lines_of_json_and_the_last_event_of_the_turn_follows_its_text(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "A longer answer in pieces."}])

    done = chat(tmp_path, str(agent), "-p", "hi", "--format", "json")

    lines = [json.loads(line) for line in done.out.splitlines()]
    pieces = "".join(line["text"] for line in lines if line["type"] == "text")
    result = next(line for line in lines if line["type"] == "result")
    assert done.code == 0
    assert pieces == result["text"] == "A longer answer in pieces."
    assert [line["type"] for line in lines if line["type"].startswith("session:")] == [
        "session:started",
        "session:input",
        "session:answered",
        "session:turn_ended",
        "session:closed",
    ]
    assert result["usage"]["output_tokens"] > 0
    assert done.err == ""


def test_the_input_may_come_from_stdin(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "Yes."}])

    done = chat(tmp_path, str(agent), given="is it blue?\n")
    shown = failwell("sessions", "show", "last", "--format", "json", "--store", str(tmp_path / "state"))

    assert (done.code, done.out) == (0, "Yes.\n")
    assert shown.data["conversation"] == [{"user": "is it blue?\n"}, {"agent": "Yes."}]


def test_a_turn_that_fails_a_session_that_cannot_open_and_a_question_have_their_own_exit_codes(
    tmp_path: Path,
) -> None:
    agent = write_agent(tmp_path, [{"fail": "provider.auth"}])
    asking = write_agent(
        tmp_path / "asking",
        [call("pay", order="A-17"), {"text": "done"}],
        tools={"pay": {"python": "session_tools:pay", "approval": "ask"}},
    )

    failed = chat(tmp_path, str(agent), "-p", "hi")
    unknown = chat(tmp_path, "--resume", "nothing", "-p", "hi")
    broken = chat(tmp_path, str(tmp_path / "missing.yaml"), "-p", "hi")
    halted = chat(tmp_path, str(asking), "-p", "pay")

    assert [failed.code, unknown.code, broken.code, halted.code] == [1, 2, 2, 4]
    assert "provider.auth" in failed.err
    assert "session.no_snapshot" in unknown.err
    assert "session.interaction_required" in halted.err
    assert not (tmp_path / "asking" / "paid.txt").exists()


def test_an_agent_of_a_workflow_is_chosen_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "replies.yaml").write_text('replies: [{text: "Yes."}]')
    (tmp_path / "w.yaml").write_text(
        "workflow: {name: w, entry_point: a, runtime: {default_model: 'scripted:replies.yaml'}}\n"
        "agents:\n  - {name: a, prompt: p, routes: [{to: b}]}\n  - {name: b, prompt: p}\n"
    )

    several = chat(tmp_path, str(tmp_path / "w.yaml"), "-p", "hi")
    wrong = chat(tmp_path, str(tmp_path / "w.yaml"), "-p", "hi", "--name", "c")
    chosen = chat(tmp_path, str(tmp_path / "w.yaml"), "-p", "hi", "--name", "b")

    assert (several.code, wrong.code, chosen.code) == (2, 2, 0)
    assert "`--name NAME`" in several.err
    assert "choose one of `a`, `b`" in wrong.err
    assert chosen.out == "Yes.\n"


def test_a_failed_turn_is_run_again_by_a_later_command(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"fail": "provider.auth"}, {"text": "Yes."}])

    failed = chat(tmp_path, str(agent), "-p", "is it blue?")
    write_agent(tmp_path, [{"text": "Yes."}])
    again = chat(tmp_path, "--continue", "--retry")
    nothing = chat(tmp_path, "--continue", "--retry")

    shown = failwell("sessions", "show", "last", "--format", "json", "--store", str(tmp_path / "state"))
    assert failed.code == 1
    assert (again.code, again.out) == (0, "Yes.\n")
    assert shown.data["conversation"] == [{"user": "is it blue?"}, {"agent": "Yes."}]
    assert nothing.code == 2
    assert "nothing to repeat" in nothing.err


def test_what_was_said_is_gone_from_the_file_once_the_session_is_deleted(tmp_path: Path) -> None:
    agent = write_agent(tmp_path, [{"text": "Yes."}])
    chat(tmp_path, str(agent), "-p", "the blue elephant")
    state = tmp_path / "state"
    before = b"".join(file.read_bytes() for file in state.glob("journal.db*"))

    deleted = failwell("sessions", "delete", "last", "--yes", "--store", str(state))

    after = b"".join(file.read_bytes() for file in state.glob("journal.db*"))
    assert deleted.code == 0
    assert b"elephant" in before
    assert b"elephant" not in after
