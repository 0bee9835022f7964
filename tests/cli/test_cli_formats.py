"""Which format an answer and an error take, for a person and for an agent."""

import json
from pathlib import Path

import pytest

from failwell.cli.exit_codes import Exit
from failwell.cli.main import main
from tests.cli.running import failwell

BAD = ["explain", "no.such_kind"]


def shape(text: str) -> str:
    """Which of the three formats `text` is in."""
    if text.startswith("{"):
        json.loads(text)
        return "json"
    return "markdown" if text.startswith("# ") else "text" if text.startswith("error: ") else "none"


@pytest.mark.acceptance("pipelex 63")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (BAD, "text"),
        ([*BAD, "--format", "json"], "json"),
        ([*BAD, "--json"], "json"),
        ([*BAD, "--format=markdown"], "markdown"),
        ([*BAD, "--format", "json", "--error-format", "markdown"], "markdown"),
        ([*BAD, "--format", "json", "--error-format=text"], "text"),
        (["--error-format", "json", *BAD], "json"),
        (["--error-format", "json", *BAD, "--error-format", "markdown"], "markdown"),
        (["--error-format", "json", *BAD, "--format", "markdown"], "json"),
        ([*BAD, "--agent"], "markdown"),
        (["--agent", *BAD], "markdown"),
        ([*BAD, "--agent", "--format", "json"], "json"),
        ([*BAD, "--agent", "--error-format", "text"], "text"),
        (["schema", "nonsense", "--agent"], "json"),
        (["completion", "nonsense", "--agent"], "json"),
        (["frobnicate", "--agent"], "json"),
        (["frobnicate"], "text"),
        (["--agent"], "json"),
        ([*BAD, "--format", "xml", "--error-format", "json"], "json"),
        ([*BAD, "--error-format", "xml"], "text"),
        (["--color", "never", "--agent", *BAD], "markdown"),
        (["--agent", "--", "explain", "--json"], "json"),
    ],
)
def test_the_error_format_follows_the_nearest_wish(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(arguments)

    told = capsys.readouterr()
    assert code == Exit.INVALID_USAGE
    assert told.out == ""
    assert shape(told.err) == expected


@pytest.mark.acceptance("pipelex 63")
def test_no_wish_of_one_call_reaches_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    shapes: list[str] = []

    for arguments in (
        [*BAD, "--agent"],
        ["schema", "nonsense", "--agent"],
        BAD,
        [*BAD, "--json", "--traceback"],
        BAD,
        ["frobnicate", "--agent"],
    ):
        main(arguments)
        shapes.append(shape(capsys.readouterr().err))

    assert shapes == ["markdown", "json", "text", "json", "text", "json"]


@pytest.mark.acceptance("pipelex 62")
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that opens and cannot be read")
def test_a_failure_for_an_agent_is_one_json_object_on_stderr() -> None:
    done = failwell("describe", "--format", "json", "/proc/self/mem")

    assert done.code == Exit.FAILED
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert done.error["error"] is True
    assert done.error["kind"] == "internal.io_error"
    assert done.error["error_category"] == "transient"
    assert done.error["error_domain"] == "runtime"
    assert done.error["retryable"] is True
    assert done.error["message"] == "cannot read `/proc/self/mem`: input/output error"
    assert done.error["error_source"] == ["Unreadable @ internal.io_error", "OSError @ internal.io_error"]


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["kinds"], "id "),
        (["kinds", "--agent"], "| id |"),
        (["kinds", "--json"], "["),
        (["--json", "kinds"], "["),
        (["--format", "markdown", "kinds"], "| id |"),
        (["kinds", "--format", "text", "--agent"], "id "),
        (["schema", "problem", "--agent"], "{"),
        (["completion", "bash", "--agent"], "# Completion"),
        (["explain", "tool.busy", "--agent"], "# tool.busy"),
        (["explain", "tool.busy", "--json"], "{"),
    ],
)
def test_data_takes_the_format_that_was_asked_for(
    arguments: list[str], first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(arguments)

    told = capsys.readouterr()
    assert (code, told.err) == (0, "")
    assert told.out.startswith(first)


@pytest.mark.parametrize(
    ("arguments", "env", "colored"),
    [
        (["kinds"], {}, False),
        (["kinds", "--color", "always"], {}, True),
        (["kinds", "--color", "always"], {"NO_COLOR": "1"}, True),
        (["kinds", "--color", "never"], {}, False),
        (["--color", "always", "kinds"], {}, True),
    ],
)
def test_colour_is_for_those_who_see_it(arguments: list[str], env: dict[str, str], colored: bool) -> None:
    done = failwell(*arguments, env=env)

    assert ("\x1b[" in done.out) is colored
