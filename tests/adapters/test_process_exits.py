"""Subprocesses that failed, and were really run."""

import signal
import subprocess

import pytest

import failwell
from failwell import errors
from failwell.adapters.vendors.process import read_exit
from tests.adapters.raisers import CANARY, Action, caught, run_python

SIGNALS = {
    "SIGKILL": "worker.oom",
    "SIGINT": "cancel.run",
    "SIGTERM": "cancel.run",
    "SIGHUP": "cancel.run",
    "SIGXCPU": "limit.run_timeout",
    "SIGXFSZ": "resource.disk",
    "SIGSEGV": "internal.bug",
    "SIGABRT": "internal.bug",
}


def killed_by(name: str) -> Action:
    code = f"signal.signal(signal.{name}, signal.SIG_DFL)\n" if name != "SIGKILL" else ""
    # A child that is aborted on purpose shall not leave a core behind.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    return lambda: run_python(f"{limit}{code}os.kill(os.getpid(), signal.{name})\ntime.sleep(60)")


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV"])
def test_a_process_that_was_killed_is_read_by_its_signal(name: str) -> None:
    report = failwell.describe(caught(killed_by(name)))

    assert report.kind == SIGNALS[name]
    assumed = {"out_of_memory": "assumed"} if name == "SIGKILL" else {}
    assert report.details == {"exit_code": -signal.Signals[name], "signal": name, **assumed}
    assert ("kernel log" in report.user_action.detail) is (name == "SIGKILL")
    assert report.message.startswith(f"A process was ended by {name}: ")
    assert CANARY not in report.to_json()


@pytest.mark.parametrize(
    ("code", "kind"),
    [(1, "internal.script_error"), (127, "internal.spawn_failed"), (124, "internal.script_timeout")],
)
def test_a_process_that_ended_itself_is_read_by_its_code(code: int, kind: str) -> None:
    report = failwell.describe(caught(lambda: run_python(f"sys.exit({code})")))

    assert (report.kind, report.details) == (kind, {"exit_code": code})
    assert report.message.startswith(f"A process ended with exit code {code}: ")
    assert CANARY not in report.to_json()


def test_a_command_that_a_shell_does_not_find_did_not_start() -> None:
    report = failwell.describe(caught(lambda: subprocess.run(["sh", "-c", "no-such-command-9"], check=True)))

    assert (report.kind, report.certainty) == ("internal.spawn_failed", "not_sent")


def test_a_process_that_took_too_long_may_have_done_half_of_it() -> None:
    report = failwell.describe(caught(lambda: run_python("time.sleep(60)", timeout=0.05)))

    assert (report.kind, report.category) == ("internal.script_timeout", "ambiguous")
    assert report.message == "A process did not finish within 0.05 s and was ended."
    assert report.details == {"timeout_seconds": 0.05}
    assert CANARY not in report.to_json()


@pytest.mark.parametrize(("name", "kind"), SIGNALS.items())
@pytest.mark.parametrize("shell", [False, True], ids=["negative", "above 128"])
def test_every_signal_is_read_in_both_notations(name: str, kind: str, shell: bool) -> None:
    number = signal.Signals[name].value

    assert read_exit(128 + number if shell else -number).kind == kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [(125, "internal.spawn_failed"), (126, "internal.spawn_failed"), (2, "internal.script_error")],
)
def test_codes_that_shells_give_a_meaning(code: int, kind: str) -> None:
    assert read_exit(code).kind == kind


@pytest.mark.parametrize("code", [128, 193, 255, -200])
def test_a_number_beyond_every_signal_is_just_a_code(code: int) -> None:
    assert (read_exit(code).kind, "signal" in read_exit(code).details) == ("internal.script_error", False)


def test_a_called_process_error_without_a_code_is_unknown() -> None:
    error = subprocess.CalledProcessError(1, CANARY)
    error.returncode = None  # pyright: ignore[reportAttributeAccessIssue]

    assert failwell.describe(error).kind == "internal.unknown"


def test_a_timeout_without_a_limit_says_what_its_kind_says() -> None:
    error = subprocess.TimeoutExpired(CANARY, None)  # pyright: ignore[reportArgumentType]

    report = failwell.describe(error)

    assert report.message == errors.kind("internal.script_timeout").summary
    assert report.details == {}
