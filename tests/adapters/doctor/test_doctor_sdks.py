"""The doctor finds every error class that an installed package shows, and says which have no rule."""

import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import invalidate_caches, metadata
from pathlib import Path

import pytest

import failwell as failwell_package
from failwell.adapters import registrations
from failwell.adapters.doctor.sdks import Sdk, installed, judge
from tests.cli.running import Done, environment, failwell

OLLAMA = """
print("noise that a package makes while it is loaded")
class RequestError(Exception): pass
class ResponseError(Exception): pass
class Narrower(ResponseError): pass
class Answered(ResponseError):
    def __init__(self, status_code):
        self.status_code = status_code
class Brandnew(Exception): pass
class Rejected(ValueError): pass
class Several(ExceptionGroup): pass
class Deprecated(UserWarning): pass
class _Hidden(Exception): pass
class Answer: pass
from json import JSONDecodeError
"""


def package(folder: Path, name: str, source: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(source)


@pytest.fixture(scope="module", autouse=True)
def _listed_once() -> Iterator[None]:
    """Nothing is installed meanwhile, and listing what is takes longer than anything else here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "packages_distributions", cache(metadata.packages_distributions))
        yield


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which the doctor and its own processes load packages."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    invalidate_caches()
    return tmp_path


def look(top: str, *, load: bool = False) -> Sdk:
    return installed([top], load=load)[0]


def standings(sdk: Sdk) -> dict[str, tuple[str, str | None]]:
    return {one.name: (one.standing, one.by) for one in sdk.classes}


@pytest.mark.parametrize("load", [False, True], ids=["read", "loaded"])
def test_every_public_class_is_mapped_inherited_or_unknown(here: Path, load: bool) -> None:
    package(here, "ollama", OLLAMA)

    sdk = look("ollama", load=load)

    assert standings(sdk) == {
        "ollama.RequestError": ("mapped", "RequestError"),
        "ollama.ResponseError": ("mapped", "ResponseError"),
        "ollama.Narrower": ("unspecific", "ollama.ResponseError"),
        "ollama.Answered": ("inherited", "ollama.ResponseError"),
        "ollama.Rejected": ("unspecific", "ValueError"),
        "ollama.Several": ("inherited", "BaseExceptionGroup"),
        "ollama.Brandnew": ("unknown", None),
    }


def test_an_unknown_class_comes_with_the_line_that_registers_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registrations, "_registered_exceptions", {})
    package(here, "acme_brandnew", "class RateLimitError(Exception): pass\nclass Odd(Exception): pass")

    odd, limited = look("acme_brandnew").unknown

    assert odd.proposal == 'failwell.register_exception("acme_brandnew.Odd", kind="…")'
    assert limited.proposal == (
        'failwell.register_exception("acme_brandnew.RateLimitError", kind="provider.rate_limited")'
    )
    exec(limited.proposal, {"failwell": failwell_package})
    assert [one.name for one in look("acme_brandnew").unknown] == ["acme_brandnew.Odd"]


def test_a_new_class_that_only_inherits_is_not_counted_as_known(here: Path) -> None:
    package(here, "openai", "class OpenAIError(Exception): pass\nclass QuantumError(OpenAIError): pass")

    sdk = look("openai")

    assert standings(sdk)["openai.QuantumError"] == ("unspecific", "openai.OpenAIError")
    (unspecific,) = sdk.unspecific
    assert unspecific.kind == "provider.unknown"
    assert unspecific.proposal == 'failwell.register_exception("openai.QuantumError", kind="…")'


def test_source_is_read_and_nothing_is_run(here: Path) -> None:
    package(here, "ollama", "raise SystemExit('must not be loaded')\nclass ResponseError(Exception): pass")

    assert standings(look("ollama")) == {"ollama.ResponseError": ("mapped", "ResponseError")}
    assert look("ollama", load=True).broken == "SystemExit"


@pytest.mark.slow
def test_reading_the_source_finds_what_loading_finds() -> None:
    """For installed SDKs that define, rename and export their errors in different ways."""
    for top in ("aiohttp", "botocore", "httpx", "huggingface_hub", "requests", "urllib3"):
        read, loaded = standings(look(top)), standings(look(top, load=True))

        missing = {
            name for name in loaded if name not in read and f"{top}.{name.rpartition('.')[2]}" not in read
        }
        assert len(missing) <= len(loaded) // 50, missing
        assert {name: read[name] for name in loaded if name in read} == {
            name: standing for name, standing in loaded.items() if name in read
        }


def test_modules_about_errors_are_looked_into_and_private_ones_are_not(here: Path) -> None:
    package(here, "fal_client", "")
    (here / "fal_client" / "errors.py").write_text("class NewError(Exception): pass")
    (here / "fal_client" / "_errors.py").write_text("class OwnError(Exception): pass")
    (here / "fal_client" / "needs_error_extra.py").write_text("import no_such_module_anywhere")
    (here / "fal_client" / "other.py").write_text("raise SystemExit('must not be loaded')")

    assert set(standings(look("fal_client"))) == {"fal_client.errors.NewError"}


@pytest.mark.parametrize("load", [False, True], ids=["read", "loaded"])
def test_a_private_module_with_a_public_name_is_looked_into(here: Path, load: bool) -> None:
    package(here, "fal_client", "from . import _error as error, _errors")
    (here / "fal_client" / "_error.py").write_text("class NewError(Exception): pass")
    (here / "fal_client" / "_errors.py").write_text("class OwnError(Exception): pass")

    assert set(standings(look("fal_client", load=load))) == {"fal_client._error.NewError"}


def test_a_namespace_is_looked_through(here: Path) -> None:
    package(here / "google", "brandnew", "")
    (here / "google" / "brandnew" / "errors.py").write_text("class StrangeError(Exception): pass")

    assert "google.brandnew.errors.StrangeError" in standings(look("google"))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        # There is no class to be read, so it is loaded.
        ("raise ImportError('no')", "ImportError"),
        ("raise SystemExit(7)", "SystemExit"),
        ("import os; os._exit(7)", "a process that died"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "a process that died"),
    ],
)
def test_a_package_that_cannot_be_loaded_costs_one_line(here: Path, source: str, told: str) -> None:
    package(here, "ollama", source)

    sdk = look("ollama")

    assert (sdk.broken, sdk.classes) == (told, ())


def test_a_rule_for_one_class_alone_is_not_inherited() -> None:
    line = [("acme", "AcmeError"), ("builtins", "RuntimeError"), ("builtins", "Exception")]

    assert judge("acme", "AcmeError", line).standing == "unknown"


def test_what_is_no_failure_of_a_call_says_why() -> None:
    found = judge("aiohttp.web_exceptions", "HTTPFound", [("aiohttp.web_exceptions", "HTTPFound")])

    assert (found.standing, found.by) == ("beside", "what a server answers, not what a call meets")


def doctor(here: Path, *arguments: str) -> Done:
    paths = f"{environment()['PYTHONPATH']}:{here}"
    return failwell("doctor", "sdks", "--sdk", "ollama", *arguments, env={"PYTHONPATH": paths})


def test_the_command_counts_and_names_what_is_unknown(here: Path) -> None:
    package(here, "ollama", OLLAMA)

    done = doctor(here)

    assert done.code == 0
    # Where a real ollama is installed, its release stands behind the name.
    assert [re.sub(r"^ollama [^:]+:", "ollama:", line) for line in done.out.splitlines()] == [
        "ollama: 2 mapped, 2 inherited, 2 unspecific, 1 unknown",
        '  unknown     ollama.Brandnew  failwell.register_exception("ollama.Brandnew", kind="…")',
        "1 package, 7 exception classes, 2 unspecific, 1 unknown",
        "Give each a kind at start-up with the line beside it; `failwell kinds` lists the kinds.",
    ]


def test_every_class_is_listed_on_request(here: Path) -> None:
    package(here, "ollama", OLLAMA)

    lines = doctor(here, "--all").out.splitlines()

    assert "  inherited   ollama.Answered  by ollama.ResponseError" in lines
    assert (
        "  unspecific  ollama.Narrower  by ollama.ResponseError, as provider.unknown: "
        'failwell.register_exception("ollama.Narrower", kind="…")'
    ) in lines


def test_strict_fails_when_something_is_unknown(here: Path) -> None:
    package(here, "ollama", OLLAMA)

    assert doctor(here, "--strict").code == 1


def test_strict_is_content_when_all_is_known(here: Path) -> None:
    package(here, "ollama", "class ResponseError(Exception): pass")

    assert doctor(here, "--strict").code == 0


def test_strict_fails_when_a_package_cannot_be_loaded(here: Path) -> None:
    package(here, "ollama", "raise ImportError")

    assert doctor(here, "--strict").code == 1


def test_json_holds_everything(here: Path) -> None:
    package(here, "ollama", OLLAMA)

    (sdk,) = doctor(here, "--json").data

    assert sdk["counts"] == {"mapped": 2, "inherited": 2, "unspecific": 2, "unknown": 1}
    assert {one["name"] for one in sdk["classes"]} == set(standings(look("ollama")))


def test_markdown_is_for_agents(here: Path) -> None:
    package(here, "ollama", OLLAMA)

    text = doctor(here, "--agent").out

    assert re.match(r"## ollama[^\n]*\n\n2 mapped, 2 inherited, 2 unspecific, 1 unknown\n", text)
    assert '- unknown: `ollama.Brandnew` `failwell.register_exception("ollama.Brandnew", kind="…")`' in text


def test_what_is_installed_here_is_named_with_its_release() -> None:
    (sdk,) = installed(["hypothesis"])

    assert sdk.releases[0].startswith("hypothesis ")
    assert "hypothesis.errors.NoSuchExample" in standings(sdk)
