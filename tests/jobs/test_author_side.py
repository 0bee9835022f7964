"""What authors import: the same names and shapes whether failwell is installed beside them or not."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import failwell.capability as real
from failwell.jobs.child import author
from failwell.jobs.manifest import Variable, manifest_of
from tests.jobs.workers import a_worker, run

ERRORS = [name for name in dir(author) if name.endswith("Error") and hasattr(real, name)]
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


def test_every_error_of_the_real_module_has_its_stand_in() -> None:
    assert len(ERRORS) == 11
    assert {name for name in real.__all__ if name.endswith("Error")} - {"JobError"} == set(ERRORS)


@pytest.mark.parametrize("name", ERRORS)
def test_a_stand_in_is_called_raised_and_caught_like_the_real_one(name: str) -> None:
    stand_in, genuine = getattr(author, name), getattr(real, name)

    ours = [one.__name__ for one in genuine.__mro__ if one.__name__ in ERRORS]
    assert [one.__name__ for one in stand_in.__mro__ if one.__name__ in ERRORS] == ours
    assert (stand_in.category, stand_in.default_retriable) == (genuine.category, genuine.default_retriable)
    assert not issubclass(stand_in, ValueError)
    if "__init__" in stand_in.__dict__:
        known = inspect.signature(genuine).parameters
        for parameter in inspect.signature(stand_in).parameters.values():
            assert known[parameter.name].kind is parameter.kind
            assert known[parameter.name].default == parameter.default


@pytest.mark.parametrize(
    ("name", "given", "more"),
    [
        ("CapabilityTimeoutError", ("w", 30.0), {"retry_after_seconds": 60.0}),
        ("WorkerOOMError", ("w",), {"process_returncode": -9}),
        ("CapabilityCancelledError", ("w",), {}),
        ("CapabilityDisabledError", ("w",), {}),
        ("CapabilityNotLoadedError", ("w",), {}),
        (
            "CapabilityConfigError",
            ("two keys are wrong",),
            {"fields_invalid": ["a"], "config_class_name": "C"},
        ),
    ],
)
def test_a_stand_in_says_what_the_real_one_says(
    name: str, given: tuple[Any, ...], more: dict[str, Any]
) -> None:
    stand_in: Any = getattr(author, name)(*given, **more)
    genuine: Any = getattr(real, name)(*given, **more)

    held: dict[str, Any] = stand_in.__dict__
    assert str(stand_in) == str(genuine)
    assert all(getattr(genuine, key) == value for key, value in held.items())


def test_outside_a_worker_the_helpers_do_nothing() -> None:
    called: list[str] = []

    real.progress(0.5, "half")
    real.usage({"tokens": 1})
    real.check_cancel()
    with real.heartbeat("loading"), real.on_cancel(lambda: called.append("cancelled")):
        inside = real.is_cancelled()

    assert (inside, called) == (False, [])
    with pytest.raises(AttributeError):
        real.no_such_name  # noqa: B018


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
