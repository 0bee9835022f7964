"""`agent` and `tool` nodes through the command: answers, envelopes, schemas, failing models, tools, limits."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from failwell.testing import lab
from tests.cli.running import Done, failwell

HEAD = """\
workflow:
  name: w
  entry_point: ask
  runtime: {default_model: "scripted:replies.yaml"}
"""


class Place:
    """A folder with a workflow, a script of replies and a state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, steps: str, *replies: str, head: str = HEAD, options: tuple[str, ...] = ()) -> Done:
        (self.folder / "w.yaml").write_text(f"{head}{steps}")
        self.script(*replies)
        return failwell(
            "run", "w.yaml", "--quiet", "--error-format", "json", "--store", str(self.folder / "state"), *options,
            cwd=self.folder, env={"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"},
        )  # fmt: skip

    def script(self, *replies: str, name: str = "replies.yaml") -> None:
        text = "replies:\n" + "".join(f"  - {reply}\n" for reply in replies) if replies else "replies: []\n"
        (self.folder / name).write_text(text)


def error_of(done: Done) -> dict[str, Any]:
    """The failure that a run printed."""
    return next(json.loads(line) for line in done.err.splitlines() if line.startswith("{"))


@contextmanager
def seen_by_model(requests: list[Any]) -> Generator[None]:
    """Note what every scripted model is sent."""
    from failwell.agents import scripted_model

    original = scripted_model.ScriptedModel.request_stream

    def request_stream(self: Any, messages: Any, *rest: Any, **more: Any) -> Any:
        requests.append(list(messages))
        return original(self, messages, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripted_model.ScriptedModel, "request_stream", request_stream)
        yield


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


ASK = """\
agents:
  - name: ask
    prompt: "What is the colour of {{ workflow.name }}?"
    routes: [{to: $end}]
output: {text: "{{ ask.output.result }}"}
"""
TYPED = """\
agents:
  - name: ask
    prompt: Answer.
    output: {colour: {type: string}, shade: {type: number}}
    routes:
      - {on_error: internal.schema_violation, to: mend}
      - {on_error: external.colour.unknown, to: mend}
      - {to: $end}
  - name: mend
    type: set
    values: {kind: "{{ ask.error.kind }}"}
    routes: [{to: $end}]
output:
  colour: "{{ ask.output.colour | default('') }}"
  kind: "{{ mend.output.kind if mend is defined and mend.output else '' }}"
  details: "{{ ask.error.details | default({}) | tojson }}"
"""


def test_a_text_is_the_result_of_an_agent_without_a_declared_output(place: Place) -> None:
    assert place.run(ASK, "{text: blue}").data == {"text": "blue"}


@pytest.mark.acceptance("relavium 68")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"colour": "blue", "shade": 3}', {"colour": "blue", "kind": ""}),
        ('```json\n{"colour": "blue", "shade": 3}\n```', {"colour": "blue", "kind": ""}),
        ("It is blue.", {"kind": "internal.schema_violation"}),
        ("[1, 2]", {"kind": "internal.schema_violation"}),
    ],
)
def test_a_declared_output_is_enforced_and_a_fence_is_accepted(
    place: Place, answer: str, expected: dict[str, str]
) -> None:
    done = place.run(TYPED, json.dumps({"text": answer}))

    assert done.data.items() >= expected.items()
    assert "It is blue" not in done.out


@pytest.mark.acceptance("relavium 68")
@pytest.mark.parametrize(
    ("answer", "field"),
    [
        ("It is k4n4ry.", None),
        ("```\nk4n4ry\n```", None),
        ('{"colour": {"name": "blue", "shades": [1, "k4n4ry"]}}', "colour.shades.1"),
        ('{"colour": {"name": ["k4n4ry"], "shades": []}}', "colour.name"),
        ('{"colour": "k4n4ry"}', "colour"),
    ],
)
def test_an_answer_that_is_not_as_declared_fails_for_good_and_names_the_path_and_no_value(
    place: Place, answer: str, field: str | None
) -> None:
    steps = """\
agents:
  - name: ask
    prompt: Answer.
    retry: {max_attempts: 3, delay_seconds: 0}
    output:
      colour:
        type: object
        properties: {name: {type: string}, shades: {type: array, items: {type: number}}}
"""
    done = place.run(steps, json.dumps({"text": answer}), "{text: never}")

    error = error_of(done)
    events = failwell("runs", "export", "last", "--store", str(place.folder / "state")).out
    failed = next(json.loads(line) for line in events.splitlines() if '"node:failed"' in line)["data"]
    assert (done.code, error["kind"]) == (3, "internal.schema_violation")
    assert failed["failure"]["report"]["retryable"] is False
    assert error["details"].get("failed_field") == field
    assert "node:retrying" not in events
    assert "k4n4ry" not in done.out + done.err + json.dumps(failed["failure"])


