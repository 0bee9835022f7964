"""The job world's summary: four categories, and a retry button that means what it says."""

import errno
import json
import socket
import sqlite3
import ssl
import subprocess
import urllib.error
from concurrent.futures import BrokenExecutor
from datetime import UTC, datetime
from email.message import Message
from itertools import permutations
from pathlib import Path
from typing import Any

import httpx
import pytest

import failwell
from failwell import adapters
from failwell.capability import (
    CapabilityCancelledError,
    CapabilityConfigError,
    CapabilityError,
    CapabilityFatalError,
    CapabilityInputError,
    CapabilityResourceError,
    CapabilityTimeoutError,
    CapabilityTransientError,
    JobError,
    ResourceShortfall,
    TracebackPolicy,
    WorkerOOMError,
    classify_exception,
    map_bare_exception_to_job_error,
)
from failwell.testing.builders import NOON, make_fault, make_report

SECRET = "the patient is called Ada"
SHORT = ResourceShortfall(resource="gpu_vram_mb", needed=16_000, available=8_000)

LISTED: dict[type[BaseException], str] = {
    FileNotFoundError: "user_input",
    NotADirectoryError: "user_input",
    IsADirectoryError: "user_input",
    PermissionError: "user_input",
    KeyError: "user_input",
    ValueError: "user_input",
    TypeError: "user_input",
    TimeoutError: "transient",
    ConnectionError: "transient",
    InterruptedError: "transient",
    BlockingIOError: "transient",
    OSError: "transient",
    MemoryError: "resource",
}


def raised(error: BaseException, *, from_: BaseException | None = None) -> BaseException:
    try:
        raise error from from_
    except BaseException as caught:
        return caught


def typed_errors() -> list[CapabilityError]:
    return [
        CapabilityInputError("bad", fields_invalid=["size"]),
        CapabilityConfigError("bad key", fields_invalid=["model"], config_class_name="WhisperConfig"),
        CapabilityTransientError("slow", retry_after_seconds=5.0),
        CapabilityTimeoutError("whisper", 30.0, retry_after_seconds=60.0),
        CapabilityCancelledError("whisper"),
        CapabilityResourceError("full", resource_shortfall=SHORT),
        WorkerOOMError("whisper", process_returncode=-9),
        CapabilityFatalError("broken"),
        CapabilityError("odd"),
    ]


def name_of(error: BaseException) -> str:
    return type(error).__name__


@pytest.mark.acceptance("cjm-substrate 11")
@pytest.mark.parametrize(("made", "category"), LISTED.items(), ids=str)
def test_a_bare_exception_follows_the_table(made: type[BaseException], category: str) -> None:
    assert classify_exception(made("x")) == category


@pytest.mark.acceptance("cjm-substrate 11")
@pytest.mark.parametrize(("made", "category"), LISTED.items(), ids=str)
def test_a_subclass_follows_its_nearest_listed_ancestor(made: type[BaseException], category: str) -> None:
    own: type[BaseException] = type("Own", (made,), {})

    assert classify_exception(own("x")) == category


@pytest.mark.acceptance("cjm-substrate 11")
def test_of_several_bases_the_nearest_listed_one_decides() -> None:
    unlisted = (
        RuntimeError,
        LookupError,
        IndexError,
        AttributeError,
        ArithmeticError,
        EOFError,
        AssertionError,
    )
    for bases in permutations((*LISTED, *unlisted, ImportError, NotImplementedError, Exception), 2):
        try:
            own: Any = type("Own", bases, {})
        except TypeError:
            # The layouts or the order of these two cannot be combined.
            continue
        category = next((LISTED[base] for base in own.__mro__ if base in LISTED), "fatal")

        assert classify_exception(own("x")) == category, bases


