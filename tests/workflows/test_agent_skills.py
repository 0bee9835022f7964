"""Skills, plugins and conversations of agents: what reaches the model, and what is refused."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell

SKILL = "---\nname: {name}\ndescription: |\n  About {name}. Triggers: {name}.\n---\n\nThe rule of {name}.\n"
FLOW = """\
workflow:
  name: w
  entry_point: ask
  runtime: {{default_model: "scripted:replies.yaml"{runtime}}}
agents:
  - name: ask
    prompt: Which colour?
{keys}    routes: [{{to: $end}}]
output: {{text: "{{{{ ask.output.result }}}}"}}
"""


class Place:
    """A folder with a workflow of one agent."""

    def __init__(self, folder: Path, seen: list[Any]) -> None:
        self.folder = folder
        self.seen = seen

    def write(self, keys: str, runtime: str = "") -> None:
        text = FLOW.format(keys=keys, runtime=f", {runtime}" if runtime else "")
        (self.folder / "w.yaml").write_text(text)

    def skill(self, path: str, name: str) -> None:
        folder = self.folder / path
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(name=name))

    def run(self, keys: str, *replies: Any, runtime: str = "", env: dict[str, str] | None = None) -> Done:
        self.write(keys, runtime)
        (self.folder / "replies.yaml").write_text(json.dumps({"replies": replies or [{"text": "blue"}]}))
        store = str(self.folder / "state")
        return failwell(
            "run", "w.yaml", "--quiet", "--error-format", "json", "--store", store, cwd=self.folder, env=env
        )

    def validate(self, keys: str, runtime: str = "") -> Done:
        self.write(keys, runtime)
        return failwell("validate", "w.yaml", cwd=self.folder)

    @property
    def instructions(self) -> str:
        """What the model was told first in the last call."""
        return self.seen[-1][-1].instructions or ""


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    from failwell.agents import scripted_model

    seen: list[Any] = []
    original = scripted_model.ScriptedModel.request_stream

    def request_stream(self: Any, messages: Any, *rest: Any, **more: Any) -> Any:
        seen.append(list(messages))
        return original(self, messages, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripted_model.ScriptedModel, "request_stream", request_stream)
        yield Place(tmp_path, seen)


def error_of(done: Done) -> dict[str, Any]:
    return next(json.loads(line) for line in done.err.splitlines() if line.startswith("{"))


def test_skills_of_the_workflow_and_of_the_agent_reach_the_model(place: Place) -> None:
    place.skill("team/paint", "paint")
    place.skill("team/paper", "paper")
    (place.folder / "team/paint/references").mkdir()
    (place.folder / "team/paint/references/mixing.md").write_text("Blue and yellow make green.")

    place.run("", runtime="skills: [./team]")
    both = place.instructions
    place.run("    skills: [./team/paper]\n", runtime="skills: [./team]")
    own = place.instructions
    place.run("    skills: []\n", runtime="skills: [./team]")
    none = place.instructions
    place.run("    skills: [failwell]\n")
    built_in = place.instructions

    assert "The rule of paint." in both
    assert "Blue and yellow make green." in both
    assert "The rule of paper." in both
    assert ("paper" in own, "paint" in own) == (True, False)
    assert none == ""
    assert "failwell validate FILE" in built_in


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("---\nname: x\ndescription: A. Triggers: b.\n---\n", "write `description: |`"),
        ("---\nname: x\n---\n", "needs a `description`"),
        ("---\nname: x\ndescription: d\n", "the second `---` is missing"),
        ("no front matter", "needs a `name`"),
        (None, "holds no skill"),
    ],
)
def test_a_skill_that_cannot_be_used_is_refused_before_the_run(
    place: Place, content: str | None, words: str
) -> None:
    (place.folder / "skill").mkdir()
    if content is not None:
        (place.folder / "skill/SKILL.md").write_text(content)

    done = place.validate("    skills: [./skill]\n")
    unknown = place.validate("    skills: [nobody]\n")

    assert (done.code, unknown.code) == (2, 2)
    assert words in done.err
    assert "there is no built-in skill `nobody`" in unknown.err
    assert place.run("    skills: [./skill]\n").code == 2


def test_skills_that_are_too_long_fail_the_agent_and_name_each(place: Place) -> None:
    place.skill("skill", "long")

    done = place.run("    skills: [./skill]\n", runtime="skill_injection: {max_bytes: 10}")
    warned = place.validate("    skills: [./skill]\n", "skill_injection: {warn_bytes: 10}")

    assert error_of(done)["kind"] == "validation.config_invalid"
    assert "`long`" in error_of(done)["message"]
    assert (warned.code, "every model call sends them" in warned.out + warned.err) == (0, True)


def test_installed_skills_are_used_where_the_file_says_so_and_broken_ones_are_left_out(place: Place) -> None:
    place.skill(".claude/skills/local", "local")
    place.skill("home/.claude/skills/mine", "mine")
    place.skill("home/.copilot/skills/hidden", "hidden")
    (place.folder / "home/.claude/skills/broken").mkdir()
    (place.folder / "home/.claude/skills/broken/SKILL.md").write_text("nothing")
    env = {"HOME": str(place.folder / "home")}

    place.run("", runtime="skill_discovery: {sources: [personal, project], exclude: [hidden]}", env=env)
    told = place.instructions
    logs = failwell("runs", "logs", "last", "--store", str(place.folder / "state"), cwd=place.folder).out
    place.run("", env=env)

    assert ("The rule of local." in told, "The rule of mine." in told, "hidden" in told) == (
        True,
        True,
        False,
    )
    assert "left out" in logs
    assert place.instructions == ""


def plugin(place: Place, path: str = "plug") -> None:
    folder = place.folder / path
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / ".claude-plugin/plugin.json").write_text('{"name": "tone"}')
    (folder / "agents").mkdir()
    (folder / "agents/editor.agent.md").write_text(
        "---\nname: editor\ndescription: Cuts.\n---\nYou cut words.\n"
    )
    place.skill(f"{path}/skills/notes", "notes")


def test_a_plugin_brings_its_skills_and_its_agents(place: Place) -> None:
    plugin(place)
    call = {"tool_calls": [{"name": "tone_editor", "arguments": {"task": "Cut this."}}]}
    script = {"agents": {"ask": [call, {"text": "done"}], "tone:editor": [{"text": "cut"}]}}
    place.write("    plugins: [./plug]\n")
    (place.folder / "replies.yaml").write_text(json.dumps(script))

    done = failwell("run", "w.yaml", "--quiet", "--store", str(place.folder / "state"), cwd=place.folder)
    asked, editor, last = place.seen
    place.run("    plugins: [{name: ./plug, agents: false, skills: false}]\n")

    assert done.data == {"text": "done"}
    assert "The rule of notes." in asked[-1].instructions
    assert "`tone:editor` is called with the tool `tone_editor`" in asked[-1].instructions
    assert (editor[0].instructions, editor[0].parts[0].content) == ("You cut words.", "Cut this.")
    assert "cut" in last[-1].parts[0].content
    assert place.instructions == ""


@pytest.mark.parametrize(
    ("runtime", "keys", "words"),
    [
        ("", "    plugins: [./nowhere]\n", "has no plugin.json"),
        ("", "    plugins: [nobody]\n", "is not installed"),
        ("plugin_sources: {acme: acme/plugins#v1}", "    plugins: [tone@acme]\n", "nothing is fetched"),
        ("plugin_sources: {acme: ./sources}", "    plugins: [other@acme]\n", "there is no plugin `other`"),
    ],
)
def test_a_plugin_that_is_not_there_is_refused_before_the_run(
    place: Place, runtime: str, keys: str, words: str
) -> None:
    plugin(place, "sources/tone")

    done = place.validate(keys, runtime)
    good = place.validate("    plugins: [tone@acme]\n", "plugin_sources: {acme: ./sources}")

    assert (done.code, good.code) == (2, 0)
    assert words in done.err


def test_visits_with_the_same_session_key_continue_one_conversation(place: Place) -> None:
    flow = """\
