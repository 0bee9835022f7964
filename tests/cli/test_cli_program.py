"""The program around the commands: starting, failing, being cut off and being interrupted."""

import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from failwell._version import __version__
from failwell.adapters.describe import describe
from failwell.cli.commands import COMMANDS, Command
from failwell.cli.error_output import exit_for
from failwell.cli.exit_codes import Exit
from failwell.cli.main import main
from failwell.cli.options import every_parser
from failwell.errors.fault import Fault
from tests.cli.running import SRC, environment, failwell, failwell_process

LEAVES = [leaf for command in COMMANDS.values() for leaf in command.actions or (command,)]


def modules_after(*arguments: str) -> set[str]:
    code = (
        "import sys; from failwell.cli.main import main; main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    return set(done.stderr.split())


def test_the_version_is_told_without_a_parser() -> None:
    loaded = modules_after("--version")

    assert not loaded & {"argparse", "dataclasses", "failwell.errors.kind_registry", "failwell.cli.commands"}


def test_help_loads_no_room_and_no_command() -> None:
    loaded = modules_after("--help")

    assert not {name for name in loaded if name.startswith(("failwell.errors", "failwell.errors", "rich"))}
    assert not {f"failwell.cli.{command.module}" for command in LEAVES} & loaded


def test_a_command_loads_no_other_command() -> None:
    loaded = modules_after("kinds")

    assert "failwell.cli.errors.kinds" in loaded
    assert not loaded & {
        "failwell.cli.errors.explain",
        "failwell.cli.errors.describe",
        "failwell.adapters.describe",
    }


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--color", "never", "--version"]])
def test_the_version_is_printed_wherever_it_is_asked_for(arguments: list[str]) -> None:
    done = failwell(*arguments)

    assert (done.code, done.out, done.err) == (0, f"failwell {__version__}\n", "")


def test_the_installed_script_is_the_same_program() -> None:
    script = shutil.which("failwell", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("no `failwell` script beside this Python")

    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, f"failwell {__version__}\n")


def test_help_names_every_command_every_exit_code_and_two_examples() -> None:
    done = failwell("--help")

    assert done.code == 0
    assert all(f"\n    {command.name} " in done.out for command in COMMANDS.values())
    assert all(f"\n  {code.value} " in done.out for code in Exit if code is not Exit.PIPE_CLOSED)
    assert done.out.count("failwell describe\n") == 1
    assert "failwell explain provider.rate_limited" in done.out


@pytest.mark.parametrize("command", LEAVES, ids=lambda command: command.full_name)
def test_every_command_explains_itself_alone(command: Command) -> None:
    done = failwell(*command.full_name.split(), "--help")

    assert done.code == 0
    assert done.out.startswith(f"usage: failwell {command.full_name} ")
    assert "--error-format" in done.out
    assert done.out.count("usage:") == 1


@pytest.mark.parametrize("group", [command for command in COMMANDS.values() if command.actions])
def test_a_group_lists_its_actions(group: Command) -> None:
    done = failwell(group.name, "--help")

    assert done.code == 0
    assert done.out.startswith(f"usage: failwell {group.name} ACTION ")
    assert all(f"\n    {action.name} " in done.out for action in group.actions)
    assert "--store" not in done.out


def test_an_action_shows_its_own_options_and_no_others() -> None:
    done = failwell("jobs", "cancel", "--help")

    assert "JOB" in done.out
    assert not {"--older-than", "--priority", "--stream", "--wait"} & set(done.out.split())


def test_a_group_without_an_action_lists(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path)]

    alone = failwell("jobs", "--status", "failed", *store, "--json")
    named = failwell("jobs", "list", "--status", "failed", *store, "--json")

    assert (alone.code, alone.data) == (named.code, named.data) == (0, [])


def test_the_parsers_know_the_options_of_every_command() -> None:
    options = {
        " ".join(words): {option for action in parser.arguments for option in action.option_strings}
        for words, parser in every_parser()
        if parser.command is not None and not parser.command.actions
    }

    assert set(options) == {leaf.full_name for leaf in LEAVES}
    assert all({"--error-format", "--agent", "--color", "--traceback"} <= known for known in options.values())
    assert {"--as", "--view"} <= options["describe"]
    assert "--older-than" in options["jobs prune"]


def test_no_arguments_show_the_help_as_a_mistake() -> None:
    done = failwell()

    assert done.code == Exit.INVALID_USAGE
    assert done.out == ""
    assert done.err.startswith("usage: failwell COMMAND")


