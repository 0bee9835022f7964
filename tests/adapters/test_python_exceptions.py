"""Python's own exceptions, raised for real."""

import asyncio
import sys
from typing import cast

import pytest

import failwell
from failwell import errors
from failwell.adapters.registry import read
from failwell.adapters.vendors.python import TABLES
from tests.adapters.raisers import BUILTINS, CANARY, PLUMBING, Action, caught, throwing
from tests.specimens import each

EVERY = {**{("builtins", name): row for name, row in BUILTINS.items()}, **PLUMBING}
SECOND_NAMES = {
    ("queue", "Empty"), ("_queue", "Full"), ("ssl", "CertificateError"), ("asyncio", "QueueShutDown"),
    ("asyncio", "BrokenBarrierError"), ("asyncio", "SendfileNotAvailableError"), ("concurrent", "BrokenProcessPool"),
    ("concurrent", "BrokenThreadPool"), ("concurrent", "BrokenInterpreterPool"),
}  # fmt: skip
"""Rows for other builds and other names of classes that are raised above."""

NAMES = [".".join(names) for names in EVERY]


def test_every_row_of_the_tables_is_raised_below() -> None:
    rows = {(top, name) for top, table in TABLES.items() for name in table}

    assert rows == set(EVERY) | SECOND_NAMES


@each(("action", "kind"), EVERY.values(), NAMES)
def test_each_exception_becomes_its_kind(action: Action, kind: str) -> None:
    report = failwell.describe(caught(action), origin="input")

    assert report.kind == kind
    assert report.evidence[0].rule.startswith("python.")


@each(("action", "kind"), EVERY.values(), NAMES)
def test_no_words_or_values_of_the_exception_are_kept(action: Action, kind: str) -> None:
    report = failwell.describe(caught(action), origin="input")

    assert CANARY not in report.to_json()
    assert report.message.endswith(".")


def test_the_exact_runtime_error_is_a_bug_and_a_subclass_of_it_is_unknown() -> None:
    class CudaOutOfLuck(RuntimeError):
        """What a library makes of it may be anything."""

    plain, special = failwell.describe(RuntimeError("x")), failwell.describe(CudaOutOfLuck("x"))

    assert (plain.kind, plain.category) == ("internal.bug", "fatal")
    assert (special.kind, special.category, special.retryable) == ("internal.unknown", "unknown", False)


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("\ud800".encode, "validation.input_invalid"),
        (lambda: compile("if x:\nx", "f", "exec"), "internal.bug"),
        (lambda: 10.0**400, "internal.bug"),
        (lambda: exec("x = x"), "internal.bug"),
    ],
    ids=["UnicodeEncodeError", "IndentationError", "OverflowError", "NameError"],
)
def test_a_subclass_follows_its_nearest_listed_ancestor(action: Action, kind: str) -> None:
    assert failwell.describe(caught(action), origin="input").kind == kind


def test_json_says_where_and_not_what() -> None:
    report = failwell.describe(caught(EVERY[("json", "JSONDecodeError")][0]), origin="input")

    assert report.message == "The text is not valid JSON at line 1, column 30."
    assert report.details == {"line": 1, "column": 30}


def test_a_missing_module_is_named() -> None:
    report = failwell.describe(caught(BUILTINS["ModuleNotFoundError"][0]))

    assert report.message == "The Python module `no_such_module_9` is not installed."
    assert (report.category, report.details) == ("configuration", {"module": "no_such_module_9"})


@pytest.mark.parametrize("name", [None, 7, "no such; module\nname"])
def test_a_missing_module_without_a_decent_name_is_not_quoted(name: object) -> None:
    error = ModuleNotFoundError("x")
    error.name = name  # pyright: ignore[reportAttributeAccessIssue]

    report = failwell.describe(error, origin="input")

    assert report.message == errors.kind("extension.dependency_missing").summary
    assert report.details == {}


@pytest.mark.parametrize(
    ("code", "kind", "details"),
    [
        (0, "cancel.run", {}),
        (None, "cancel.run", {}),
        (3, "internal.script_error", {"exit_code": 3}),
        ("some words", "internal.script_error", {"exit_code": 1}),
    ],
)
def test_an_exit_is_read_by_its_code(code: object, kind: str, details: dict[str, int]) -> None:
    report = failwell.describe(caught(lambda: sys.exit(code)))  # pyright: ignore[reportArgumentType]

    assert (report.kind, report.details) == (kind, details)


def test_a_timeout_leaves_the_outcome_unknown() -> None:
    report = failwell.describe(caught(BUILTINS["TimeoutError"][0]))

    assert (report.category, report.certainty, report.retryable) == ("ambiguous", "unknown", False)


def test_a_failed_handshake_is_safe_to_repeat_and_a_refused_certificate_is_not() -> None:
    spoken = failwell.describe(caught(PLUMBING[("ssl", "SSLError")][0]))
    refused = failwell.describe(caught(PLUMBING[("ssl", "SSLCertVerificationError")][0]))

    assert (spoken.category, spoken.certainty) == ("transient", "not_sent")
    assert (refused.category, refused.certainty) == ("configuration", "not_sent")


def test_an_error_inside_a_task_group_is_found_in_its_group() -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(int, "x"))

    error = caught(lambda: asyncio.run(work()))

    assert type(error) is ExceptionGroup
    assert failwell.describe(cast("BaseException", error), origin="input").kind == "validation.input_invalid"


def test_a_class_that_only_shares_a_builtins_name_is_not_taken_for_it() -> None:
    other = type("ValueError", (Exception,), {"__module__": "acme"})

    assert read(caught(throwing(other("x")))) is None


def test_a_library_of_the_system_that_does_not_load_is_a_missing_dependency_and_a_missing_name_is_a_bug() -> (
    None
):
    missing = (
        "libcudart.so.11.0: cannot open shared object file: No such file or directory",
        "/lib64/libc.so.6: version `GLIBC_2.32' not found (required by kernels.so)",
        "DLL load failed while importing _ssl: The specified module could not be found.",
    )

    assert {failwell.describe(ImportError(text)).kind for text in missing} == {"extension.dependency_missing"}
    assert (
        failwell.describe(ImportError("cannot import name 'x' from 'os'", name="os", path="/x/os.py")).kind
        == "internal.bug"
    )