workflow: {name: w, entry_point: first, runtime: {default_model: "scripted:replies.yaml"}}
agents:
  - {name: first, prompt: One., session_key: talk, routes: [{to: second}]}
  - {name: second, prompt: Two., session_key: talk, routes: [{to: third}]}
  - {name: third, prompt: Three., routes: [{to: $end}]}
"""
    (place.folder / "w.yaml").write_text(flow)
    (place.folder / "replies.yaml").write_text('replies: [{"text": "blue"}]')

    done = failwell("run", "w.yaml", "--quiet", "--store", str(place.folder / "state"), cwd=place.folder)

    texts = [[part.content for message in call for part in message.parts] for call in place.seen]
    assert done.code == 0
    assert texts == [["One."], ["One.", "blue", "Two."], ["Three."]]


def test_a_conversation_is_continued_by_the_run_that_resumes_a_failed_one(place: Place) -> None:
    flow = """\
workflow: {name: w, entry_point: first, runtime: {default_model: "scripted:replies.yaml"}}
agents:
  - {name: first, prompt: One., session_key: talk, routes: [{to: check}]}
  - {name: check, type: script, command: sh, args: ["-c", "test -e ready || exit 3"], raises: [external.x], routes: [{to: second}]}
  - {name: second, prompt: Two., session_key: talk, routes: [{to: $end}]}
