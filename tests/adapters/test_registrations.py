"""What programs and packages teach: kinds of their own exceptions and codes."""

import json
import logging
import os
import subprocess
import sys
import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest

import failwell
from failwell import adapters, errors
from failwell.adapters import registrations
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.adapters.registry import entries

SOURCE = Path(failwell.__file__).parents[1]


class QuotaError(Exception):
    """What an SDK of one's own raises."""

    status_code = 402
    headers = {"retry-after": "7", "x-request-id": "req_1"}


class MonthlyQuotaError(QuotaError):
    """A subclass that nobody registered."""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setattr(registrations, "_registered_exceptions", {})
    monkeypatch.setattr(registrations, "_registered_codes", {})
    entries.__globals__["_entries"].clear()
    yield
    entries.__globals__["_entries"].clear()


def test_a_registered_class_and_its_subclasses_have_the_kind_and_their_facts() -> None:
    before = failwell.describe(QuotaError("x"))
    failwell.register_exception(QuotaError, kind="provider.quota_exhausted", provider="acme")

    for error in (QuotaError("x"), MonthlyQuotaError("x")):
        report = failwell.describe(error)

        assert (report.kind, report.provider) == ("provider.quota_exhausted", "acme")
        assert report.not_before is not None
        assert report.not_before.after == 7
        assert report.provider_metadata is not None
        assert (report.provider_metadata.status_code, report.provider_metadata.request_id) == (402, "req_1")
        assert report.evidence[0].rule == f"registered.{__name__}.QuotaError"
    assert before.kind == "internal.unknown"


def test_a_nearer_class_counts_first_and_a_kind_of_ones_own_is_taken() -> None:
    errors.register_kind("acme.month_spent", category="capacity")
    failwell.register_exception(QuotaError, kind="provider.quota_exhausted")
    failwell.register_exception(MonthlyQuotaError, kind="acme.month_spent")

    assert failwell.describe(MonthlyQuotaError("x")).kind == "acme.month_spent"
    assert failwell.describe(MonthlyQuotaError("x"), origin="tool").kind == "acme.month_spent"
    assert failwell.describe(QuotaError("x")).kind == "provider.quota_exhausted"


def test_a_name_is_enough_for_a_class_that_is_not_imported() -> None:
    failwell.register_exception("acme.errors.QuotaError", kind="provider.quota_exhausted", provider="acme")
    error = cast("type[Exception]", type("QuotaError", (Exception,), {"__module__": "acme._core.errors"}))(
        "x"
    )

    row = {"exception_class": "acme.QuotaError", "http_status": 400, "headers": {"retry-after": "9"}}
    saved = failwell.classify(row)

    assert failwell.describe(error).kind == "provider.quota_exhausted"
    assert describe_pasted("acme.errors.QuotaError: spent").kind == "provider.quota_exhausted"
    assert (saved.kind, saved.provider) == ("provider.quota_exhausted", "acme")
    assert saved.not_before is not None
    assert saved.not_before.after == 9


def test_a_registration_replaces_what_is_built_in() -> None:
    import openai

    failwell.register_exception(openai.LengthFinishReasonError, kind="provider.context_too_long")
    error = openai.LengthFinishReasonError.__new__(openai.LengthFinishReasonError)

    assert failwell.describe(error).kind == "provider.context_too_long"


@pytest.mark.parametrize(
    ("exception", "kind", "problem"),
    [
        (QuotaError, "provider.qouta_exhausted", "did you mean `provider.quota_exhausted`"),
        (ValueError, "tool.failed", "one of Python's own classes"),
        ("builtins.KeyError", "tool.failed", "one of Python's own classes"),
        ("QuotaError", "tool.failed", "with its package, such as"),
        ("acme.errors.", "tool.failed", "with its package, such as"),
        (failwell.Fault, "tool.failed", "is a fault; name its kind in the class"),
    ],
)
def test_a_mistaken_registration_says_what_is_wrong(exception: Any, kind: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        failwell.register_exception(exception, kind=kind)


def test_what_is_no_class_is_refused() -> None:
    with pytest.raises(TypeError, match="not an exception class"):
        failwell.register_exception(cast("Any", QuotaError("x")), kind="tool.failed")


def test_exceptions_and_codes_may_be_registered_again_but_not_otherwise() -> None:
    for _ in range(2):
        failwell.register_exception(QuotaError, kind="provider.quota_exhausted")
        adapters.register_code("acme_spent", "provider.quota_exhausted")

    with pytest.raises(
        ValueError, match=r"is registered already, as .provider[.]quota_exhausted.; register it once"
    ):
        failwell.register_exception(QuotaError, kind="provider.auth")
    with pytest.raises(
        ValueError, match=r"is registered already, as .provider[.]quota_exhausted.; register it once"
    ):
        adapters.register_code("acme_spent", "provider.auth")


# ------------------------------------------------------------------ packages

ADAPTER = """
import failwell

def register():
    failwell.register_exception("acme_sdk.QuotaError", kind="provider.quota_exhausted", provider="acme")
"""
PROGRAM = """
import json, logging, sys
logging.basicConfig(stream=sys.stderr, level="WARNING", format="%(name)s %(message)s")
import failwell
from acme_sdk import QuotaError
loaded = "acme_adapter" in sys.modules
failwell.describe(KeyError("x"))
early = "acme_adapter" in sys.modules
kinds = [failwell.describe(QuotaError("x")).kind for _ in range(3)]
print(json.dumps([loaded, early, "acme_adapter" in sys.modules, kinds]))
"""


def installed(folder: Path, adapter: str, point: str) -> Path:
    """A package with an SDK and its adapter, installed by pip from a wheel."""
    wheel = folder / "acme_sdk-1.0-py3-none-any.whl"
    info = "acme_sdk-1.0.dist-info"
    files = {
        "acme_sdk.py": "class QuotaError(Exception):\n    pass\n",
        "acme_adapter.py": adapter,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: acme-sdk\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[failwell.adapters]\nacme_sdk = {point}\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    target = folder / "target"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile",
         "--disable-pip-version-check", "--target", str(target), str(wheel)],
        check=True,
    )  # fmt: skip
    return target


def run_with(target: Path) -> tuple[Any, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(SOURCE)])},
    )  # fmt: skip
    return json.loads(done.stdout), done.stderr


def test_an_installed_package_brings_its_adapter_and_it_is_loaded_when_it_is_needed(tmp_path: Path) -> None:
    target = installed(tmp_path, ADAPTER, "acme_adapter:register")

    (loaded, early, late, kinds), stderr = run_with(target)

    assert (loaded, early, late) == (False, False, True)
    assert kinds == ["provider.quota_exhausted"] * 3
    assert stderr == ""


def test_a_broken_adapter_of_a_package_is_one_warning_and_costs_no_report(tmp_path: Path) -> None:
    target = installed(tmp_path, "raise RuntimeError('sk-secret')", "acme_adapter:register")

    (_, _, _, kinds), stderr = run_with(target)

    assert kinds == ["internal.unknown"] * 3
    assert stderr.count("failwell.adapters the entry point `acme_sdk = acme_adapter:register`") == 1
    assert "failed with RuntimeError" in stderr
    assert "sk-secret" not in stderr


def test_a_path_that_cannot_be_listed_hides_no_report(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(registrations, "_names", None)
    monkeypatch.setattr(sys, "path", ["/no/such/folder", __file__])

    with caplog.at_level(logging.WARNING):
        assert failwell.describe(QuotaError("x")).kind == "internal.unknown"
    assert caplog.text == ""
