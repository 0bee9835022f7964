"""`failwell validate` and the schema of workflow files, as a person or a program runs them."""

from pathlib import Path

import pytest
import yaml

from failwell.cli.exit_codes import Exit
from tests.cli.running import failwell

GOOD = """\
workflow:
  name: release
  entry_point: fetch
  input:
    token: {type: string, secret: true}
agents:
  - name: fetch
    type: script
    command: git
    args: [fetch]
    env_from: {TOKEN: workflow.input.token}
    routes:
      - {on_error: external.drift, to: reset}
      - {on_error: true, halt: {message: "gave up: {{ error.message }}"}}
      - {to: $end}
  - name: reset
    type: script
    command: git
    args: [reset]
    routes: [{to: fetch}]
"""


def a_file(folder: Path, text: str = GOOD, name: str = "flow.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_good_file_says_what_was_checked(tmp_path: Path) -> None:
    path = a_file(tmp_path)

    done = failwell("validate", path)

    assert (done.code, done.err) == (Exit.DONE, "")
    assert done.out == f"{path}: valid (2 nodes, 4 routes; no mistakes)\n"


def test_a_program_gets_an_array_with_ids(tmp_path: Path) -> None:
    path = a_file(tmp_path)

    [told] = failwell("validate", path, "--json").data

    assert told["id"] == path
    assert (told["workflow"], told["nodes"], told["routes"], told["warnings"]) == ("release", 2, 4, [])


@pytest.mark.acceptance("conductor 6", "relavium 70")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("to: reset", "to: rset"), "fetch.routes[0].to"),
        (("command: git\n    args: [fetch]", "comand: git"), "agents[0].comand"),
        (("entry_point: fetch", "entry_point: fetch\n  entry_point: fetch"), "workflow.entry_point"),
        (("args: [reset]", "args: 5"), "agents[1].args"),
        (("args: [fetch]", "args: ['{{ workflow.input.token }}']"), "fetch.args[0]"),
    ],
)
def test_a_wrong_file_is_refused_with_its_field_and_stdout_stays_empty(
    tmp_path: Path, change: tuple[str, str], field: str
) -> None:
    path = a_file(tmp_path, GOOD.replace(*change))

    done = failwell("validate", path, "--json")

    assert (done.code, done.out) == (Exit.INVALID_USAGE, "")
    assert done.error["kind"] == "validation.config_invalid"
    assert field in [mistake["path"] for mistake in done.error["mistakes"]]
    assert all(mistake["file"] == path and mistake["line"] > 0 for mistake in done.error["mistakes"])


@pytest.mark.acceptance("relavium 70")
def test_a_circle_of_files_is_refused(tmp_path: Path) -> None:
    text = "workflow: {name: x, entry_point: a}\nagents: [{name: a, type: workflow, workflow: flow.yaml}]\n"

    done = failwell("validate", a_file(tmp_path, text))

    assert (done.code, done.out) == (Exit.INVALID_USAGE, "")
    assert "would run itself" in done.err


@pytest.mark.acceptance("conductor 64")
def test_a_name_that_is_used_twice_is_refused(tmp_path: Path) -> None:
    done = failwell("validate", a_file(tmp_path, GOOD.replace("name: reset", "name: fetch")))

    assert done.code == Exit.INVALID_USAGE
    assert "the name `fetch` is used twice" in done.err


def test_a_person_sees_the_line_with_a_caret_and_a_hint(tmp_path: Path) -> None:
    path = a_file(tmp_path, GOOD.replace("to: reset}", "to: rset}"))

    done = failwell("validate", path)

    assert "error: a route of `fetch` leads to `rset`, and no step has that name" in done.err
    assert f"--> {path}:13:9" in done.err
    assert "13 |       - {on_error: external.drift, to: rset}\n   |         ^\n" in done.err
    assert "hint: did you mean `reset`?" in done.err
    assert done.err.endswith("1 error and 1 warning\n")


def test_warnings_pass_unless_they_are_taken_for_errors(tmp_path: Path) -> None:
    path = a_file(
        tmp_path, GOOD.replace("{on_error: external.drift, to: reset}", "{on_error: x.y, to: $end}")
    )

    lenient = failwell("validate", path)
    strict = failwell("validate", path, "--strict")

    assert lenient.code == Exit.DONE
    assert "warning: nothing leads to `reset`" in lenient.out
    assert lenient.out.endswith("valid (2 nodes, 4 routes; 1 warning)\n")
    assert (strict.code, strict.out) == (Exit.INVALID_USAGE, "")
    assert "warning: nothing leads to `reset`" in strict.err


def test_several_files_are_checked_together(tmp_path: Path) -> None:
    good = a_file(tmp_path)
    bad = a_file(tmp_path, GOOD.replace("to: reset}", "to: rset}"), "bad.yaml")

    done = failwell("validate", good, bad, "--format", "markdown")

    assert done.code == Exit.INVALID_USAGE
    assert "- **error**" in done.err
    assert "bad.yaml:13:9" in done.err


def test_a_file_that_is_not_there_is_asked_wrongly(tmp_path: Path) -> None:
    done = failwell("validate", str(tmp_path / "none.yaml"), "--json")

    assert (done.code, done.out) == (Exit.INVALID_USAGE, "")
    assert done.error["kind"] == "validation.path_not_found"


@pytest.mark.slow
def test_the_schema_for_editors_takes_what_the_checker_takes() -> None:
    import jsonschema

    schema = failwell("schema", "workflow").data

    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(GOOD), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(GOOD.replace("command: git", "comand: git")), schema)