@pytest.mark.acceptance("conductor 22")
def test_an_answer_that_violates_the_schema_takes_its_route_and_names_the_field(place: Place) -> None:
    done = place.run(TYPED, json.dumps({"text": '{"colour": "blue", "shade": "very"}'}))

    details = done.data["details"]
    assert done.data["kind"] == "internal.schema_violation"
    assert (details["source"], details["failed_field"]) == ("agent", "shade")
    assert "very" not in done.out


@pytest.mark.acceptance("conductor 20")
@pytest.mark.parametrize("marker", ["conductor_error", "failwell_error"])
def test_an_envelope_in_an_answer_is_the_agents_own_failure(place: Place, marker: str) -> None:
    answer = {marker: True, "kind": "external.colour.unknown", "message": "no idea", "details": {"tried": 3}}

    done = place.run(TYPED, json.dumps({"json": answer}))

    assert done.data["kind"] == "external.colour.unknown"
    assert done.data["details"] == {"tried": 3}


@pytest.mark.acceptance("conductor 21")
@pytest.mark.parametrize("kind", ["provider.auth", "Not A Kind", "single"])
def test_an_envelope_with_a_bad_kind_is_a_schema_violation(place: Place, kind: str) -> None:
    answer = {"conductor_error": True, "kind": kind, "message": "m"}

    done = place.run(TYPED, json.dumps({"json": answer}))

    assert done.data["kind"] == "internal.schema_violation"
    assert done.data["details"]["source"] == "agent"
    # The field of the declared output is not what was wrong.
    assert "failed_field" not in done.data["details"]


EXHAUSTED = {
    "provider": "scripted",
    "model": "replies.yaml",
    "attempts": 2,
    "last_error": "provider.overloaded",
}


@pytest.mark.acceptance("conductor 59")
def test_used_up_attempts_halt_the_run_as_provider_exhausted(place: Place) -> None:
    steps = ASK.replace("    routes", "    max_attempts: 2\n    routes")
    failing = "{fail: provider.overloaded, retry_after: 0}"

    done = place.run(steps, failing, failing, "{text: never}")

    error = error_of(done)
    assert (done.code, done.out, error["kind"]) == (3, "", "provider.exhausted")
    assert error["details"].items() >= EXHAUSTED.items()
    shown = failwell("runs", "show", "last", "--format", "json", "--store", str(place.folder / "state")).data
    assert (shown["status"], [node["status"] for node in shown["nodes"]]) == ("failed", ["failed"])


@pytest.mark.acceptance("conductor 59")
def test_a_route_takes_used_up_attempts_with_their_details(place: Place) -> None:
    steps = TYPED.replace("internal.schema_violation", "provider.exhausted").replace(
        "    prompt: Answer.\n", "    prompt: Answer.\n    max_attempts: 2\n"
    )
    failing = "{fail: provider.overloaded, retry_after: 0}"

    done = place.run(steps, failing, failing, "{text: never}")

    assert (done.code, done.data["kind"]) == (0, "provider.exhausted")
    assert done.data["details"].items() >= EXHAUSTED.items()


def test_the_next_model_of_the_file_answers_when_the_first_fails(place: Place) -> None:
    steps = ASK.replace(
        "    routes", '    max_attempts: 1\n    fallback: [{model: "scripted:b.yaml"}]\n    routes'
    )
    place.script("{text: from b}", name="b.yaml")

    assert place.run(steps, "{fail: provider.overloaded}").data == {"text": "from b"}


def test_a_refused_key_is_not_repeated_and_keeps_its_kind(place: Place) -> None:
    done = place.run(ASK, "{fail: provider.auth}", "{text: never}")

    assert error_of(done)["kind"] == "provider.auth"


