"""Acceptance items of workflows as they are worded, shown through the command."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import pytest

from tests.cli.running import Done, environment, failwell, failwell_process
from tests.cli.test_cli_run import events, processes_with, wait_for

RAISE = 'printf \'{"kind": "%s", "message": "m"}\' > $FAILWELL_ERROR_OUT'
GATES = """
workflow: {name: flow, entry_point: loop, input: {items: {type: array, default: [1, 2]}}}
agents: []
for_each:
  - name: loop
    type: for_each
    source: workflow.input.items
    as: item
    agent: {name: each, type: workflow, workflow: inner.yaml}
output: {answers: "{{ loop.outputs | map(attribute='picked') | list | tojson }}"}
"""
INNER = """
workflow: {name: inner, entry_point: ask}
agents:
  - name: ask
    type: human_gate
    prompt: Ship it?
    options: [{label: "Yes", value: "yes", route: $end}, {label: "No", value: "no", route: $end}]
output: {picked: "{{ ask.output.selected }}"}
"""


class Place:
    """A folder with workflow files and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = ("--store", str(folder / "store"))

    def write(self, document: Any, name: str = "flow.yaml") -> str:
        text = document if isinstance(document, str) else json.dumps(document)
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def __call__(self, *arguments: str) -> Done:
        return failwell(*arguments, *self.store)

    def events(self, run: str = "last") -> list[dict[str, Any]]:
        return events(self.folder, run)

    @contextmanager
    def start(self, *arguments: str) -> "Generator[subprocess.Popen[bytes]]":
        process = subprocess.Popen(
            [sys.executable, "-m", "failwell", *arguments, *self.store],
            cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=30)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def script(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "script", "command": "sh", "args": ["-c", text], **more}


