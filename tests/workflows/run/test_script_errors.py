"""A script's error file decides; without one the exit code speaks only where the author asked for it."""

import asyncio
import json
import os
import resource
import stat
from pathlib import Path
from typing import Any

import pytest

from failwell.errors.axes import Category
from failwell.workflows.failure import Failure
from failwell.workflows.plan import DeclaredKind
from failwell.workflows.running.script_executor import ScriptExecutor
from failwell.workflows.template.names import MISSING
from tests.workflows.run.scripting import a_request, broke, envelope, python, run, sh, some_tools, worked

RAISED = {"kind": "external.git.drift", "message": "the branch moved", "details": {"branch": "main"}}


def delay_of(failed: Failure) -> float:
    assert failed.report.not_before is not None
    return failed.report.not_before.after


def raising(wire: Any, *, then: str = "") -> str:
    """A shell text that writes `wire` to the error file."""
    text = wire if isinstance(wire, str) else json.dumps(wire)
    return f"cat >$FAILWELL_ERROR_OUT <<'END'\n{text}\nEND\n{then}"


def left_in(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


@pytest.mark.acceptance("conductor 8", "conductor 9")
@pytest.mark.parametrize("code", [0, 1, 3])
@pytest.mark.parametrize("opted_in", [True, False])
def test_what_a_script_raised_decides_whatever_its_exit_code(
    tmp_path: Path, code: int, opted_in: bool
) -> None:
    done = broke(tmp_path, sh(raising(RAISED, then=f"exit {code}"), opted_in=opted_in))

    assert envelope(done) == RAISED
    assert done.typed is True
    assert done.report.kind == "external.git.drift"
    assert done.report.scene.node == "build"


def test_a_failed_script_keeps_what_it_had_put_out(tmp_path: Path) -> None:
    done = broke(tmp_path, sh(raising(RAISED, then="""echo '{"half": 1}'; exit 2""")))

    assert done.output is not MISSING
    assert done.output == {"stdout": '{"half": 1}\n', "stderr": "", "exit_code": 2, "half": 1}


def test_a_kind_that_the_file_declares_has_its_category(tmp_path: Path) -> None:
    kinds = {
        "external.git.drift": DeclaredKind(name="external.git.drift", category=Category.TRANSIENT),
    }

    done = broke(tmp_path, sh(raising(RAISED)), kinds=kinds)

    assert done.report.category == "transient"
    assert done.report.retryable is True


def test_a_wait_that_the_script_knows_of_reaches_the_report(tmp_path: Path) -> None:
    done = broke(tmp_path, sh(raising({**RAISED, "details": {"retry_after": 30}})))

    assert delay_of(done) == 30.0


def test_a_time_that_the_script_names_is_measured_from_its_end(tmp_path: Path) -> None:
    text = (
        "import datetime, json, os, time\n"
        "at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=100)\n"
        "wire = {'kind': 'a.b', 'message': 'm', 'details': {'retry_after': at.isoformat()}}\n"
        "time.sleep(0.5)\n"
        "open(os.environ['FAILWELL_ERROR_OUT'], 'w').write(json.dumps(wire))"
    )

    done = broke(tmp_path, python(text))

    assert 90 < delay_of(done) < 99.6


@pytest.mark.acceptance("conductor 10")
def test_the_author_cannot_send_the_error_file_elsewhere(tmp_path: Path) -> None:
    elsewhere = {"FAILWELL_ERROR_OUT": "/elsewhere", "CONDUCTOR_ERROR_OUT": "/elsewhere", "OWN": "kept"}

    done = worked(tmp_path, sh('echo "$FAILWELL_ERROR_OUT" "$CONDUCTOR_ERROR_OUT" "$OWN"', env=elsewhere))

    first, second, own = done.output["stdout"].split()
    assert first == second
    assert first.startswith(f"{tmp_path}/")
    assert own == "kept"


@pytest.mark.acceptance("conductor 11")
@pytest.mark.parametrize(
    "request_",
    [
        sh("true"),
        sh(raising(RAISED)),
        sh(raising("junk", then="exit 1")),
        sh(raising(RAISED, then="echo x >$FAILWELL_ERROR_OUT.tmp; kill -9 $$")),
        sh(raising(RAISED, then="echo x >$FAILWELL_ERROR_OUT.tmp; sleep 1000"), timeout=0.2),
        sh("mkdir $FAILWELL_ERROR_OUT; touch $FAILWELL_ERROR_OUT/x"),
        a_request("no-such-command"),
    ],
    ids=["well", "raised", "malformed", "killed", "timed out", "a folder", "not started"],
)
def test_no_error_file_remains_however_the_script_ends(tmp_path: Path, request_: Any) -> None:
    run(tmp_path, request_)

    assert left_in(tmp_path) == []


def test_the_error_file_lies_where_nobody_else_can_read_it(tmp_path: Path) -> None:
    done = worked(tmp_path, sh('stat -c %a "$(dirname "$FAILWELL_ERROR_OUT")"'))

    assert done.output["stdout"] == "700\n"


@pytest.mark.acceptance("conductor 12")
def test_a_bad_exit_is_a_failure_where_the_author_asked_for_it(tmp_path: Path) -> None:
    text = "python3 -c 'print(\"x\" * 5000)' >&2; echo 'fatal: no such branch' >&2; echo >&2; exit 3"

    done = broke(tmp_path, sh(text, opted_in=True))

    told = envelope(done)
    assert told["kind"] == "internal.script_error"
    assert told["message"] == "fatal: no such branch"
    assert (told["details"]["exit_code"], told["details"]["command"]) == (3, "sh")
    assert len(told["details"]["stderr_tail"]) == 2_000
    assert told["details"]["stderr_tail"].endswith("fatal: no such branch\n\n")
    assert done.typed is True


@pytest.mark.acceptance("conductor 12")
def test_a_silent_bad_exit_names_its_code(tmp_path: Path) -> None:
    assert envelope(broke(tmp_path, sh("exit 3", opted_in=True)))["message"] == "script exited with code 3"


@pytest.mark.acceptance("conductor 13")
def test_a_bad_exit_is_a_result_where_nobody_asked(tmp_path: Path) -> None:
    done = worked(tmp_path, sh("echo out; echo err >&2; exit 3"))

    assert done.output == {"stdout": "out\n", "stderr": "err\n", "exit_code": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kill -SEGV $$", "script was ended by SIGSEGV"),
        ("echo last words >&2; kill -9 $$", "script was ended by SIGKILL: last words"),
    ],
)
def test_a_script_that_a_signal_ended_says_which(tmp_path: Path, text: str, message: str) -> None:
    done = broke(tmp_path, sh(text, opted_in=True))

    assert envelope(done)["message"] == message
    assert envelope(done)["details"]["exit_code"] < 0
    assert done.output["exit_code"] == envelope(done)["details"]["exit_code"]