def test_another_model_can_be_named_at_the_command(place: Place) -> None:
    place.script("{text: rehearsed}", name="other.yaml")
    head = HEAD.replace("scripted:replies.yaml", "openai:gpt-5")

    done = place.run(ASK, head=head, options=("--model", "scripted:other.yaml"))

    assert done.data == {"text": "rehearsed"}


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt-5", "the model `gpt-5` has no provider"),
        ("copilot:gpt-5", "the provider `copilot` runs agents of its own"),
        ("nobody:gpt-5", "the model `nobody:gpt-5` cannot be used"),
        ("scripted:nowhere.yaml", "nowhere.yaml"),
    ],
)
def test_a_model_that_cannot_be_used_is_named_with_the_next_step(
    place: Place, model: str, words: str
) -> None:
    done = place.run(ASK, head=HEAD.replace("scripted:replies.yaml", model))

    error = error_of(done)
    assert done.code != 0
    assert error["kind"] == "validation.config_invalid"
    assert words in error["message"]


# ---------------------------------------------------------------- real SDKs against the lab


def _endpoint(provider: str, model: str, url: str) -> str:
    return (
        "workflow:\n  name: w\n  entry_point: ask\n  runtime:\n"
        f"    default_model: {model}\n    provider: {{name: {provider}, base_url: '{url}', api_key: k}}\n"
    )


@pytest.mark.parametrize(
    ("provider", "model", "dialect"),
    [("openai-chat", "gpt-4o", "openai"), ("anthropic", "claude-of-the-lab", "anthropic")],
)
def test_wire_calls_are_the_recorded_attempts(place: Place, provider: str, model: str, dialect: str) -> None:
    pytest.importorskip(dialect)
    expected = {
        "ok": (1, None),
        "bad_key": (1, "provider.auth"),
        "daily_quota": (1, "provider.quota_exhausted"),
    }

    with lab() as fake:
        for scenario, (calls, kind) in expected.items():
            done = place.run(ASK, head=_endpoint(provider, model, fake.url(dialect, scenario)))
            seen = None if done.code == 0 else error_of(done)["kind"]
            assert (scenario, fake.calls(dialect, scenario), seen) == (scenario, calls, kind)


# ---------------------------------------------------------------- tools

TOOLS = """\
tools:
  add: {python: "own_tools:add", effect: read}
  shell: {builtin: run_command, allow: ["echo hi"], approval: never}
  note: {builtin: write_file}
agents:
  - name: ask
    prompt: go
    routes: [{to: $end}]
output: {text: "{{ ask.output.result }}"}
"""
CALLS = (
    "{tool_calls: [{name: add, arguments: {a: 1, b: 2}}, {name: shell, arguments: {command: 'echo hi; id'}},"
    " {name: note, arguments: {path: n.txt, content: x}}]}"
)


def _own_tools(place: Place) -> None:
    (place.folder / "own_tools.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")


def test_an_agent_goes_on_after_a_denied_call(place: Place) -> None:
    _own_tools(place)

    done = place.run(TOOLS, CALLS, "{text: finished}", options=("--skip-gates",))

    assert done.data == {"text": "finished"}
    assert not (place.folder / "n.txt").exists()
    lines = failwell("runs", "logs", "last", "--store", str(place.folder / "state"), cwd=place.folder).out
    assert [line.partition("! ")[2] for line in lines.splitlines()] == [
        "model scripted:replies.yaml: calls 3 tools",
        "tool add: done",
        "tool shell: tool.denied",
        "tool note: tool.denied",
        "model scripted:replies.yaml: answered",
    ]


@pytest.mark.acceptance("relavium 63")
def test_a_tool_step_fails_with_the_denial(place: Place) -> None:
    steps = """\
tools:
  shell: {builtin: run_command, allow: ["npm test"], approval: never}
agents:
  - name: ask
    type: tool
    tool: shell
    arguments: {command: "npm test --x"}
    routes: [{to: $end}]
"""
    done = place.run(steps)

    error = error_of(done)
    assert (done.code, error["kind"]) == (3, "tool.denied")
    assert "--x" not in error["message"]


