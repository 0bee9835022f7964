"""How an adapter is found: by names along the MRO, once per class, and never by importing anybody."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.adapters.registry import entries, find, read
from failwell.errors.foreign_objects import int_attr, safe_call, safe_getattr, safe_getattrs, str_attr
from failwell.errors.known_libraries import HOMES
from tests.adapters.raisers import CANARY

SRC = Path(__file__).resolve().parents[2] / "src"


def a_class(name: str, module: str, *bases: type[BaseException]) -> type[Any]:
    return type(name, bases or (Exception,), {"__module__": module})


def loaded_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after `code`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_every_home_can_be_loaded_and_knows_its_modules() -> None:
    for top, home in HOMES.items():
        tables = __import__(f"failwell.adapters.vendors.{home}", fromlist=["TABLES"]).TABLES
        assert tables.get(top), f"{home} has no rows for {top}"


def test_adapters_never_import_the_vendor_they_read() -> None:
    loaded = loaded_after(
        "import failwell\n"
        "for module, name in [('pydantic_core', 'ValidationError'), ('yaml', 'YAMLError'),\n"
        "                     ('jsonschema', 'ValidationError'), ('sqlite3', 'OperationalError'),\n"
        "                     ('subprocess', 'CalledProcessError'), ('urllib.error', 'HTTPError'),\n"
        "                     ('asyncio', 'CancelledError')]:\n"
        "    made = type(name, (Exception,), {'__module__': module})\n"
        "    assert failwell.describe(made('x')).evidence[0].rule != 'adapter_failed', name\n"
    )

    vendors = {
        "pydantic",
        "pydantic_core",
        "yaml",
        "jsonschema",
        "sqlite3",
        "subprocess",
        "asyncio",
        "urllib3",
    }
    assert loaded & vendors == set()


def test_only_the_room_of_the_vendor_that_is_met_is_loaded() -> None:
    code = "import failwell, sys\nfailwell.describe(ValueError('x'))\n"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}print([n for n in sys.modules if n.startswith('failwell.adapters.')])",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )

    assert "failwell.adapters.vendors.python" in done.stdout
    assert "failwell.adapters.vendors.pydantic" not in done.stdout


def test_a_class_is_known_by_the_top_of_its_module_and_its_name() -> None:
    hidden = a_class("ValidationError", "pydantic_core._deep.inside")

    assert failwell.describe(hidden(CANARY), origin="input").kind == "validation.shape_invalid"


def test_the_nearest_listed_class_of_the_mro_speaks() -> None:
    both = a_class("Timeout", "acme", a_class("AcmeError", "acme"), TimeoutError)

    reading = read(both("x"))

    assert reading is not None
    assert reading.rule == "python.TimeoutError"


def test_a_vendors_class_beats_the_builtin_that_it_derives_from() -> None:
    error = a_class("ValidationError", "jsonschema", ValueError)(CANARY)

    assert failwell.describe(error, origin="input").evidence[0].rule == "jsonschema.ValidationError"


def test_an_unknown_class_has_no_adapter_and_is_never_retried() -> None:
    report = failwell.describe(a_class("Odd", "acme")(CANARY))

    assert (report.kind, report.category, report.retryable) == ("internal.unknown", "unknown", False)
    assert (report.evidence[0].rule, report.evidence[0].saw) == ("unclassified", "Odd")


def test_a_class_known_by_name_alone_can_be_looked_up() -> None:
    assert find("json.decoder", "JSONDecodeError") is not None
    assert find("json.decoder", "Nothing") is None
    assert find("acme", "JSONDecodeError") is None


def test_what_speaks_for_a_class_is_found_once() -> None:
    made = a_class("Once", "acme", KeyError)

    assert entries(made) is entries(made)


def test_programs_that_make_classes_on_the_fly_do_not_fill_the_memory() -> None:
    from failwell.adapters import registry

    for number in range(5_000):
        entries(a_class(f"Made{number}", "acme"))

    assert len(registry._entries) <= 4096  # pyright: ignore[reportPrivateUsage]


def test_a_class_that_lies_about_its_module_is_unclassified_and_not_a_second_failure() -> None:
    report = failwell.describe(type("Odd", (ValueError,), {"__module__": None})(CANARY))

    assert (report.kind, report.evidence[0].rule) == ("internal.unknown", "adapter_failed")


def test_an_adapter_that_fails_is_said_so_and_hides_nothing() -> None:
    error = a_class("ValidationError", "pydantic_core")("x")
    error.errors = lambda: 1 / 0

    report = failwell.describe(error)

    assert (report.kind, report.error_type) == ("internal.unknown", "ValidationError")
    assert report.evidence[0].rule == "adapter_failed"


class Biting:
    """An object whose attributes raise whatever they like."""

    nothing = None
    text = "  words  "
    blank = "   "
    number = 7
    flag = True

    @property
    def bite(self) -> str:
        raise GeneratorExit("from a property")


def test_a_property_that_raises_is_passed_over() -> None:
    assert safe_getattr(Biting(), "bite", "nothing", "missing", "text") == "  words  "
    assert safe_getattr(Biting(), "bite", default="nothing there") == "nothing there"


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_the_guarded_helpers_let_an_interrupt_and_an_exit_pass(signal: type[BaseException]) -> None:
    def interrupted(_: object = None) -> str:
        raise signal

    class Interrupted:
        text = property(interrupted)

    with pytest.raises(signal):
        safe_getattr(Interrupted(), "text")
    with pytest.raises(signal):
        safe_getattrs(Interrupted(), ("text",))
    with pytest.raises(signal):
        safe_call(interrupted, "default")


def test_a_guarded_call_gives_its_default_where_the_call_raises() -> None:
    assert safe_call(int, None, "seven") is None
    assert safe_call(int, None, "7") == 7


def test_texts_and_numbers_are_taken_only_if_they_are() -> None:
    assert str_attr(Biting(), "bite", "number", "blank", "text") == "  words  "
    assert str_attr(Biting(), "text", limit=4) == "  wo"
    assert int_attr(Biting(), "text", "flag", "number") == 7
    assert (str_attr(Biting(), "number"), int_attr(Biting(), "flag")) == (None, None)


@pytest.mark.parametrize("made", [BaseException, type("Own", (BaseException,), {})])
def test_even_a_bare_base_exception_gets_a_report(made: type[BaseException]) -> None:
    assert failwell.describe(made(CANARY)).kind == "internal.unknown"