@pytest.mark.parametrize(
    ("arguments", "message", "near"),
    [
        (["explian"], "unknown command `explian`", "explain"),
        (["kinds", "--jsno"], "unknown option `--jsno`", "--json"),
        (["kinds", "--category=transeint"], "unknown value for --category `transeint`", "transient"),
        (["--colour", "never", "kinds"], "unknown option `--colour`", "--color"),
        (["schema", "repport"], "unknown document `repport`", "report"),
    ],
)
def test_a_typing_mistake_is_answered_with_what_was_meant(
    arguments: list[str], message: str, near: str
) -> None:
    told, asked = failwell(*arguments), failwell(*arguments, "--error-format", "json")

    assert told.code == asked.code == Exit.INVALID_USAGE
    assert told.out == asked.out == ""
    assert told.err.startswith(f"error: {message}; did you mean `{near}`?\n")
    assert asked.error["near"] == near
    assert near in asked.error["valid"]
    assert asked.error["kind"] == "validation.input_invalid"


def test_an_unknown_command_lists_the_commands() -> None:
    done = failwell("frobnicate", "--agent")

    assert done.code == Exit.INVALID_USAGE
    assert done.out == ""
    assert done.error["valid"] == list(COMMANDS)


def test_output_that_nobody_reads_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "-m", "failwell", "kinds"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        env=environment(),
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (Exit.PIPE_CLOSED, b"")


def test_an_error_that_nobody_reads_still_sets_the_exit_code() -> None:
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "-m", "failwell", "nonsense"],
        stdout=subprocess.PIPE,
        stderr=writer,
        check=False,
        env=environment(),
    )
    os.close(writer)

    assert (done.returncode, done.stdout) == (Exit.INVALID_USAGE, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_and_not_mistaken_for_success() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "failwell", "kinds"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env=environment(),
        )

    assert done.returncode == Exit.FAILED
    assert done.stderr.startswith(
        b"error: cannot write the output: no space left on device\n  kind: resource.disk"
    )
    assert b"Traceback" not in done.stderr


def test_a_closed_stdout_is_no_error() -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m failwell kinds >&-'],
        capture_output=True,
        check=False,
        env=environment(),
    )

    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_ends_it_without_a_word() -> None:
    master, slave = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "failwell", "describe"],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert running.stderr is not None
    invitation = running.stderr.readline() + running.stderr.readline()

    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    os.close(master)
    os.close(slave)

    assert b"Paste a traceback" in invitation
    assert b"Ctrl-D" in invitation
    assert (running.returncode, out, err) == (Exit.INTERRUPTED, b"", b"")


def test_a_terminal_that_cannot_show_a_character_shows_its_code() -> None:
    given = "ValueError: caf\u00e9"

    done = failwell_process(
        "describe", given=given, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    )

    assert done.code == 0
    assert "caf\\xe9" in done.out


@pytest.fixture
def broken_command(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(
        COMMANDS, "broken", Command("broken", "a command whose module is missing", "not_there")
    )
    return "broken"


def test_a_defect_of_ours_is_said_to_be_one(broken_command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([broken_command])

    told = capsys.readouterr()
    assert code == Exit.FAILED
    assert told.out == ""
    assert told.err.startswith("error: failwell itself failed (ModuleNotFoundError)")
    assert "internal.bug" in told.err
    assert "--traceback" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("place", [0, 1], ids=["before the command", "after it"])
def test_the_stack_of_a_defect_is_shown_on_request(
    broken_command: str, capsys: pytest.CaptureFixture[str], place: int
) -> None:
    arguments = [broken_command]
    arguments.insert(place, "--traceback")

    main(arguments)
    text = capsys.readouterr().err
    main([*arguments, "--error-format", "json"])
    objects = capsys.readouterr().err

    assert "Traceback (most recent call last):" in text
    assert "commands.py" in text
    assert objects.count("\n") == 1
    assert '"traceback": [' in objects


def test_what_the_tests_run_is_this_tree() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import failwell; print(failwell.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )

    assert Path(done.stdout.strip()).is_relative_to(SRC)


def test_a_part_of_ours_that_is_missing_is_a_defect_and_not_the_callers_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from failwell.cli.errors import schema

    monkeypatch.setitem(schema.FILES, "report", "no-such-file.json")

    code = main(["schema"])

    assert code == Exit.FAILED
    assert capsys.readouterr().err.startswith("error: failwell itself failed (FileNotFoundError)")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("validation.input_invalid", Exit.INVALID_USAGE),
        ("validation.config_invalid", Exit.INVALID_USAGE),
        ("validation.path_denied", Exit.INVALID_USAGE),
        ("session.interaction_required", Exit.WAITING),
        ("provider.rate_limited", Exit.FAILED),
        ("internal.bug", Exit.FAILED),
        ("limit.budget_exceeded", Exit.FAILED),
    ],
)
def test_the_exit_code_follows_from_the_kind(kind: str, code: Exit) -> None:
    assert exit_for(describe(Fault(kind=kind))) is code