def test_the_module_beside_a_file_is_the_one_that_is_called(tmp_path: Path) -> None:
    steps = """\
tools: {name: {python: "MODULE:name", effect: read}}
agents:
  - {name: ask, type: tool, tool: name}
"""
    seen: list[Any] = []
    # Two files of one process, and a module of the standard library, have the same name.
    for folder, module in (("one", "same_name_tools"), ("two", "same_name_tools"), ("three", "colorsys")):
        place = Place(tmp_path / folder)
        place.folder.mkdir()
        (place.folder / f"{module}.py").write_text(f"def name() -> str:\n    return {folder!r}\n")
        seen.append(place.run(steps.replace("MODULE", module)).data)

    assert seen == [{"result": "one"}, {"result": "two"}, {"result": "three"}]


def test_mistakes_in_the_definitions_of_tools_are_named_before_the_run(place: Place) -> None:
    done = place.run(
        "tools:\n  a: {builtin: read_flie}\n  b: {python: own_tools.add}\n  c: {builtin: read_file, allow: [x]}\n"
        "agents:\n  - {name: ask, prompt: p, routes: [{to: $end}]}\n"
    )

    assert done.code == 2
    for words in ("read_flie", "`module:function`", "`allow` belongs to"):
        assert words in done.err


@pytest.mark.acceptance("stud-cli 10")
def test_the_text_of_a_failed_tool_is_shown_in_the_step_that_allows_it_and_in_no_other(place: Place) -> None:
    (place.folder / "broken_tools.py").write_text(
        "def look() -> str:\n    raise RuntimeError('the shelf 47 is empty, password=hunter2hunter2')\n"
    )
    steps = (
        'tools: {look: {python: "broken_tools:look", effect: read}}\n'
        "agents:\n"
        "  - {name: ask, prompt: go, tool_errors: full, routes: [{to: other}]}\n"
        "  - {name: other, prompt: go, routes: [{to: $end}]}\n"
    )
    turn = ("{tool_calls: [{name: look}]}", "{text: done}")
    requests: list[Any] = []

    with seen_by_model(requests):
        done = place.run(steps, *turn, *turn)

    assert done.code == 0, done.err
    _, allowed, _, other = map(str, requests)
    assert "the shelf 47 is empty" in allowed
    assert "shelf" not in other
    assert "tool.failed" in allowed
    assert "tool.failed" in other
    assert "hunter2" not in allowed + other


@pytest.mark.acceptance("stud-cli 20")
def test_a_tool_that_timed_out_is_called_once_and_the_model_gets_the_typed_failure(place: Place) -> None:
    (place.folder / "late_tools.py").write_text(
        "import failwell\n\ndef look() -> str:\n    with open('calls', 'a') as file:\n        file.write('x')\n"
        "    raise failwell.Fault(kind='tool.timeout', message='too late')\n"
    )
    steps = (
        'tools: {look: {python: "late_tools:look"}}\n'
        "agents:\n  - {name: ask, prompt: go, routes: [{to: $end}]}\n"
    )
    requests: list[Any] = []

    with seen_by_model(requests):
        done = place.run(steps, "{tool_calls: [{name: look}]}", "{text: done}")

    assert done.code == 0, done.err
    assert (place.folder / "calls").read_text() == "x"
    error = json.loads(requests[-1][-1].parts[0].content)["error"]
    assert error["kind"] == "tool.timeout"


@pytest.mark.acceptance("relavium 9")
def test_a_refused_answer_fails_the_node_and_is_not_repeated(place: Place) -> None:
    done = place.run(ASK, "{text: I will not, finish: content_filter}", "{text: never}")

    shown = failwell("runs", "show", "last", "--format", "json", "--store", str(place.folder / "state")).data
    [node] = shown["nodes"]
    assert (done.code, error_of(done)["kind"]) == (3, "provider.content_refused")
    assert (node["status"], node["attempts"]) == ("failed", 1)
    assert "I will not" not in done.out + done.err + json.dumps(shown)


