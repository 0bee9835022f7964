"""One error, five languages: each file writes the same wire object, says when it cannot, and never exits."""

import atexit
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pytest

from tests.workflows.run.scripting import a_request, broke

SHIPPED = Path(__file__).resolve().parents[3] / "src/failwell/workflows/script_helpers"
KIND, MESSAGE, DETAILS = (
    "external.git.drift",
    'a "quoted" \\ back\tslash\n€ 😀',
    {"branch": "main", "n": [1, None]},
)

Details = dict[str, Any] | None


class Language(NamedTuple):
    """How to run a program that raises the error of this page and then prints `after`."""

    name: str
    needs: tuple[str, ...]
    program: Callable[[str, Details], list[str]]
    """From a message and either `DETAILS` or nothing, a command line."""


FOLDER = mkdtemp(prefix="failwell-test-")
atexit.register(shutil.rmtree, FOLDER)


def _written(name: str, text: str) -> str:
    path = Path(FOLDER) / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def _python(message: str, details: Details) -> list[str]:
    given = "" if details is None else f", details={details!r}"
    text = (
        f"import sys; sys.path.insert(0, {str(SHIPPED)!r})\nfrom failwell_error import raise_kind\n"
        f"try: print(raise_kind({KIND!r}, {message!r}{given}))\n"
        "except RuntimeError as error: print(error, file=sys.stderr)\n"
        "print('after')"
    )
    return [sys.executable, "-I", "-c", text]


def _shell(shell: str) -> Callable[[str, Details], list[str]]:
    def program(message: str, details: Details) -> list[str]:
        given = [] if details is None else [json.dumps(details)]
        text = f'. "{SHIPPED}/failwell-error.sh"; failwell_error "$@"; echo after'
        return [shell, "-c", text, "script", KIND, message, *given]

    return program


def _node(message: str, details: Details) -> list[str]:
    raised: dict[str, Any] = {"kind": KIND, "message": message}
    if details is not None:
        raised["details"] = details
    text = (
        f"import {{ raiseError }} from {json.dumps(str(SHIPPED / 'failwell-error.mjs'))};\n"
        f"try {{ console.log(raiseError({json.dumps(raised)})); }}"
        " catch (error) { console.error(error.message); }\nconsole.log('after');"
    )
    return ["node", _written("program.mjs", text)]


def _powershell(message: str, details: Details) -> list[str]:
    given = "" if details is None else "-Details @{ branch = 'main'; n = @(1, $null) }"
    text = (
        f"Import-Module '{SHIPPED}/Failwell.Error.psm1'\n"
        f"$message = ConvertFrom-Json '{json.dumps([message])}'\n"
        f"try {{ Write-FailwellError -Kind {KIND} -Message $message[0] {given} }}"
        " catch { [Console]::Error.WriteLine($_.Exception.Message) }\n'after'"
    )
    return ["pwsh", "-NoProfile", "-NonInteractive", "-File", _written("program.ps1", text)]


_CSHARP = """
using System;
using System.Collections.Generic;
static class Program
{
    static void Main(string[] args)
    {
        var details = new Dictionary<string, object> {
            { "branch", "main" }, { "n", new List<object> { 1, null } } };
        try { Console.WriteLine(FailwellError.Raise(args[0], args[1], args.Length > 2 ? details : null)); }
        catch (InvalidOperationException error) { Console.Error.WriteLine(error.Message); }
        Console.WriteLine("after");
    }
}
"""


@cache
def _compiled() -> str:
    source = _written("Program.cs", _CSHARP)
    made = str(Path(source).with_name("program.exe"))
    subprocess.run(
        ["mcs", "-warnaserror", f"-out:{made}", str(SHIPPED / "FailwellError.cs"), source], check=True
    )
    return made


def _csharp(message: str, details: Details) -> list[str]:
    return ["mono", _compiled(), KIND, message, *([] if details is None else ["details"])]


LANGUAGES = [
    Language("python", (), _python),
    Language("dash", ("dash",), _shell("dash")),
    Language("bash", ("bash",), _shell("bash")),
    Language("node", ("node",), _node),
    Language("powershell", ("pwsh",), _powershell),
    Language("csharp", ("mcs", "mono"), _csharp),
]


