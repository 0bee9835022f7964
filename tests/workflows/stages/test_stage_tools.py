"""The tools of stages through the command: what is outside the list, grants for one call, and what a resumed run may do."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from failwell import workflows
from failwell.agents.grants import USED, GrantRequest, StageGrants, digest_of
from failwell.store.effects.sqlite import SqliteClaims
from tests.cli.running import failwell
from tests.sessions.terminal_process import Terminal
from tests.workflows.stages.stage_place import HEAD, StagePlace, error_of
from tests.workflows.test_agent_approvals import at_a_terminal

TOOLS = """\
tools:
  note: {python: "stage_tools:note", effect: idempotent, approval: never}
  read: {python: "stage_tools:read", effect: read}
"""
CODE = """\
import os, time
from pathlib import Path

def note(text: str) -> str:
    with Path("notes.txt").open("a") as file:
        file.write(text + "\\n")
    if os.environ.get("STOP"):
        Path("stopped").write_text("")
        time.sleep(600)
    return text

def read() -> str:
    return "nothing"
"""
CALL = {"tool_calls": [{"name": "note", "arguments": {"text": "x"}}]}
STAGE = "stages:\n  - {id: a, allowedTools: [read], grants: %s}\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StagePlace:
    # The tools write where the process is.
    monkeypatch.chdir(tmp_path)
    place = StagePlace(tmp_path)
    place.write("stage_tools.py", CODE)
    return place


def audit(place: StagePlace, *types: str) -> list[dict[str, Any]]:
    words = [word for name in types for word in ("--type", name)]
    done = failwell(
        "audit", "show", "--format", "json", "--store", str(place.store), *words, cwd=place.folder
    )
    return done.data


def notes(place: StagePlace) -> list[str]:
    file = place.folder / "notes.txt"
    return file.read_text().split() if file.exists() else []


@pytest.mark.acceptance("stud-cli 37")
def test_a_tool_outside_the_list_of_a_stage_is_blocked_in_every_mode_and_audited(place: StagePlace) -> None:
    modes: list[tuple[str, tuple[str, ...]]] = [
        ("deny", ()),
        ("deny", ("--skip-gates",)),
        ("deny", ("--no-input",)),
        ("deny", ("--model", "scripted:replies.yaml")),
        # Whatever answers without a person denies.
        ("ask", ("--skip-gates",)),
        # With nobody to ask the run ends.
        ("ask", ("--no-input",)),
    ]

    for number, (grants, options) in enumerate(modes):
        place.script(a=[CALL, {"text": "without it"}])

        done = place.run(TOOLS + STAGE % grants, *options)

        assert notes(place) == [], options
        if (grants, options) != ("ask", ("--no-input",)):
            assert done.data == {"result": "without it"}, options
            denials = audit(place, "tool:denied")
            assert len(denials) == number + 1
            assert (denials[-1]["data"]["tool"], denials[-1]["data"]["node"]) == ("note", "a")
            reason = "not_granted" if grants == "deny" else "grant_refused"
            assert denials[-1]["data"]["reason"] == reason
        else:
            assert done.code != 0
            assert error_of(done)["kind"] == "session.interaction_required"
            assert audit(place, "interaction:required")[-1]["data"]["request"] == "grant"
    assert failwell("audit", "verify", "--store", str(place.store), cwd=place.folder).code == 0


@pytest.mark.acceptance("stud-cli 37")
def test_a_tool_outside_the_list_is_blocked_at_a_terminal_whatever_its_approval_is(place: StagePlace) -> None:
    for number, approval in enumerate(("never", "ask")):
        tools = TOOLS.replace("approval: never", f"approval: {approval}")
        place.write("machine.yaml", HEAD.format(entry="a") + tools + STAGE % "deny")
        place.script(a=[CALL, {"text": "without it"}])

        code, screen = at_a_terminal(
            place.folder, ["run", "machine.yaml", "--quiet", "--store", str(place.store)], "allow", "allow"
        )

        assert code == 0
        # Nobody is asked about what no answer could allow.
        assert "choose" not in screen
        assert notes(place) == []
        denials = audit(place, "tool:denied")
        assert [record["data"]["reason"] for record in denials] == ["not_granted"] * (number + 1)


def test_a_stage_without_a_list_has_no_tools(place: StagePlace) -> None:
    place.script(a=[{"tool_calls": [{"name": "read", "arguments": {}}]}, {"text": "without it"}])

    done = place.run(TOOLS + "stages:\n  - {id: a}\n")

    assert done.data == {"result": "without it"}
    assert audit(place, "tool:denied")[0]["data"]["tool"] == "read"


@pytest.mark.acceptance("stud-cli 38")
def test_a_grant_is_for_one_call_and_the_same_call_again_needs_another_one(place: StagePlace) -> None:
    place.write("machine.yaml", HEAD.format(entry="a") + TOOLS + STAGE % "ask")
    place.script(a=[CALL, CALL, {"text": "done"}])
    questions: list[dict[str, Any]] = []

    async def answer(_gate: str, question: Any) -> workflows.GateAnswer:
        questions.append(dict(question))
        decision = question["options"][1]["value"] if len(questions) == 1 else question["options"][0]["value"]
        return workflows.GateAnswer(decision=decision, by="ann")

    result = workflows.run(place.folder / "machine.yaml", store=place.store, on_gate=answer)

    assert result.output == {"result": "done"}
    assert [question["type"] for question in questions] == ["grant", "grant"]
    assert notes(place) == ["x"]
    assert len(audit(place, "interaction:answered")) == 2
    assert [record["data"]["reason"] for record in audit(place, "tool:denied")] == ["grant_refused"]


@pytest.mark.acceptance("stud-cli 38")
def test_a_person_at_the_terminal_grants_one_call_and_is_asked_about_the_next(place: StagePlace) -> None:
    place.write("machine.yaml", HEAD.format(entry="a") + TOOLS + STAGE % "ask")
    place.script(a=[CALL, CALL, {"text": "done"}])

    code, screen = at_a_terminal(
        place.folder, ["run", "machine.yaml", "--quiet", "--store", str(place.store)], "allow", "deny"
    )

    assert code == 0
    assert screen.count("may not call the tool `note`; may it once") == 2
    assert notes(place) == ["x"]
    assert [record["data"]["value"] for record in audit(place, "interaction:answered")] == [True, False]
    assert [record["data"]["reason"] for record in audit(place, "tool:denied")] == ["grant_refused"]


@pytest.mark.slow
@pytest.mark.acceptance("stud-cli 38")
def test_a_grant_that_was_used_is_refused_after_a_crash_without_asking_again(
    place: StagePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("machine.yaml", HEAD.format(entry="a") + TOOLS + STAGE % "ask")
    place.script(a=[CALL, {"text": "done"}])
    os.mkfifo(place.folder / "stopped")
    monkeypatch.setenv("STOP", "1")
    terminal = Terminal(place.folder, "machine.yaml", "--quiet", command="run")
    terminal.expect("choose: ")
    terminal.type("allow\n")
    (place.folder / "stopped").read_text()
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.end() == -signal.SIGKILL
    monkeypatch.delenv("STOP")

    code, screen = at_a_terminal(
        place.folder, ["resume", "last", "--quiet", "--store", str(place.store)], "allow"
    )

    assert code == 0
    assert "choose" not in screen
    assert notes(place) == ["x"]
    assert len(audit(place, "interaction:answered")) == 1
    assert [record["data"]["reason"] for record in audit(place, "tool:denied")] == [USED]


@pytest.mark.acceptance("stud-cli 38")
def test_one_grant_lets_one_of_many_callers_through(tmp_path: Path) -> None:
    arguments = {"text": "x"}
    request = GrantRequest(
        tool="note", agent="a", arguments=arguments, digest=digest_of(arguments), call="r/a/1.1/act/1.0"
    )

    async def agree(_request: GrantRequest) -> bool:
        return True

    grants = [StageGrants(SqliteClaims(tmp_path), "run-r/a/1", 1, agree) for _ in range(5)]

    async def all_at_once() -> list[str | None]:
        return await asyncio.gather(*(grant.refuses(request) for grant in grants))

    refusals = asyncio.run(all_at_once())

    assert sorted(refusals, key=str) == [None, USED, USED, USED, USED]


@pytest.mark.acceptance("stud-cli 56")
def test_a_machine_that_cannot_be_found_on_resume_never_widens_what_its_stages_may_do(
    place: StagePlace,
) -> None:
    narrow = (
        HEAD.format(entry="a")
        + TOOLS
        + "stages:\n  - id: a\n    allowedTools: [read]\n    assert: [{verdict: fail}]\n"
    )
    wide = narrow.replace("[read]", "[read, note]")
    place.write("machine.yaml", narrow)
    place.script(a=[CALL, {"text": "without it"}])
    assert place.command("run", "machine.yaml").code == 3

    (place.folder / "machine.yaml").unlink()
    missing = place.command("resume", "last")
    place.write("machine.yaml", wide)
    changed = place.command("resume", "last")

    assert (missing.code, error_of(missing)["kind"]) == (2, "validation.path_not_found")
    assert (changed.code, error_of(changed)["kind"]) == (2, "session.resume_mismatch")
    assert "machine.yaml" in error_of(changed)["message"]
    assert notes(place) == []
    place.write("machine.yaml", narrow)
    assert place.command("resume", "last").code == 3
    assert notes(place) == []
    place.write("machine.yaml", wide)
    assert place.command("resume", "last", "--accept-changes").code == 3
    assert notes(place) == ["x"]
