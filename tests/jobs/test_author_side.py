"""What authors import: the same names and shapes whether failwell is installed beside them or not."""

from pathlib import Path
from typing import Any

import pytest

import failwell.capability as real
from failwell.jobs.manifest import Variable, manifest_of
from tests.jobs.workers import a_worker, reported, run

CAPABILITY = """
from failwell.capability import CapabilityInputError, capability, check_cancel, is_cancelled, progress, usage

@capability(name="measure", version="3.1")
def measure(text):
    check_cancel()
    progress(0.5, "half")
    usage({"characters": len(text)})
    if not text:
        raise CapabilityInputError("there is no text", fields_invalid=["text"])
    return [len(text), is_cancelled()]
"""


SURROUNDINGS = """
import importlib.util, sys
import failwell, failwell.capability, http

def surroundings():
    error = failwell.capability.CapabilityInputError
    return {
        "failwell": failwell.__file__,
        "classes": [cls.__module__ for cls in error.__mro__],
        "http": http.__file__,
        "found": [name for name in ("yaml", "rich", "jobs", "delivery") if importlib.util.find_spec(name)],
        "path": sys.path,
    }
"""


def test_a_bare_environment_has_the_failwell_of_the_host_and_nothing_else_of_it(
    bare_python: str, tmp_path: Path
) -> None:
    (tmp_path / "around.py").write_text(SURROUNDINGS)

    async def work() -> Any:
        async with a_worker("around:surroundings", python=bare_python, path=(str(tmp_path),)) as (worker, _):
            return await worker.call("one")

    seen = run(work())

    package = Path(real.__file__).parent
    assert seen["failwell"] == str(package / "__init__.py")
    assert "failwell.errors.fault" in seen["classes"]
    assert str(package) not in seen["http"]
    assert seen["found"] == []
    assert not any(entry.startswith(str(package.parent)) for entry in seen["path"])


def test_a_failwell_of_the_environment_wins_and_its_failures_are_answered_all_the_same(
    bare_python: str, tmp_path: Path
) -> None:
    (tmp_path / "failwell").mkdir()
    (tmp_path / "failwell" / "__init__.py").write_text("ORIGIN = 'their own'\n")
    (tmp_path / "theirs.py").write_text(
        "import failwell\n\ndef run(fail):\n    if fail:\n        raise MemoryError('no room')\n    return failwell.ORIGIN\n"
    )

    async def work() -> Any:
        async with a_worker("theirs:run", python=bare_python, path=(str(tmp_path),)) as (worker, _):
            origin = await worker.call("one", {"fail": False})
            return origin, await reported(worker.call("two", {"fail": True}))

    origin, report = run(work())

    assert origin == "their own"
    assert (report.kind, report.error_type) == ("resource.system_memory", "MemoryError")


def test_outside_a_worker_the_helpers_do_nothing() -> None:
    called: list[str] = []

    real.progress(0.5, "half")
    real.usage({"tokens": 1})
    real.check_cancel()
    with real.heartbeat("loading"), real.on_cancel(lambda: called.append("cancelled")):
        inside = real.is_cancelled()

    assert (inside, called) == (False, [])
    with pytest.raises(AttributeError):
        getattr(real, "no_such_name")  # noqa: B009


@pytest.mark.parametrize("installed", [False, True], ids=["without failwell", "with failwell"])
def test_one_file_works_with_failwell_installed_and_without(
    installed: bool, bare_python: str, tmp_path: Path
) -> None:
    (tmp_path / "measuring.py").write_text(CAPABILITY)
    source = str(Path(real.__file__).parents[1])
    env = (Variable(name="PYTHONPATH", value=source),) if installed else ()

    async def work() -> Any:
        async with a_worker("measuring:measure", python=bare_python, path=(str(tmp_path),), env=env) as (
            worker,
            told,
        ):
            made = await worker.call("one", {"text": "hello"})
            with pytest.raises(real.CapabilityInputError) as caught:
                await worker.call("two", {"text": ""})
            kinds = [type(one).__name__ for one in told if type(one).__name__ in ("Progress", "Used")]
            return made, caught.value.fields_invalid, kinds, worker.about["name"], worker.about["version"]

    made, fields, kinds, name, version = run(work())

    assert made == [5, False]
    assert list(fields or ()) == ["text"]
    assert kinds == ["Progress", "Used", "Progress", "Used"]
    assert (name, version) == ("measure", "3.1")


@pytest.mark.parametrize(
    ("line", "name", "version"),
    [
        ("@capability", "measure", ""),
        ("@capability()", "measure", ""),
        ("@capability(name='ruler', version='2')", "ruler", "2"),
    ],
)
def test_a_function_is_marked_with_and_without_parentheses(
    line: str, name: str, version: str, bare_python: str, tmp_path: Path
) -> None:
    (tmp_path / "marking.py").write_text(
        f"from failwell.capability import capability\n\n{line}\ndef measure(text):\n    return len(text)\n"
    )

    async def work() -> Any:
        async with a_worker("marking:measure", python=bare_python, path=(str(tmp_path),)) as (worker, _told):
            made = await worker.call("one", {"text": "hello"})
            return made, worker.about["name"], worker.about["version"]

    assert run(work()) == (5, name, version)


@real.capability(name="ruler", version="2")
def _measured(text: str) -> int:
    return len(text)


@real.capability
class Plain:
    def execute(self, text: str) -> int:
        return len(text)


def test_what_a_function_is_marked_with_is_what_a_runtime_knows_it_by() -> None:
    named, plain = manifest_of(_measured), manifest_of(Plain)

    assert (named.name, named.version) == ("ruler", "2")
    assert (plain.name, plain.version) == ("plain", "")
    assert (_measured("abc"), Plain().execute("abc")) == (3, 3)