@pytest.mark.acceptance("cjm-substrate 11")
@pytest.mark.parametrize(
    ("error", "category"),
    [
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "user_input"),
        (json.JSONDecodeError("x", "y", 0), "user_input"),
        (TimeoutError("x"), "transient"),
        (ConnectionResetError("x"), "transient"),
        (BrokenPipeError("x"), "transient"),
        (FileExistsError("x"), "transient"),
        (ChildProcessError("x"), "transient"),
        (ProcessLookupError("x"), "transient"),
        (socket.gaierror("x"), "transient"),
        (ssl.SSLError("x"), "transient"),
        (urllib.error.URLError("x"), "transient"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_relatives_of_the_listed_exceptions_follow_them(error: BaseException, category: str) -> None:
    assert classify_exception(error) == category


@pytest.mark.acceptance("cjm-substrate 11")
@pytest.mark.parametrize(
    "error",
    [
        IndexError("x"),
        LookupError("x"),
        AttributeError("x"),
        NameError("x"),
        ImportError("x"),
        RuntimeError("x"),
        NotImplementedError("x"),
        RecursionError("x"),
        AssertionError("x"),
        ZeroDivisionError("x"),
        StopIteration("x"),
        EOFError("x"),
        SystemError("x"),
        SystemExit(1),
        GeneratorExit("x"),
        Exception("x"),
        type("Own", (Exception,), {})("x"),
        type("Own", (RuntimeError,), {})("x"),
        type("Own", (BaseException,), {})("x"),
    ],
    ids=name_of,
)
def test_every_other_exception_is_fatal(error: BaseException) -> None:
    assert classify_exception(error) == "fatal"


@pytest.mark.acceptance("cjm-substrate 11")
def test_an_exception_that_is_known_is_classified_by_what_it_says() -> None:
    unlisted: list[tuple[BaseException, str]] = [
        (subprocess.TimeoutExpired("x", 1), "transient"),
        (sqlite3.OperationalError("database is locked"), "transient"),
        (httpx.ConnectError("x"), "transient"),
        (httpx.ReadTimeout("x"), "transient"),
        (BrokenExecutor("x"), "transient"),
        (RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"), "resource"),
    ]
    # Subclasses of listed types, of which more is known than their ancestor.
    listed: list[tuple[BaseException, str]] = [
        (ssl.SSLCertVerificationError("x"), "user_input"),
        (OSError(errno.EADDRINUSE, "x"), "user_input"),
        (OSError(errno.EMFILE, "x"), "resource"),
        (urllib.error.HTTPError("http://x", 400, "x", Message(), None), "user_input"),
        (urllib.error.HTTPError("http://x", 429, "x", Message(), None), "transient"),
    ]
    for error, category in (*unlisted, *listed):
        assert classify_exception(error) == category, error


def test_a_missing_module_is_for_the_operator_and_a_cancellation_is_no_failure() -> None:
    assert classify_exception(ModuleNotFoundError("x")) == "user_input"
    assert classify_exception(KeyboardInterrupt()) == "transient"


@pytest.mark.acceptance("cjm-substrate 14")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_a_resource_failure(number: int) -> None:
    error = raised(OSError(number, "No space left on device"))

    summary = map_bare_exception_to_job_error(error)

    assert classify_exception(error) == "resource"
    assert (summary.category, summary.retriable) == ("resource", True)


@pytest.mark.acceptance("cjm-substrate 15")
def test_a_bare_value_error_may_be_resubmitted_and_lists_no_fields() -> None:
    summary = map_bare_exception_to_job_error(raised(ValueError("bad")))

    assert (summary.category, summary.retriable, summary.fields_invalid) == ("user_input", True, None)


@pytest.mark.acceptance("cjm-substrate 15")
def test_a_bare_runtime_error_is_fatal() -> None:
    summary = map_bare_exception_to_job_error(raised(RuntimeError("odd")))

    assert (summary.category, summary.retriable) == ("fatal", False)


@pytest.mark.acceptance("cjm-substrate 16")
def test_a_shortfall_arrives_with_its_numbers() -> None:
    summary = map_bare_exception_to_job_error(
        raised(CapabilityResourceError("oom", resource_shortfall=SHORT))
    )

    assert (summary.category, summary.resource_shortfall) == ("resource", SHORT)


@pytest.mark.acceptance("cjm-substrate 17")
@pytest.mark.parametrize("policy", list(TracebackPolicy))
@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        OSError(errno.ENOSPC, "full"),
        CapabilityTransientError("x"),
        make_fault(),
        Exception(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_time_is_aware_utc_when_nobody_gives_one(error: BaseException, policy: TracebackPolicy) -> None:
    before = datetime.now(UTC)

    summary = map_bare_exception_to_job_error(error, traceback_policy=policy)

    assert summary.occurred_at is not None
    assert summary.occurred_at.tzinfo is UTC
    assert before <= summary.occurred_at <= datetime.now(UTC)


def test_a_given_time_is_kept() -> None:
    assert map_bare_exception_to_job_error(ValueError("x"), occurred_at=NOON).occurred_at == NOON


@pytest.mark.acceptance("cjm-substrate 18")
@pytest.mark.parametrize(
    ("policy", "message", "has_traceback"),
    [
        (TracebackPolicy.FULL, SECRET, True),
        (TracebackPolicy.REPR_ONLY, SECRET, False),
        (TracebackPolicy.NONE, "", False),
    ],
)
@pytest.mark.parametrize("made", [ValueError, CapabilityFatalError])
def test_each_policy_keeps_its_share(
    made: type[Exception], policy: TracebackPolicy, message: str, has_traceback: bool
) -> None:
    summary = map_bare_exception_to_job_error(raised(made(SECRET)), traceback_policy=policy)

    assert (summary.message, summary.traceback is not None) == (message, has_traceback)
    assert made.__name__ in summary.original_exc_repr


@pytest.mark.acceptance("cjm-substrate 18")
@pytest.mark.parametrize("made", [ValueError, CapabilityFatalError, CapabilityInputError])
def test_the_strict_policy_keeps_no_secret_anywhere(made: type[Exception]) -> None:
    error = raised(made(SECRET), from_=KeyError(SECRET))
    error.add_note(SECRET)

    summary = map_bare_exception_to_job_error(error, traceback_policy=TracebackPolicy.STRICT)

    assert SECRET not in repr(summary)
    assert (summary.original_exc_repr, summary.traceback) == (made.__name__, None)
    assert summary.message


@pytest.mark.acceptance("cjm-substrate 19")
def test_a_full_traceback_includes_the_cause() -> None:
    error = raised(CapabilityFatalError("no model"), from_=raised(FileNotFoundError("weights.bin")))

    text = map_bare_exception_to_job_error(error).traceback or ""

    assert "FileNotFoundError: weights.bin" in text
    assert "direct cause" in text
    assert "CapabilityFatalError: no model" in text
    assert Path(__file__).name in text


@pytest.mark.acceptance("cjm-substrate 20")
@pytest.mark.parametrize("error", typed_errors(), ids=name_of)
def test_every_typed_error_survives_the_wire(error: CapabilityError) -> None:
    sent = failwell.describe(raised(error), policy="full")

    received = failwell.ErrorReport.from_json(sent.to_json())
    again = failwell.describe(adapters.revive(received))

    assert again == received == sent
    assert (received.error_type, received.message) == (type(error).__name__, str(error))
    fields = {name: value for name, value in error.own_fields().items() if value is not None}
    assert received.details == fields
    assert received.resource_shortfall == error.resource_shortfall
    assert list(received.fields_invalid or []) == list(error.fields_invalid or [])


@pytest.mark.acceptance("cjm-substrate 20")
@pytest.mark.parametrize("error", typed_errors(), ids=name_of)
def test_a_summary_reads_back_equal_after_json(error: CapabilityError) -> None:
    sent = map_bare_exception_to_job_error(raised(error), "whisper", "whisper-1")

    received = JobError.from_dict(json.loads(json.dumps(sent.to_dict())))

    assert received == sent
    assert (received.capability_name, received.capability_instance_id) == ("whisper", "whisper-1")


@pytest.mark.parametrize("error", typed_errors(), ids=name_of)
def test_a_typed_error_speaks_for_itself(error: CapabilityError) -> None:
    summary = map_bare_exception_to_job_error(error)

    assert (summary.category, summary.retriable) == (error.category, error.default_retriable)
    assert summary.message == str(error)


def test_structured_facts_arrive_on_the_summary() -> None:
    bad = map_bare_exception_to_job_error(CapabilityConfigError("bad", fields_invalid=["model", "size"]))
    slow = map_bare_exception_to_job_error(CapabilityTransientError("slow", retry_after_seconds=2.5))

    assert (bad.fields_invalid, bad.retry_after_seconds) == (["model", "size"], None)
    assert (slow.fields_invalid, slow.retry_after_seconds) == (None, 2.5)


def test_a_summary_writes_no_nulls() -> None:
    written = map_bare_exception_to_job_error(
        ValueError("x"), traceback_policy=TracebackPolicy.NONE
    ).to_dict()

    assert None not in written.values()
    assert {"traceback", "fields_invalid", "capability_name"} & set(written) == set()


def test_the_summary_of_a_report_is_its_projection() -> None:
    report = make_report(kind="provider.quota_exhausted", message="the balance is empty")

    summary = JobError.from_report(report)

    assert (summary.category, summary.retriable) == ("transient", True)
    assert (summary.message, summary.original_exc_repr) == ("the balance is empty", "Fault")


@pytest.mark.parametrize(
    "wrapped", [CapabilityInputError("bad"), make_fault(kind="validation.input_invalid")]
)
def test_a_wrapper_of_the_job_world_answers_with_its_own_category(wrapped: Any) -> None:
    wrapper = CapabilityTransientError.wrap(wrapped, message="again, please")

    assert classify_exception(wrapper) == "transient"