def flow(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = {"name": "flow", "entry_point": more.pop("entry", steps[0]["name"]), **more.pop("head", {})}
    return {"workflow": head, "agents": list(steps), **more}


def sibling_events(place: Place, run: str, type_: str) -> list[dict[str, Any]]:
    return [event["data"] for event in place.events(run) if event["type"] == type_]


@pytest.mark.acceptance("conductor 33")
def test_a_handler_reads_what_a_script_printed_before_it_raised(place: Place) -> None:
    file = place.write(
        flow(
            script(
                "n", f"echo '{{\"done\": 3}}'; {RAISE % 'external.x'}",
                routes=[{"on_error": "external.x", "to": "handler"}, {"to": "$end"}],
            ),
            {"name": "handler", "type": "set", "value": "{{ n.output.done }} of {{ n.error.kind }}"},
            output={"x": "{{ handler.output }}"},
        )
    )  # fmt: skip

    done = place("run", file, "-q")

    assert (done.code, done.data) == (0, {"x": "3 of external.x"}), done.err


@pytest.mark.acceptance("conductor 43")
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
def test_no_sibling_is_alive_when_a_group_that_fails_fast_ends(place: Place) -> None:
    long = "trap '' TERM; touch {mark}.{name}; (trap '' TERM; setsid sleep 299 {mark}) & sleep 299; : {mark}"
    mark = str(place.folder / "began")
    siblings = [script(name, long.format(mark=mark, name=name)) for name in ("a", "b")]
    failing = script(
        "c", f"until test -e {mark}.a -a -e {mark}.b; do sleep 0.01; done; {RAISE % 'external.x'}"
    )
    # The route of the group begins when the group has ended: it counts the processes that are alive then.
    count = (
        f"import pathlib\nprint(sum({mark!r}.encode() in p.read_bytes() and b'sleep' in p.read_bytes()"
        " for p in pathlib.Path('/proc').glob('[0-9]*/cmdline') if p.exists()))"
    )
    place.write(count, "count.py")
    after = {
        "name": "after", "type": "script", "command": sys.executable, "args": [str(place.folder / "count.py")],
    }  # fmt: skip
    group = {
        "name": "group", "agents": ["a", "b", "c"], "failure_mode": "fail_fast",
        "routes": [{"on_error": True, "to": "after"}, {"to": "$end"}],
    }  # fmt: skip
    file = place.write(
        flow(*siblings, failing, after, entry="group", parallel=[group], output={"alive": "{{ after.output.stdout | trim }}"})
    )  # fmt: skip

    done = place("run", file, "-q")

    assert (done.code, done.data) == (0, {"alive": 0}), done.err
    assert not processes_with(mark)


@pytest.mark.acceptance("conductor 44")
def test_three_failures_of_a_group_are_three_lines_and_the_first_in_time_is_routed(place: Place) -> None:
    members = [
        script("late", f"until test -e second; do sleep 0.01; done; sleep 0.05; {RAISE % 'external.late'}"),
        script("first", f"{RAISE % 'external.first'}; (sleep 0.3; touch second) >/dev/null 2>&1 &"),
        script("middle", f"sleep 0.15; {RAISE % 'external.middle'}"),
    ]
    group = {"name": "group", "agents": ["late", "first", "middle"], "failure_mode": "all_or_nothing"}
    file = place.write(flow(*members, entry="group", parallel=[group]))

    done = failwell("run", file, "-q", "--run-id", "r1", "--format", "json", *place.store, cwd=place.folder)

    lines = (place.folder / "store/runs/r1/errors.jsonl").read_text().splitlines()
    assert (done.code, done.error["kind"]) == (3, "external.first")
    assert [json.loads(line)["envelope"]["kind"] for line in lines] == [
        "external.first", "external.middle", "external.late",
    ]  # fmt: skip


@pytest.mark.acceptance("conductor 53")
def test_the_attempt_in_the_environment_and_in_templates_is_the_same_number(place: Place) -> None:
    step = script(
        "a",
        "echo $FAILWELL_RETRY_ATTEMPT $CONDUCTOR_RETRY_ATTEMPT $1 >> attempts; test $1 = 2",
        raises=["external.x"],
        routes=[
            {"on_error": True, "retry": {"max": 4, "initial_seconds": 0.01, "jitter": 0}},
            {"to": "$end"},
        ],
    )
    step["args"] += ["sh", "{{ failwell.retry_attempt }}"]
    file = place.write(flow(step))

    done = failwell("run", file, "-q", *place.store, cwd=place.folder)

    assert done.code == 0, done.err
    assert (place.folder / "attempts").read_text().splitlines() == ["0 0 0", "1 1 1", "2 2 2"]


@pytest.mark.acceptance("conductor 60")
@pytest.mark.parametrize("has_error_map", [True, False], ids=["with errors", "without an error map"])
def test_a_handled_failure_survives_a_checkpoint_and_one_without_an_error_map_loads(
    place: Place, has_error_map: bool
) -> None:
    from failwell.store.sqlite.run_store import SqliteStore
    from failwell.workflows.running.restoring import restore

    gate = {
        "name": "ask",
        "type": "human_gate",
        "prompt": "?",
        "options": [{"label": "y", "value": "y", "route": "last"}],
    }
    envelope = {
        "kind": "external.x",
        "message": "the shelf is empty",
        "details": {"shelf": 4, "tried": ["a", "b"]},
    }
    first = script(
        "a",
        f"echo '{json.dumps(envelope)}' > $FAILWELL_ERROR_OUT",
        routes=[{"on_error": True, "to": "ask"}, {"to": "$end"}],
    )
    read = ("kind", "message", "details")
    errors = (
        "{{ {"
        + ", ".join(f"'{name}': a.error.{name}" for name in read)
        + "} | tojson if a.error is defined else 'none' }}"
    )
    last = {"name": "last", "type": "set", "value": errors}
    file = place.write(flow(first, gate, last, output={"error": "{{ last.output | tojson }}"}))
    assert place("run", file, "--no-input", "-q", "--run-id", "r1").code == 4
    store = SqliteStore(place.folder / "store")
    state = restore(store, "r1")
    saved = state.to_dict()
    if not has_error_map:
        for scope in saved["scopes"]:
            del scope["errors"]
    store.snapshot("r1", state.seq - 1, json.dumps(saved))
    store.close()

    assert place("gates", "answer", "r1", "ask", "y").code == 0
    done = failwell_process("resume", "r1", "-q", *place.store)

    assert (done.code, done.data) == (0, {"error": envelope if has_error_map else "none"}), done.err
    # What was recorded before the checkpoint is not run again.
    assert [event["data"]["node"] for event in place.events("r1") if event["type"] == "node:started"] == [
        "a",
        "ask",
        "last",
    ]


@pytest.mark.slow
@pytest.mark.acceptance("conductor 65", "relavium 51")
@pytest.mark.parametrize("limited", ["script", "workflow"])
def test_a_time_limit_leaves_no_descendant_and_is_kept_to_within_a_second(place: Place, limited: str) -> None:
    mark = place.folder / "began"
    step = script(
        "a", f"trap '' TERM; touch {mark}; (trap '' TERM; setsid sleep 298 {mark}) & sleep 298; : {mark}"
    )
    head: dict[str, Any] = {}
    if limited == "script":
        step["timeout"] = 1.0
    else:
        head["limits"] = {"timeout_seconds": 1.0}
    file = place.write(flow(step, head=head))

    # Of three, because a busy machine may take its time once.
    overrun, done, recorded = 9.0, Done(0, "", ""), list[dict[str, Any]]()
    for run in ("r0", "r1", "r2"):
        done = place("run", file, "-q", "--run-id", run, "--format", "json")
        recorded = place.events(run)
        overrun = recorded[-1]["at"] - recorded[0]["at"] - 1.0
        assert not processes_with(str(mark))
        if overrun <= 1.0:
            break

    types = [event["type"] for event in recorded]
    assert overrun <= 1.0
    if limited == "script":
        assert done.error["kind"] == "internal.script_timeout"
    else:
        assert done.error["kind"] == "limit.run_timeout"
        assert types.index("run:timeout") < types.index("run:failed") == len(types) - 1


@pytest.mark.acceptance("conductor 68")
@pytest.mark.slow
def test_a_trivial_node_takes_less_than_a_second_and_each_of_200_adds_less_than_four_milliseconds(
    place: Place,
) -> None:
    def chain(count: int) -> str:
        steps = [
            {"name": f"s{n}", "type": "script", "command": "true", "routes": [{"to": f"s{n + 1}" if n + 1 < count else "$end"}]}
            for n in range(count)
        ]  # fmt: skip
        return place.write(flow(*steps, head={"limits": {"max_iterations": 500}}), f"{count}.yaml")

    def seconds(file: str) -> float:
        """The shortest of ten; where others take the processors, the time on them instead of that on the wall."""
        tries: list[float] = []
        while len(tries) < 10 and min(tries, default=9.0) >= 1.0:
            began, used = time.monotonic(), getrusage(RUSAGE_CHILDREN)
            assert failwell_process("run", file, "-q", *place.store, timeout=60).code == 0
            now = getrusage(RUSAGE_CHILDREN)
            is_busy = os.getloadavg()[0] > (os.cpu_count() or 1)
            on_processors = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
            tries.append(on_processors if is_busy else time.monotonic() - began)
        return min(tries)

    one, many = seconds(chain(1)), seconds(chain(201))

    assert one < 1.0
    assert (many - one) / 200 < 0.004


@pytest.mark.acceptance("relavium 44")
def test_retries_are_told_with_the_number_of_the_attempt(place: Place) -> None:
    step = script(
        "a", f"test $FAILWELL_RETRY_ATTEMPT = 2 || {RAISE % 'external.busy'}",
        raises=["external.busy"], retry={"max_attempts": 3, "delay_seconds": 0.01},
    )  # fmt: skip
    file = place.write(flow(step, kinds={"external.busy": {"category": "transient"}}))

    done = place("run", file, "-q", "--run-id", "r1")

    assert done.code == 0, done.err
    assert [data["attempt"] for data in sibling_events(place, "r1", "node:retrying")] == [1, 2]
    assert [data["attempt"] for data in sibling_events(place, "r1", "node:started")] == [1, 2, 3]
    assert [data["attempt"] for data in sibling_events(place, "r1", "node:completed")] == [3]


@pytest.mark.acceptance("relavium 48")
def test_a_run_that_is_stopped_while_it_waits_to_retry_starts_nothing_and_ends(place: Place) -> None:
    step = script(
        "a", f"echo x >> ran; {RAISE % 'external.busy'}",
        raises=["external.busy"], retry={"max_attempts": 3, "delay_seconds": 300},
    )  # fmt: skip
    file = place.write(flow(step, kinds={"external.busy": {"category": "transient"}}))
    with place.start("run", file, "--run-id", "r1", "--progress", "plain") as process:
        assert process.stderr is not None
        while b"again in" not in process.stderr.readline():
            assert process.poll() is None

        stopped = place("stop", "r1", "--format", "json")
        # A timer that is still armed would keep the process for five minutes.
        process.communicate(timeout=20)

    assert stopped.data["status"] == "cancelled"
    assert (place.folder / "ran").read_text() == "x\n"
    assert [event["type"] for event in place.events("r1")][-1] == "run:cancelled"
    assert len(sibling_events(place, "r1", "node:started")) == 1


@pytest.mark.acceptance("relavium 56")
def test_two_gates_are_pending_and_answering_one_leaves_the_other(place: Place) -> None:
    place.write(INNER, "inner.yaml")
    file = place.write(GATES)
    first = place("run", file, "--no-input", "-q", "--run-id", "r1")
    paused = sibling_events(place, "r1", "run:paused")[-1]
    names = [gate["id"] for gate in place("gates", "list", "r1", "--format", "json").data]

    answered = place("gates", "answer", "r1", names[0], "yes")
    after = place("gates", "list", "r1", "--format", "json").data
    resumed = place("resume", "r1", "--no-input", "-q")
    left = place("gates", "list", "r1", "--format", "json").data
    again = sibling_events(place, "r1", "run:paused")[-1]
    place("gates", "answer", "r1", names[1], "no")
    done = place("resume", "r1", "--no-input", "-q")

    assert (first.code, answered.code, resumed.code) == (4, 0, 4)
    assert names == ["loop[0]/ask", "loop[1]/ask"]
    assert (paused["gates"], paused["pending_gate_count"]) == (names, 2)
    assert [(gate["id"], gate["answered"]) for gate in after] == [(names[0], True), (names[1], False)]
    assert [(gate["id"], gate["answered"]) for gate in left] == [(names[1], False)]
    assert (again["gates"], again["pending_gate_count"]) == ([names[1]], 1)
    assert (done.code, done.data) == (0, {"answers": ["yes", "no"]}), done.err


@pytest.mark.acceptance("relavium 60")
def test_what_cannot_be_resumed_or_answered_is_refused_by_its_own_kind_and_nothing_runs(place: Place) -> None:
    gate = {
        "name": "ask",
        "type": "human_gate",
        "prompt": "?",
        "options": [{"label": "y", "value": "y", "route": "last"}],
    }
    document = flow(gate, script("last", "touch ran"))
    file = place.write(document)
    assert place("run", file, "--no-input", "-q", "--run-id", "r1").code == 4
    before = place.events("r1")

    def refused(*arguments: str) -> tuple[int, str, str]:
        done = failwell(*arguments, "--format", "json", *place.store, cwd=place.folder)
        return done.code, done.error["kind"], done.out

    unknown_run = refused("resume", "r2")
    unknown_gate = refused("gates", "answer", "r1", "other", "y")
    malformed = refused("gates", "answer", "r1", "ask", "maybe")
    no_json = refused("gates", "answer", "r1", "ask", "y", "--payload", "{")
    place.write(flow(gate, script("last", "touch ran; true")))
    different = refused("resume", "r1")
    place.write(document)
    with place.start("resume", "r1", "--wait", "--no-input", "-q") as process:
        wait_for(place.folder / "store/runs/r1/control.sock")
        in_memory = refused("resume", "r1")
        is_alive = process.poll() is None

    assert unknown_run == (2, "session.no_snapshot", "")
    assert unknown_gate == malformed == no_json == (2, "validation.input_invalid", "")
    assert different[1:] == ("session.resume_mismatch", "")
    assert in_memory[1:] == ("session.locked", "")
    assert is_alive
    assert not (place.folder / "ran").exists()
    assert place.events("r1")[: len(before)] == before
    assert {event["type"] for event in place.events("r1")[len(before) :]} <= {"run:resumed", "run:paused"}


@pytest.mark.acceptance("relavium 62")
def test_stopping_a_run_that_died_closes_it_once_and_leaves_a_waiting_one_alone(place: Place) -> None:
    gate = {
        "name": "ask",
        "type": "human_gate",
        "prompt": "?",
        "options": [{"label": "y", "value": "y", "route": "$end"}],
    }
    waiting = place.write(flow(gate), "waiting.yaml")
    assert place("run", waiting, "--no-input", "-q", "--run-id", "waits").code == 4
    file = place.write(flow(script("a", f"touch {place.folder / 'began'}; sleep 297")))
    with place.start("run", file, "--run-id", "died") as process:
        wait_for(place.folder / "began")
        process.send_signal(signal.SIGKILL)
        process.wait()
    before, waits = place.events("died"), place.events("waits")

    closed = place("stop", "died", "--format", "json")
    twice = place("stop", "died", "--format", "json")
    statuses = {run["id"]: run["status"] for run in place("runs", "list", "--format", "json").data}

    after = place.events("died")
    assert (closed.code, closed.data["status"]) == (0, "failed")
    assert after[:-1] == before
    assert (after[-1]["seq"], after[-1]["type"]) == (before[-1]["seq"] + 1, "run:failed")
    assert after[-1]["data"]["failure"]["envelope"]["kind"].startswith("internal.")
    assert twice.code == 2
    assert statuses == {"died": "failed", "waits": "waiting"}
    assert place.events("died") == after
    assert place.events("waits") == waits


@pytest.mark.acceptance("relavium 69")
def test_a_secret_that_would_reach_a_prompt_through_the_context_is_refused_by_name_and_never_by_value(
    place: Place,
) -> None:
    # The value is in the file, too: as the default of the input, on the line that the message shows.
    secret = {"input": {"token": {"type": "string", "secret": True, "default": "s3cr3t-default-88"}}}
    alias = {
        "name": "alias",
        "type": "set",
        "value": "{{ workflow.input.token }}",
        "routes": [{"to": "think"}],
    }
    agent = {"name": "think", "prompt": "Use {{ alias.output }} well"}
    file = place.write(flow(alias, agent, head=secret))
    value = ("-i", "token=s3cr3t-value-77")
    said = "the secret `alias.output` (from the input `token`) would be used in `think.prompt`"

    for words in (("validate", file), ("run", file, *value), ("run", file, *value, "--dry-run")):
        command = failwell if words[0] == "validate" else place
        done, text = command(*words, "--format", "json"), command(*words)

        [mistake] = [entry for entry in done.error["mistakes"] if entry["severity"] == "error"]
        assert (done.code, done.out, text.code) == (2, "", 2), words
        assert (mistake["message"], mistake["path"], mistake["file"]) == (said, "think.prompt", file)
        assert mistake["line"] == 1
        assert f"error: {said}" in text.err
        assert f"--> {file}:1:{mistake['column']}" in text.err
        assert "s3cr3t" not in done.err + text.err + text.out
    assert place("runs", "list", "--format", "json").data == []


@pytest.mark.acceptance("relavium 69")
def test_a_secret_is_in_no_event_log_row_or_scope_of_a_run(place: Place) -> None:
    secret = {"input": {"token": {"type": "string", "secret": True}}}
    alias = {"name": "alias", "type": "set", "value": "{{ workflow.input.token }}", "routes": [{"to": "use"}]}
    use = script(
        "use", 'echo "$TOKEN"; echo "$TOKEN" >&2; exit 3',
        env_from={"TOKEN": "alias.output"}, raises=["external.x"], routes=[{"on_error": True, "to": "names"}],
    )  # fmt: skip
    names = {"name": "names", "type": "set", "value": "{{ context.history | tojson }}"}
    file = place.write(
        flow(
            alias,
            use,
            names,
            head=secret,
            output={"all": "{{ [use.output, use.error, names.output] | tojson }}"},
        )
    )

    with place.start(
        "run", file, "-i", "token=s3cr3t-value-77", "--run-id", "r1", "--progress", "plain"
    ) as process:
        out, err = process.communicate(timeout=30)

    stored = b"".join(path.read_bytes() for path in (place.folder / "store").rglob("*") if path.is_file())
    assert process.returncode == 0, err
    assert b"[redacted]" in out
    assert b"s3cr3t" not in out + err + stored
    assert "s3cr3t" not in json.dumps(place.events("r1"))
    for words in (("runs", "show", "r1"), ("runs", "logs", "r1"), ("audit", "export")):
        shown = place(*words)
        assert "s3cr3t" not in shown.out + shown.err