@pytest.mark.acceptance("conductor 14", "conductor 15", "conductor 16")
@pytest.mark.parametrize(
    ("write", "why"),
    [
        (raising("no JSON"), "not valid JSON"),
        (raising([1]), "not a JSON object"),
        (raising({"kind": "a.b"}), "`message` is missing"),
        (raising({**RAISED, "kind": "internal.script_error"}), "is reserved for the runtime"),
        (raising({**RAISED, "kind": "provider.exhausted"}), "is reserved for the runtime"),
        (r"printf '{\377}' >$FAILWELL_ERROR_OUT", "not UTF-8"),
        ("head -c 70000 /dev/zero >$FAILWELL_ERROR_OUT", "more than 65536 bytes"),
        ("mkfifo $FAILWELL_ERROR_OUT", "not an ordinary file"),
        ("ln -s /etc/hostname $FAILWELL_ERROR_OUT", "cannot be read"),
        ("mkdir $FAILWELL_ERROR_OUT", "not an ordinary file"),
    ],
)
def test_a_malformed_error_file_is_a_schema_violation(tmp_path: Path, write: str, why: str) -> None:
    done = broke(tmp_path, sh(write, opted_in=True))

    told = envelope(done)
    assert told["kind"] == "internal.schema_violation"
    assert (told["details"]["node"], told["details"]["source"]) == ("build", "script")
    assert why in told["details"]["original_message"]
    assert why in told["message"]


@pytest.mark.acceptance("conductor 15")
def test_an_error_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    text = f"printf '\\357\\273\\277' >$FAILWELL_ERROR_OUT; echo '{json.dumps(RAISED)}' >>$FAILWELL_ERROR_OUT"

    assert envelope(broke(tmp_path, sh(text))) == RAISED


