"""A script's output: its streams, its exit code, and the object that it printed."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from failwell.workflows.running.script_executor import ScriptExecutor
from tests.workflows.run.scripting import (
    broke,
    envelope,
    python,
    run,
    sh,
    some_tools,
    with_executor,
    worked,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "files": {"type": "array", "items": {"type": "object", "required": ["name"]}},
    },
    "required": ["count"],
}


def printing(value: Any, **more: Any) -> Any:
    return python(f"print({json.dumps(value) if not isinstance(value, str) else value!r})", **more)


def test_the_keys_of_a_printed_object_join_the_output_and_win(tmp_path: Path) -> None:
    done = worked(tmp_path, sh("""echo '{"count": 2, "exit_code": "mine"}'"""))

    assert done.output == {
        "stdout": '{"count": 2, "exit_code": "mine"}\n',
        "stderr": "",
        "exit_code": "mine",
        "count": 2,
    }


@pytest.mark.parametrize("text", ["[1, 2]", "7", "{oops}", '{"a": 1} {"b": 2}', "{}x", ""])
def test_anything_else_on_stdout_is_text(tmp_path: Path, text: str) -> None:
    done = worked(tmp_path, python(f"print({text!r}, end='')"))

    assert done.output == {"stdout": text, "stderr": "", "exit_code": 0}


def test_a_declared_output_is_held_to_its_schema(tmp_path: Path) -> None:
    done = worked(tmp_path, sh("""echo '{"count": 2, "extra": true}'""", output=SCHEMA))

    assert (done.output["count"], done.output["extra"]) == (2, True)


@pytest.mark.parametrize(
    ("text", "why", "field"),
    [
        ("nothing", "stdout is not exactly one JSON object", None),
        ('{"count": 1} and more', "stdout is not exactly one JSON object", None),
        ("[1]", "stdout is not exactly one JSON object", None),
        ("{}", "`count` is missing", "count"),
        ('{"count": "hunter2"}', "`count` breaks the rule `type`", "count"),
        ('{"count": 0}', "`count` breaks the rule `minimum`", "count"),
        ('{"count": 1, "files": [{"name": 1}, {}]}', "`files.1.name` is missing", "files.1.name"),
    ],
)
def test_an_output_that_breaks_its_schema_names_the_place_and_no_value(
    tmp_path: Path, text: str, why: str, field: str | None
) -> None:
    done = broke(tmp_path, python(f"print({text!r})", output=SCHEMA))

    told = envelope(done)
    assert told["kind"] == "internal.schema_violation"
    assert told["details"]["original_message"] == why
    assert told["details"].get("failed_field") == field
    assert "hunter2" not in json.dumps(done.to_dict())
    assert done.output["stdout"].strip() == text


def test_a_key_of_the_output_that_no_schema_declares_is_not_repeated(tmp_path: Path) -> None:
    schema = {"properties": {"ages": {"additionalProperties": {"required": ["age"]}}}}

    done = broke(tmp_path, sh("""echo '{"ages": {"vera@acme.test": {}}}'""", output=schema))

    assert envelope(done)["details"]["failed_field"] == "ages.(key).age"
    assert "vera" not in json.dumps(done.to_dict())


def test_an_empty_declaration_still_asks_for_one_object(tmp_path: Path) -> None:
    assert envelope(broke(tmp_path, sh("echo hi", output={})))["kind"] == "internal.schema_violation"
    assert worked(tmp_path, sh("echo '{}'", output={})).output["exit_code"] == 0


def test_a_schema_may_speak_of_the_exit_code_and_may_be_closed(tmp_path: Path) -> None:
    about_code = {"type": "object", "properties": {"exit_code": {"const": 4}}, "required": ["exit_code"]}
    closed: dict[str, Any] = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}

    assert worked(tmp_path, sh("echo '{}'; exit 4", output=about_code)).output["exit_code"] == 4
    assert worked(tmp_path, sh("""echo '{"a": 1}'""", output=closed)).output["a"] == 1


def test_a_declared_output_that_is_too_large_says_so(tmp_path: Path) -> None:
    done = broke(tmp_path, printing({"a": "x" * 500}, output={}, output_limit=100))

    assert envelope(done)["details"]["original_message"] == (
        "stdout has 510 bytes, more than its limit of 100; print less, or set `output_limit: 510` or more on the step"
    )


def test_no_validator_is_loaded_for_a_script_without_a_schema(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = (
        "import sys; from pathlib import Path\n"
        "from tests.workflows.run.scripting import sh, worked\n"
        f"worked(Path({str(tmp_path)!r}), sh('true'))\n"
        "print('jsonschema_rs' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
    )

    assert done.stdout == "False\n"


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_script_knows_its_run_its_key_and_how_often_it_was_tried(tmp_path: Path, attempt: int) -> None:
    text = 'echo "$FAILWELL_RETRY_ATTEMPT" "$CONDUCTOR_RETRY_ATTEMPT" "$FAILWELL_IDEMPOTENCY_KEY" "$FAILWELL_RUN_ID"'

    done = worked(tmp_path, sh(text, attempt=attempt))

    before = str(attempt - 1)
    assert done.output["stdout"].split() == [before, before, f"run-1/build/1.{attempt}", "run-1"]


def test_the_variables_of_an_outer_run_are_not_handed_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ERROR_OUT", "USAGE_OUT", "RETRY_ATTEMPT", "IDEMPOTENCY_KEY", "RUN_ID"):
        monkeypatch.setenv(f"FAILWELL_{name}", "outer")
    monkeypatch.setenv("CONDUCTOR_ERROR_OUT", "outer")
    monkeypatch.setenv("CONDUCTOR_RETRY_ATTEMPT", "outer")
    monkeypatch.setenv("MINE", "handed down")

    done = worked(tmp_path, sh("env"))

    assert "=outer" not in done.output["stdout"]
    assert "MINE=handed down" in done.output["stdout"]


def test_a_change_of_the_environment_reaches_the_next_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(executor: ScriptExecutor) -> list[str]:
        said: list[str] = []
        for value in ("one", "two"):
            monkeypatch.setenv("MINE", value)
            done = await executor.run(sh('echo "$MINE"'), some_tools(tmp_path))
            said.append(done.output["stdout"].strip())
        return said

    assert asyncio.run(with_executor(work)) == ["one", "two"]


@pytest.mark.parametrize(
    "text", ["exit 0", "exit 3", 'echo \'{"kind":"a.b","message":"m"}\' >$FAILWELL_ERROR_OUT']
)
def test_a_script_may_say_what_it_used_however_it_ends(tmp_path: Path, text: str) -> None:
    usage = '{"cost_usd": 0.25, "input_tokens": 10, "output_tokens": 5, "model": "m", "other": 1}'

    done = run(tmp_path, sh(f"echo '{usage}' >$FAILWELL_USAGE_OUT; {text}"))

    assert done.usage == {"cost_usd": 0.25, "input_tokens": 10, "output_tokens": 5, "model": "m"}


@pytest.mark.parametrize("usage", ["junk", "[]", '{"cost_usd": -1, "input_tokens": true, "model": 7}', ""])
def test_usage_that_makes_no_sense_is_none(tmp_path: Path, usage: str) -> None:
    done = worked(tmp_path, sh(f"echo '{usage}' >$FAILWELL_USAGE_OUT"))

    assert done.usage is None
    assert list(tmp_path.rglob("*.json")) == []


def test_usage_that_cannot_be_read_is_told_to_watchers(tmp_path: Path) -> None:
    told: list[str] = []

    def note(kind: str, _: dict[str, Any]) -> None:
        told.append(kind)

    worked(tmp_path, sh("echo junk >$FAILWELL_USAGE_OUT"), note=note)

    assert told == ["node:usage_ignored"]


def test_many_scripts_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    async def work(executor: ScriptExecutor) -> list[str]:
        tools = some_tools(tmp_path)
        requests = [
            sh(f'echo \'{{"kind": "a.b", "message": "{n}"}}\' >$FAILWELL_ERROR_OUT; echo {n}')
            for n in range(40)
        ]
        done = await asyncio.gather(*(executor.run(one, tools) for one in requests))
        return [f"{one.report.message} {one.output['stdout']}" for one in done]  # type: ignore[union-attr]

    assert asyncio.run(with_executor(work)) == [f"{n} {n}\n" for n in range(40)]
