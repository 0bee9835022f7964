"""Exceptions whose class no table knows are read as a log that names the same class and the same words is."""

import sys
import tomllib
import traceback
from pathlib import Path
from types import ModuleType

import pytest

from failwell.adapters.describe import describe
from failwell.adapters.log_records.log_record import classify
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.errors.facts import Origin
from failwell.errors.report import ErrorReport

LIBRARY = """
class AcmeError(Exception):
    def __init__(self, message, status_code=None, code=None):
        super().__init__(message)
        self.status_code, self.code = status_code, code

class QuotaExceededError(AcmeError): pass
class CapacityError(AcmeError): pass
class ConflictingIdError(AcmeError): pass
class ServiceUnavailableError(AcmeError): pass
class Odd(QuotaExceededError): pass

def fail(cls, *args):
    raise cls(*args)
"""


MESSAGES = [
    text["text"]
    for path in sorted((Path(__file__).parents[1] / "adapters/texts").glob("re*.toml"))
    for text in tomllib.loads(path.read_text(encoding="utf-8"))["text"]
]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A library that nobody knows, where installed packages lie."""
    return imported(tmp_path / "site-packages", "acme_unheard_of", monkeypatch)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The same source as a part of the program."""
    return imported(tmp_path / "src", "shop_of_mine", monkeypatch)


def imported(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    module = __import__(name)
    monkeypatch.delitem(sys.modules, name)
    # Described while it is loaded, and gone after the test.
    monkeypatch.setitem(sys.modules, name, module)
    return module


def raised(module: ModuleType, cls: str | type, *args: object) -> BaseException:
    chosen: type[BaseException] = getattr(module, cls) if isinstance(cls, str) else cls
    with pytest.raises(chosen) as caught:
        module.fail(chosen, *args)
    return caught.value


def seen(report: ErrorReport) -> tuple[str, bool]:
    return report.kind, report.retryable


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("The API key that was provided is not valid", "provider.auth"),
        ("Your credit balance is too low", "provider.quota_exhausted"),
        ("The model `acme-9` does not exist", "provider.model_not_found"),
        ("Could not connect to the cluster", "provider.connection"),
    ],
)
def test_what_an_installed_library_says_decides(installed: ModuleType, message: str, kind: str) -> None:
    assert describe(raised(installed, "AcmeError", message)).kind == kind


def test_its_status_its_code_and_the_name_of_its_class_decide_too(installed: ModuleType) -> None:
    by_status = raised(installed, "AcmeError", "no", 429)
    by_code = raised(installed, "AcmeError", "no", None, "insufficient_quota")
    by_name = raised(installed, "QuotaExceededError", "no")
    by_base = raised(installed, "Odd", "no")

    assert describe(by_status).kind == "provider.rate_limited"
    assert [describe(error).kind for error in (by_code, by_name, by_base)] == ["provider.quota_exhausted"] * 3


def test_a_class_of_the_program_is_its_own_business(own: ModuleType) -> None:
    error = raised(own, "AcmeError", "The API key that was provided is not valid")

    assert describe(error).kind == "internal.unknown"
    assert describe(error, origin="input").kind != "provider.auth"


def test_a_class_of_the_program_that_arose_in_a_call_is_read_and_never_repeated(own: ModuleType) -> None:
    lost = raised(own, "AcmeError", "Could not connect to the cluster")
    theirs = describe(lost, origin="call")

    assert seen(theirs) == ("provider.connection", False)


@pytest.mark.parametrize("cls", [RuntimeError, ValueError, Exception])
def test_a_plain_class_is_read_where_a_library_raised_it(
    installed: ModuleType, own: ModuleType, cls: type[Exception]
) -> None:
    message = "The API key that was provided is not valid"

    assert describe(raised(installed, cls, message)).kind == "provider.auth"
    assert describe(raised(own, cls, message)).kind != "provider.auth"
    assert describe(raised(own, cls, message), origin="call").kind == "provider.auth"
    assert describe(cls(message)).kind != "provider.auth"


def test_a_library_that_refuses_its_arguments_blames_no_input(installed: ModuleType) -> None:
    report = describe(raised(installed, ValueError, "field `size` must be between 1 and 4"))

    assert report.category.value == "fatal"


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        ("CapacityError", "array cannot contain more than 2147483646 bytes"),
        ("ConflictingIdError", "job 17 is there"),
        ("AcmeError", "Merge conflict in file x"),
    ],
)
def test_a_library_that_calls_nobody_is_not_repeated(installed: ModuleType, cls: str, message: str) -> None:
    assert describe(raised(installed, cls, message)).retryable is False


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        ("AcmeError", "Rate limit reached, slow down"),
        ("AcmeError", "Could not connect to the cluster"),
        ("ServiceUnavailableError", "no"),
    ],
)
def test_what_only_a_call_can_say_is_repeated(installed: ModuleType, cls: str, message: str) -> None:
    assert describe(raised(installed, cls, message)).retryable is True