def test_a_tool_that_must_not_run_twice_runs_once_in_all_attempts_of_its_step(place: Place) -> None:
    (place.folder / "bank_tools.py").write_text(
        "def pay(to: str) -> str:\n"
        "    with open('paid.txt', 'a') as file:\n        file.write(to + '\\n')\n    return 'paid ' + to\n"
    )
    steps = """\
tools: {pay: {python: "bank_tools:pay"}}
agents:
  - name: ask
    prompt: go
    max_attempts: 1
    retry: {max_attempts: 3, delay_seconds: 0}
    routes: [{to: $end}]
"""
    pay = "{tool_calls: [{name: pay, arguments: {to: Ann}}]}"

    done = place.run(steps, pay, pay, "{fail: provider.overloaded}")

    # Each attempt pays Ann twice, as the model asks for it; the later attempts get the results of the first.
    assert done.code == 3
    assert (place.folder / "paid.txt").read_text() == "Ann\nAnn\n"


def test_a_call_that_failed_twice_in_the_same_way_is_not_made_again(place: Place) -> None:
    (place.folder / "counted_tools.py").write_text(
        "def look(where: str) -> str:\n"
        "    with open('looked.txt', 'a') as file:\n        file.write('x')\n"
        "    raise FileNotFoundError(2, 'No such file', where)\n"
    )
    steps = """\
tools: {look: {python: "counted_tools:look", effect: read}}
agents:
  - {name: ask, prompt: go, routes: [{to: $end}]}
"""
    look = "{tool_calls: [{name: look, arguments: {where: here}}]}"
    requests: list[Any] = []

    with seen_by_model(requests):
        done = place.run(steps, look, look, look, look, "{text: done}")

    assert done.code == 0
    assert (place.folder / "looked.txt").read_text() == "xx"
    assert "was not made again" in str(requests[-1])


FETCH = '''
from failwell import gather
from failwell.calls import Partial
from failwell.errors import ToolTransient


def _fetch(number: int) -> str:
    if number > 3:
        raise ToolTransient(kind="tool.busy", message="secret-host is busy")
    return f"page {number}"


def fetch(count: int) -> Partial[str]:
    """Fetch pages."""
    return gather(_fetch, range(1, count + 1))


async def fetch_async(first: int) -> Partial[str]:
    """Fetch pages."""

    async def one(number: int) -> str:
        return _fetch(number)

    return await gather(one, range(first, 6))
'''


@pytest.mark.acceptance("stud-cli 58")
def test_a_tool_that_did_a_part_says_what_failed_beside_what_worked(place: Place) -> None:
    (place.folder / "fetch_tools.py").write_text(FETCH)
    steps = """\
tools:
  fetch: {python: "fetch_tools:fetch", effect: read}
  fetch_async: {python: "fetch_tools:fetch_async", effect: read}
agents:
  - {name: ask, type: tool, tool: TOOL, arguments: ARGUMENTS}
output: {all: "{{ ask.output | tojson }}"}
"""

    def call(tool: str, arguments: str) -> Done:
        return place.run(steps.replace("TOOL", tool).replace("ARGUMENTS", arguments))

    part = call("fetch", "{count: 5}").data["all"]
    whole = call("fetch", "{count: 3}").data["all"]
    also_part = call("fetch_async", "{first: 3}").data["all"]
    nothing = call("fetch_async", "{first: 4}")

    assert part["items"] == ["page 1", "page 2", "page 3"]
    assert [(error["item"], error["kind"]) for error in part["errors"]] == [
        (3, "tool.busy"),
        (4, "tool.busy"),
    ]
    assert "secret-host" not in json.dumps(part)
    assert whole == {"items": ["page 1", "page 2", "page 3"]}
    assert (also_part["items"], len(also_part["errors"])) == (["page 3"], 2)
    assert error_of(nothing)["kind"] == "tool.busy"


def test_a_model_sees_what_failed_beside_what_worked(place: Place) -> None:
    (place.folder / "fetch_tools.py").write_text(FETCH)
    tools = 'tools: {fetch: {python: "fetch_tools:fetch", effect: read}}\n'
    requests: list[Any] = []

    with seen_by_model(requests):
        done = place.run(
            tools + ASK, "{tool_calls: [{name: fetch, arguments: {count: 5}}]}", "{text: three pages}"
        )

    seen = requests[1][-1].parts[0].content
    assert done.data == {"text": "three pages"}
    assert seen.count("tool.busy") == 2
    assert "secret-host" not in seen
