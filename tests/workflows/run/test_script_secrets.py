"""A secret goes to the script's environment and nowhere else."""

import asyncio
import json
from pathlib import Path

import pytest

from failwell.workflows.failure import Failure
from failwell.workflows.running.script_executor import ScriptExecutor
from tests.workflows.run.scripting import broke, python, run, sh, some_tools, with_executor, worked

VALUE = 'p"w/with space-7'
TOKEN = {"TOKEN": "workflow.input.token"}


def value_of(reference: str) -> str:
    assert reference == "workflow.input.token"
    return VALUE


def test_a_secret_reaches_the_script(tmp_path: Path) -> None:
    done = worked(tmp_path, sh('printf %s "$TOKEN" | wc -c', env_from=TOKEN), secret=value_of)

    assert done.output["stdout"].strip() == str(len(VALUE))


@pytest.mark.parametrize(
    "text",
    [
        "print(os.environ['TOKEN'])",
        "print(json.dumps({'token': os.environ['TOKEN']}))",
        "print(urllib.parse.quote(os.environ['TOKEN'], safe=''), file=sys.stderr)",
        "print('x' * 200 + os.environ['TOKEN'] + 'y' * 200)",
        "sys.exit(os.environ['TOKEN'])",
        "t = os.environ['TOKEN']; wire = {'kind': 'a.b', 'message': t, 'details': {'x': [t]}}; "  # noqa: ISC004  (one program)
        "open(os.environ['FAILWELL_ERROR_OUT'], 'w').write(json.dumps(wire))",
        "open(os.environ['FAILWELL_ERROR_OUT'], 'w').write(os.environ['TOKEN'])",
    ],
)
@pytest.mark.parametrize("limit", [None, 64])
def test_a_secret_is_in_nothing_that_comes_out(tmp_path: Path, text: str, limit: int | None) -> None:
    program = f"import json, os, sys, urllib.parse; {text}"
    heard: list[str] = []

    done = run(
        tmp_path,
        python(program, env_from=TOKEN, opted_in=True, output_limit=limit),
        secret=value_of,
        note=lambda kind, told: heard.append(json.dumps(told)),  # pyright: ignore[reportUnknownLambdaType]
    )

    told = json.dumps([repr(done.output), done.to_dict() if isinstance(done, Failure) else None, heard])
    told += "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    for form in (
        VALUE,
        json.dumps(VALUE)[1:-1],
        "p%22w%2Fwith%20space-7",
        json.dumps(json.dumps(VALUE))[3:-3],
    ):
        assert form not in told


def test_a_secret_in_the_command_is_masked_in_the_failure(tmp_path: Path) -> None:
    async def work(executor: ScriptExecutor) -> Failure:
        tools = some_tools(tmp_path, secret=value_of)
        await executor.run(sh("true", env_from=TOKEN), tools)
        done = await executor.run(sh("true", working_dir=f"/{VALUE}"), tools)
        assert isinstance(done, Failure)
        return done

    done = asyncio.run(with_executor(work))

    assert VALUE not in json.dumps(done.to_dict())
    assert json.dumps(VALUE)[1:-1] not in json.dumps(done.to_dict())


def test_a_later_script_cannot_print_it_either(tmp_path: Path) -> None:
    async def work(executor: ScriptExecutor) -> str:
        tools = some_tools(tmp_path, secret=value_of)
        await executor.run(sh(f'printf %s "$TOKEN" >{tmp_path}/kept', env_from=TOKEN), tools)
        return (await executor.run(sh(f"cat {tmp_path}/kept"), tools)).output["stdout"]

    assert asyncio.run(with_executor(work)) == "[redacted]"


def test_ordinary_output_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_KEY", "production")

    done = worked(tmp_path, sh("echo production password=hunter2"))

    assert done.output["stdout"] == "production password=hunter2\n"


def test_a_secret_too_short_to_be_told_from_a_word_still_works(tmp_path: Path) -> None:
    done = worked(tmp_path, sh('test "$TOKEN" = abc; echo $?', env_from=TOKEN), secret=lambda _: "abc")  # pyright: ignore[reportUnknownLambdaType]

    assert done.output["stdout"] == "0\n"


def test_last_words_are_masked_before_they_are_cut(tmp_path: Path) -> None:
    shape = "ghp_" + "a1B2" * 9

    done = broke(tmp_path, sh(f"printf '%s%01990d' {shape} 7 >&2; exit 1", opted_in=True))

    assert "a1B2a1B2" not in json.dumps(done.to_dict())