@pytest.mark.parametrize("origin", ["code", "call"])
def test_a_refusal_of_a_library_blames_the_input_of_a_call_alone(
    installed: ModuleType, origin: Origin
) -> None:
    report = describe(raised(installed, "AcmeError", "invalid parameter `size`"), origin=origin)

    assert (report.category.value == "user_input") is (origin == "call")


def test_a_number_in_code_is_a_status_only_where_it_can_be_one(installed: ModuleType) -> None:
    ended = describe(raised(installed, "AcmeError", "tool ended", None, 255))
    refused = describe(raised(installed, "AcmeError", "no", None, 503))

    assert ended.provider_metadata is None or ended.provider_metadata.status_code is None
    assert seen(refused) == ("provider.overloaded", False)


def test_the_misuse_of_a_value_is_a_bug_in_every_class(installed: ModuleType) -> None:
    misused = raised(installed, "AcmeError", "'NoneType' object is not iterable; please try again later")
    called = raised(installed, "AcmeError", "render() got an unexpected keyword argument 'rate limit'")

    assert seen(describe(misused, origin="call")) == ("internal.bug", False)
    assert describe(called, origin="call").retryable is False


def test_no_code_of_a_module_runs(installed: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def hook(name: str) -> object:
        raise AssertionError(name)

    error = raised(installed, "AcmeError", "no")
    monkeypatch.delitem(vars(installed), "__file__")
    monkeypatch.setitem(vars(installed), "__getattr__", hook)

    assert describe(error).kind == "internal.unknown"


def test_a_plain_class_repeats_nothing(installed: ModuleType) -> None:
    report = describe(raised(installed, RuntimeError, "Could not connect to the cluster"), origin="call")

    assert seen(report) == ("provider.connection", False)


@pytest.mark.parametrize(
    "message",
    [
        "unsupported operand type(s) for +: 'int' and 'str'",
        "'<' not supported between instances of 'str' and 'int'",
        "fetch() got an unexpected keyword argument 'timeout'",
        "'NoneType' object is not subscriptable",
    ],
)
@pytest.mark.parametrize("origin", ["code", "call"])
def test_what_the_interpreter_says_of_a_program_is_a_bug(message: str, origin: Origin) -> None:
    assert describe(TypeError(message), origin=origin).kind == "internal.bug"
    assert classify({"exception_class": "TypeError", "message": message}).kind == "internal.bug"


def test_a_pasted_traceback_is_read_as_the_exception_is(installed: ModuleType, own: ModuleType) -> None:
    message = "Your credit balance is too low"
    for module in (installed, own):
        error = raised(module, "AcmeError", message)
        pasted = "".join(traceback.format_exception(error))

        assert describe_pasted(pasted).kind == describe(error).kind


def test_an_explicit_cause_says_more_than_the_words(installed: ModuleType) -> None:
    error = raised(installed, "AcmeError", "The API key that was provided is not valid")
    error.__cause__ = OSError(28, "No space left on device")

    assert describe(error).kind == "resource.disk"


def test_a_hostile_class_is_described(installed: ModuleType) -> None:
    class Hostile(installed.AcmeError):
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError("no")

        def __str__(self) -> str:
            raise SystemExit

    Hostile.__module__ = installed.__name__

    assert describe(Hostile("x")).retryable is False


def test_live_and_logged_failures_have_one_verdict(installed: ModuleType) -> None:
    differing: list[str] = []
    for message in MESSAGES:
        error = raised(installed, "AcmeError", message)
        live = describe(error, origin="call")
        logged = classify({"exception_class": f"{installed.__name__}.AcmeError", "message": message})
        is_unknown = {live.kind, logged.kind} <= {"internal.unknown", "provider.unknown"}
        if live.kind != logged.kind and not is_unknown:
            differing.append(f"{live.kind} {logged.kind}: {message[:90]}")

    assert len(differing) <= 2, differing


def test_a_file_that_a_library_cannot_read_is_not_read_again(installed: ModuleType) -> None:
    broken = describe(raised(installed, OSError, "image file is truncated (30 bytes not processed)"))
    full = describe(raised(installed, OSError, 28, "No space left on device"))

    assert seen(broken) == ("provider.bad_request", False)
    assert full.kind == "resource.disk"
    assert describe(OSError("image file is truncated")).kind == "internal.io_error"