@pytest.fixture(params=LANGUAGES, ids=[language.name for language in LANGUAGES])
def language(request: pytest.FixtureRequest) -> Language:
    found: Language = request.param
    missing = [tool for tool in found.needs if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed here")
    return found


def run(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    unset = {"FAILWELL_ERROR_OUT", "CONDUCTOR_ERROR_OUT"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        command,
        env={**kept, "LANG": "C.UTF-8", **env},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def written(path: Path) -> dict[str, Any]:
    assert [one.name for one in path.parent.iterdir()] == [path.name], "no draft is left behind"
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return told


@pytest.mark.acceptance("conductor 19")
def test_it_writes_the_wire_object_and_lets_the_program_go_on(language: Language, tmp_path: Path) -> None:
    out = tmp_path / "error.json"

    done = run(language.program(MESSAGE, DETAILS), FAILWELL_ERROR_OUT=str(out))

    assert done.stdout.endswith("after\n"), done
    assert done.returncode == 0
    assert written(out) == {"failwell_error": True, "kind": KIND, "message": MESSAGE, "details": DETAILS}


@pytest.mark.acceptance("conductor 19")
def test_without_the_variable_it_says_so_and_writes_nothing(language: Language, tmp_path: Path) -> None:
    done = run(language.program("m", None), TMPDIR=str(tmp_path))

    assert "FAILWELL_ERROR_OUT is not set" in done.stderr
    assert done.stdout == "after\n"
    assert list(tmp_path.iterdir()) == []


def test_details_that_are_not_given_are_not_written(language: Language, tmp_path: Path) -> None:
    out = tmp_path / "error.json"

    run(language.program("m", None), FAILWELL_ERROR_OUT=str(out))

    assert written(out) == {"failwell_error": True, "kind": KIND, "message": "m"}


def test_the_older_variable_is_used_when_it_is_the_only_one(language: Language, tmp_path: Path) -> None:
    out = tmp_path / "error.json"

    run(language.program("m", None), CONDUCTOR_ERROR_OUT=str(out))

    assert written(out)["kind"] == KIND


def test_a_later_error_replaces_an_earlier_one(language: Language, tmp_path: Path) -> None:
    out = tmp_path / "error.json"
    out.write_text("earlier, and longer than what comes later" * 100)

    run(language.program("later", None), FAILWELL_ERROR_OUT=str(out))

    assert written(out)["message"] == "later"


@pytest.mark.acceptance("conductor 18")
def test_the_outcome_of_a_step_is_the_same_in_every_language(language: Language, tmp_path: Path) -> None:
    done = broke(tmp_path, a_request(*language.program("the branch moved", DETAILS)))

    assert done.envelope == {"kind": KIND, "message": "the branch moved", "details": DETAILS}
    assert done.output["exit_code"] == 0
    assert done.output["stdout"].endswith("after\n")


@pytest.mark.parametrize("shell", ["dash", "bash"])
class TestInAShell:
    def _run(self, shell: str, text: str, out: Path, *arguments: str, **env: str) -> Any:
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} not installed here")
        loaded = f'. "{SHIPPED}/failwell-error.sh"; {text}'
        return run(
            [str(shutil.which(shell)), "-c", loaded, "script", *arguments],
            FAILWELL_ERROR_OUT=str(out),
            **env,
        )

    @pytest.mark.parametrize(
        "message", [MESSAGE, "\x01\x1f\x7f", "ends in a newline\n", "%s %d \\n $(id) `id` *", "-n", "'"]
    )
    def test_without_python_the_message_still_arrives_whole(
        self, shell: str, tmp_path: Path, message: str
    ) -> None:
        tools = tmp_path / "bin"
        tools.mkdir()
        for tool in ("mv",):
            (tools / tool).symlink_to(str(shutil.which(tool)))
        out = tmp_path / "out" / "error.json"
        out.parent.mkdir()

        done = self._run(shell, 'failwell_error "$@"', out, KIND, message, PATH=str(tools))

        assert done.returncode == 0, done
        assert written(out) == {"failwell_error": True, "kind": KIND, "message": message}

    def test_without_python_details_are_refused(self, shell: str, tmp_path: Path) -> None:
        out = tmp_path / "error.json"

        done = self._run(shell, 'failwell_error "$@"', out, KIND, "m", "{}", PATH=str(tmp_path))

        assert done.returncode != 0
        assert "needs python3" in done.stderr
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("details", ["{oops}", "[1]", '"x"', '{"a": NaN}', ""])
    def test_bad_details_write_nothing(self, shell: str, tmp_path: Path, details: str) -> None:
        out = tmp_path / "error.json"

        done = self._run(shell, 'failwell_error "$@" || echo refused', out, KIND, "m", details)

        assert done.stdout == "refused\n"
        assert "nothing was written" in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_a_missing_argument_is_named(self, shell: str, tmp_path: Path) -> None:
        done = self._run(shell, "failwell_error a.b || echo refused", tmp_path / "error.json")

        assert done.stdout == "refused\n"
        assert "usage: failwell_error KIND MESSAGE" in done.stderr

    def test_it_works_in_a_strict_script_and_leaves_its_variables_alone(
        self, shell: str, tmp_path: Path
    ) -> None:
        out = tmp_path / "error.json"
        text = "set -eu; path=mine; kind=mine; failwell_error a.b m; echo $path $kind $-"

        done = self._run(shell, text, out)

        assert done.stdout.startswith("mine mine ")
        assert {"e", "u"} <= set(done.stdout.split()[-1])
        assert written(out)["kind"] == "a.b"


def test_python_refuses_details_that_are_no_json_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from failwell.workflows.script_helpers.failwell_error import raise_kind

    monkeypatch.setenv("FAILWELL_ERROR_OUT", str(tmp_path / "error.json"))

    with pytest.raises(TypeError):
        raise_kind("a.b", "m", details={"x": object()})
    with pytest.raises(ValueError, match="JSON"):
        raise_kind("a.b", "m", details={"x": float("nan")})
    with pytest.raises(ValueError, match="kind and a message"):
        raise_kind("", "m")
    assert list(tmp_path.iterdir()) == []


def test_python_returns_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from failwell.workflows.script_helpers.failwell_error import raise_kind

    monkeypatch.setenv("FAILWELL_ERROR_OUT", str(tmp_path / "error.json"))

    assert raise_kind("a.b", "m") == str(tmp_path / "error.json")