"""
    (place.folder / "w.yaml").write_text(flow)
    (place.folder / "replies.yaml").write_text('replies: [{"text": "blue"}]')
    store = ("--store", str(place.folder / "state"))

    failed = failwell("run", "w.yaml", "--quiet", *store, cwd=place.folder)
    (place.folder / "ready").touch()
    done = failwell("resume", "last", "--quiet", *store, cwd=place.folder)

    texts = [[part.content for message in call for part in message.parts] for call in place.seen]
    assert (failed.code, done.code) == (3, 0)
    assert texts == [["One."], ["One.", "blue", "Two."]]


def test_steps_that_run_at_once_cannot_share_a_conversation(place: Place) -> None:
    flow = """\
workflow: {name: w, entry_point: all, runtime: {default_model: "scripted:replies.yaml"}}
agents:
  - {name: a, prompt: One., session_key: talk}
  - {name: b, prompt: Two., session_key: talk}
parallel:
  - {name: all, agents: [a, b]}
"""
    (place.folder / "w.yaml").write_text(flow)

    done = failwell("validate", "w.yaml", cwd=place.folder)

    assert (done.code, "share the session `talk`" in done.err) == (2, True)


@pytest.mark.acceptance("relavium 69")
def test_a_secret_that_a_script_prints_reaches_no_model_row_or_file_of_a_run_with_agents(
    place: Place,
) -> None:
    secret = "s3cr3t-value-77-of-the-run"
    flow = """\
workflow:
  name: w
  entry_point: leak
  input: {token: {type: string, secret: true}}
  runtime: {default_model: "scripted:replies.yaml"}
tools:
  look: {python: "leaky_tools:look", effect: read}
agents:
  - name: leak
    type: script
    command: sh
    args: ["-c", 'echo "$TOKEN"; printenv TOKEN > leaked.txt']
    env_from: {TOKEN: workflow.input.token}
    routes: [{to: first}]
  - {name: first, prompt: "It printed {{ leak.output.stdout }}.", session_key: talk, routes: [{to: second}]}
  - name: second
    prompt: "Again {{ leak.output.stdout }} and {{ context.history | tojson }}."
    session_key: talk
    validator: {criteria: "It does not hold {{ leak.output.stdout }}."}
    routes: [{to: $end}]
output: {text: "{{ second.output.result }}"}
"""
    (place.folder / "w.yaml").write_text(flow)
    (place.folder / "leaky_tools.py").write_text(
        'from pathlib import Path\ndef look() -> str:\n    """Look."""\n    return Path("leaked.txt").read_text()\n'
    )
    look: dict[str, Any] = {"tool_calls": [{"name": "look", "arguments": {}}]}
    script: dict[str, Any] = {
        "agents": {
            "first": [look, {"text": "seen"}],
            "second": [{"text": "done"}, {"text": "done again"}],
            "second (validator)": [{"json": {"passed": False, "issues": ["no"]}}],
        }
    }
    (place.folder / "replies.yaml").write_text(json.dumps(script))
    store = place.folder / "state"

    done = failwell("run", "w.yaml", "-i", f"token={secret}", "--store", str(store), cwd=place.folder)
    logs = failwell("runs", "logs", "last", "--store", str(store), cwd=place.folder)
    exported = failwell("runs", "export", "last", "--store", str(store), cwd=place.folder)

    assert done.code == 0, done.err
    assert len(place.seen) >= 4
    assert "It printed" in str(place.seen)
    for text in (done.out, done.err, logs.out, exported.out, str(place.seen)):
        assert secret not in text
    holding = [path for path in store.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert holding == []


def test_the_agent_of_a_session_has_its_skills_too(place: Place) -> None:
    place.skill("team/paint", "paint")
    agent = {"model": "scripted:replies.yaml", "system_prompt": "You help.", "skills": ["./team"]}
    (place.folder / "helper.yaml").write_text(json.dumps(agent))
    (place.folder / "replies.yaml").write_text('{"replies": [{"text": "blue"}]}')

    done = failwell(
        "chat", "helper.yaml", "-p", "hi", "--store", str(place.folder / "state"), cwd=place.folder
    )

    assert done.out == "blue\n", done.err
    assert "The rule of paint." in place.instructions
    assert "You help." in place.instructions