@pytest.mark.acceptance("conductor 17")
def test_a_blank_error_file_is_none(tmp_path: Path) -> None:
    assert worked(tmp_path, sh("echo ' ' >$FAILWELL_ERROR_OUT")).output["exit_code"] == 0


def test_a_time_limit_is_a_failure_with_what_was_printed_by_then(tmp_path: Path) -> None:
    done = broke(tmp_path, sh("echo so far; sleep 1000", timeout=0.3))

    assert envelope(done)["kind"] == "internal.script_timeout"
    assert envelope(done)["details"] == {"timeout": 0.3, "command": "sh"}
    assert done.output["stdout"] == "so far\n"
    assert done.typed is False
    assert done.report.category == "ambiguous"


def test_what_a_script_raised_before_its_time_was_up_is_told_beside_the_time_out(tmp_path: Path) -> None:
    done = broke(tmp_path, sh(raising(RAISED, then="sleep 1000"), timeout=0.3, opted_in=True))

    assert envelope(done)["kind"] == "internal.script_timeout"
    assert envelope(done)["details"]["raised"]["kind"] == "external.git.drift"


def a_file(folder: Path, text: str, mode: int) -> str:
    path = folder / "tool"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_command_that_does_not_exist_was_not_started(tmp_path: Path) -> None:
    done = broke(tmp_path, a_request("no-such-command", opted_in=True))

    told = envelope(done)
    assert told["kind"] == "internal.spawn_failed"
    assert told["message"] == "command `no-such-command` did not start: no such file or directory"
    assert done.report.certainty == "not_sent"
    assert done.output is MISSING


def test_a_file_that_may_not_be_executed_was_not_started(tmp_path: Path) -> None:
    done = broke(tmp_path, a_request(a_file(tmp_path, "#!/bin/sh\n", stat.S_IRUSR)))

    assert envelope(done)["details"]["errno"] == "EACCES"


def test_a_script_without_its_first_line_is_told_what_is_missing(tmp_path: Path) -> None:
    done = broke(tmp_path, a_request(a_file(tmp_path, "echo hi\n", 0o700)))

    assert "`#!/bin/sh`" in envelope(done)["message"]


@pytest.mark.parametrize("folder", ["/no/such/folder", "/etc/hostname"])
def test_a_working_directory_that_cannot_be_entered_is_named(tmp_path: Path, folder: str) -> None:
    done = broke(tmp_path, sh("true", working_dir=folder))

    assert envelope(done)["kind"] == "internal.spawn_failed"
    assert envelope(done)["details"]["working_dir"] == folder
    assert "working directory cannot be entered" in envelope(done)["message"]


@pytest.mark.parametrize(
    "request_",
    [
        a_request("echo", "a\0b"),
        sh("true", env={"A=B": "c"}),
        a_request(""),
        a_request("echo", "x" * 5_000_000),
    ],
    ids=["a zero byte", "a bad name", "nothing", "too long"],
)
def test_what_no_system_can_start_is_a_failure_and_no_crash(tmp_path: Path, request_: Any) -> None:
    assert envelope(broke(tmp_path, request_))["kind"] == "internal.spawn_failed"


def test_want_of_handles_is_not_taken_for_a_bad_command(tmp_path: Path) -> None:
    async def work() -> Any:
        executor = ScriptExecutor()
        await executor.run(sh("true"), some_tools(tmp_path))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
        try:
            return await executor.run(sh("true"), some_tools(tmp_path))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await executor.close("run-1")

    done = asyncio.run(work())

    assert envelope(done)["kind"] == "resource.file_handles"


def test_a_bare_name_is_looked_for_on_the_path_of_the_script(tmp_path: Path) -> None:
    a_file(tmp_path, "#!/bin/sh\necho found\n", 0o700)

    done = worked(tmp_path, a_request("tool", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}))

    assert done.output["stdout"] == "found\n"


def test_a_python_script_raises_with_the_shipped_function(tmp_path: Path) -> None:
    text = (
        "from failwell.workflows.script_helpers.failwell_error import raise_kind\n"
        "raise_kind('external.git.drift', 'the branch moved', details={'branch': 'main'})"
    )
    src = str(Path(__file__).resolve().parents[3] / "src")

    done = broke(tmp_path, python(text, env={"PYTHONPATH": src}))

    assert envelope(done) == RAISED
