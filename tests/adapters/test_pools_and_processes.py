"""Errors of pools, processes and threads of the standard library, raised for real."""

import asyncio
import concurrent.futures
import multiprocessing
import multiprocessing.connection
import multiprocessing.pool
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import get_context

import pytest

from failwell import ErrorReport, describe
from tests.adapters.raisers import CANARY, caught, throwing


def report_of(run: Callable[[], object]) -> ErrorReport:
    report = describe(caught(run))
    assert CANARY not in report.to_json()
    return report


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def unpicklable() -> object:
    return lambda: CANARY


@pytest.mark.slow
def test_a_process_of_a_pool_that_dies_breaks_the_pool() -> None:
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        report = report_of(pool.submit(die).result)

    assert (report.kind, report.category) == ("worker.crashed", "transient")


@pytest.mark.slow
def test_a_result_that_cannot_be_sent_back_is_a_bug() -> None:
    with get_context("spawn").Pool(1) as pool:
        report = report_of(lambda: pool.apply(unpicklable))

    assert report.kind == "internal.bug"


def test_a_result_that_does_not_come_in_time_leaves_its_outcome_open() -> None:
    with multiprocessing.pool.ThreadPool(1) as pool:
        event = threading.Event()
        waiting = pool.apply_async(event.wait)
        report = report_of(lambda: waiting.get(0.01))
        event.set()

    assert (report.kind, report.certainty) == ("provider.outcome_unknown", "unknown")


def test_a_peer_with_another_key_is_not_let_in() -> None:
    with multiprocessing.connection.Listener(("127.0.0.1", 0), authkey=b"right") as listener:

        def accept() -> None:
            caught(listener.accept)

        thread = threading.Thread(target=accept)
        thread.start()
        report = report_of(lambda: multiprocessing.connection.Client(listener.address, authkey=b"wrong"))
        thread.join(10)

    assert (report.kind, report.retryable) == ("provider.auth", False)


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (lambda: pickle.dumps(lambda: CANARY), "internal.bug"),
        (throwing(threading.BrokenBarrierError(CANARY)), "internal.bug"),
        (throwing(RuntimeError("can't start new thread")), "resource.exhausted"),
        (throwing(RuntimeError("cannot schedule new futures after shutdown")), "internal.bug"),
        (throwing(concurrent.futures.BrokenExecutor(CANARY)), "worker.crashed"),
        (throwing(asyncio.IncompleteReadError(b"", 1)), "provider.stream_interrupted"),
        (throwing(asyncio.CancelledError(CANARY)), "cancel.run"),
        (throwing(asyncio.InvalidStateError(CANARY)), "internal.bug"),
        (throwing(subprocess.SubprocessError(CANARY)), "internal.spawn_failed"),
    ],
)
def test_an_error_of_the_standard_library_has_a_kind(run: Callable[[], object], kind: str) -> None:
    assert report_of(run).kind == kind


def test_a_text_that_is_no_pickle_has_the_wrong_form() -> None:
    report = describe(caught(lambda: pickle.loads(CANARY.encode())), origin="input")

    assert report.kind == "validation.shape_invalid"


def test_a_subprocess_is_read_by_signal_exit_code_or_time() -> None:
    def run(code: str, seconds: float = 60) -> str:
        command = [sys.executable, "-S", "-c", code]
        return report_of(
            lambda: subprocess.run(command, check=True, capture_output=True, timeout=seconds)
        ).kind

    assert run("raise SystemExit(3)") == "internal.script_error"
    assert run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)") == "worker.oom"
    assert run("import time; time.sleep(30)", seconds=0.2) == "internal.script_timeout"
