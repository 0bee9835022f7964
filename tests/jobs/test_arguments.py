"""Arguments are checked where a job is submitted: every unknown, missing and mistyped one is named, and none is shown."""

import asyncio
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from failwell.capability import CapabilityInputError, CapabilityNotLoadedError, capability
from failwell.jobs import AsyncClient, Client
from failwell.jobs.capabilities import CapabilityRegistry
from failwell.jobs.client.registration import register_file
from failwell.jobs.faults import WorkerStartFailed
from failwell.jobs.worker_process.types.conversion import from_json_value, to_json_value
from failwell.jobs.worker_process.types.signature import Signature
from tests.jobs.queues import a_runtime
from tests.jobs.samples import tasks
from tests.jobs.workers import SAMPLES, run

TASKS = Path(SAMPLES) / "tasks.py"


def _register(folder: Path, file: Path = TASKS) -> CapabilityRegistry:
    registry = CapabilityRegistry(folder / "registry")
    asyncio.run(register_file(registry, file))
    return registry


def _a_client(folder: Path) -> Client:
    return Client(folder / "state", registry=folder / "registry")


def test_every_capability_of_a_python_file_is_registered_with_what_it_takes(tmp_path: Path) -> None:
    registry = _register(tmp_path)

    assert registry.names() == ["anything", "count-words", "crop", "hold", "resize"]
    manifest = registry.manifest("resize")
    assert (manifest.object, manifest.concurrency) == ("tasks:resize", 4)
    assert manifest.parameters == {
        "execute": {
            "type": "object",
            "properties": {"image": {"type": "string"}, "width": {"type": "integer"}},
            "required": ["image"],
            "additionalProperties": False,
        }
    }


def test_a_process_that_does_not_import_the_capability_names_every_mistake(tmp_path: Path) -> None:
    _register(tmp_path)
    with _a_client(tmp_path) as client:
        with pytest.raises(CapabilityInputError) as caught:
            client.submit("resize", imge="hunter2", width="hunter2")
        assert caught.value.fields_invalid == ["image", "imge", "width"]
        for words in (
            "`imge` is not known; did you mean `image`?",
            "`image` is missing",
            "`width` must be an integer, not a string",
        ):
            assert words in str(caught.value)
        assert "hunter2" not in str(caught.value)
        with pytest.raises(CapabilityInputError, match="has no action `shrink`; it has `execute`"):
            client.with_options(action="shrink").submit("resize", image="a")
        with pytest.raises(CapabilityInputError, match=r"request 2 of 2.*`image` is missing"):
            client.submit_many("resize", [{"image": "a"}, {}])
        # Arguments may have the names of options and of our own parameters.
        job = client.submit("anything", priority=3, what=1, self=2)
        assert job.record().request.arguments == {"priority": 3, "what": 1, "self": 2}


def test_code_that_was_changed_after_it_was_registered_is_judged_by_its_worker(tmp_path: Path) -> None:
    file = tmp_path / "scale.py"
    head = "from failwell.capability import capability\n@capability\n"
    file.write_text(f"{head}def scale(by: int) -> int:\n    return by\n")
    _register(tmp_path, file)

    async def work() -> None:
        client = AsyncClient(tmp_path / "state", registry=tmp_path / "registry")
        async with a_runtime(tmp_path), client:
            with pytest.raises(CapabilityInputError, match="`percent` is not known"):
                await client.submit("scale", percent=1)
            file.write_text(f"{head}def scale(percent: int) -> int:\n    return percent\n")
            job = await client.submit("scale", percent=1)
            assert await job.result(60) == 1
            # The worker has said what the new code takes.
            with pytest.raises(CapabilityInputError, match="`by` is not known"):
                await client.submit("scale", by=1)

    run(work())


def test_a_function_and_the_capability_of_its_name_must_be_the_same(tmp_path: Path) -> None:
    @capability(name="resize")
    def other(image: str) -> str:
        return image

    @capability
    def unheard(image: str) -> str:
        return image

    _register(tmp_path)
    with _a_client(tmp_path) as client:
        with pytest.raises(CapabilityInputError, match=r"runs `tasks:resize`, not `.*test_arguments:"):
            client.submit(other, image="a")
        with pytest.raises(CapabilityNotLoadedError) as caught:
            client.submit(unheard, image="a")
        assert caught.value.user_action is not None
        assert f"failwell capabilities add {__file__}" in caught.value.user_action.detail
        with pytest.raises(CapabilityInputError, match="is a class"):
            client.submit(Path)


def test_values_of_python_types_arrive_as_values_of_these_types(tmp_path: Path) -> None:
    _register(tmp_path)

    async def work() -> None:
        client = AsyncClient(tmp_path / "state", registry=tmp_path / "registry")
        async with a_runtime(tmp_path), client:
            box = tasks.Box(Path("a.png"), tasks.Side.LEFT)
            job = await client.submit(tasks.crop, box=box, image=b"\x00png", at={3, 1})
            assert await job.result(60) == (box, b"\x00png", 2)
            with pytest.raises(CapabilityInputError) as caught:
                await client.submit("crop", box={"file": 1, "side": "top"}, image=b"")
            assert caught.value.fields_invalid == ["at", "box"]

    run(work())


class _Point(NamedTuple):
    x: int
    y: float = 0.0


class _Colour(Enum):
    RED = 1


class _Order(BaseModel):
    pieces: int


@dataclass
class _Shape:
    points: tuple[_Point, ...]
    colour: _Colour | None = None


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (_Shape, _Shape((_Point(1, 2.5),), _Colour.RED)),
        (dict[str, Path], {"a": Path("/b")}),
        (tuple[int, Path], (1, Path("c"))),
        (set[int] | None, {3}),
        (datetime, datetime(2026, 1, 2, tzinfo=UTC)),
        (list[bytes], [b"\xff"]),
        (float, 3.5),
        (list[_Order], [_Order(pieces=3)]),
        (Any, {"free": [1]}),
    ],
)
def test_a_value_survives_json(hint: Any, value: Any) -> None:
    def function(value: Any) -> None:
        del value

    function.__annotations__["value"] = hint
    schema = Signature(function).schema()["properties"]["value"]

    assert from_json_value(hint, to_json_value(value, schema)) == value


def test_a_python_file_without_capabilities_or_that_cannot_be_imported_says_so(tmp_path: Path) -> None:
    registry = CapabilityRegistry(tmp_path)
    for name, text, error, words in (
        ("plain.py", "x = 1\n", CapabilityInputError, "plain.py has no capability"),
        ("broken.py", "import no_such_module\n", WorkerStartFailed, "ModuleNotFoundError"),
        ("not-a-name.py", "", CapabilityInputError, "not a Python name"),
        (
            "wrong.py",
            "from failwell.capability import capability\n@capability(concurency=2)\ndef f() -> None: ...\n",
            CapabilityInputError,
            "did you mean `concurrency`?",
        ),
    ):
        file = tmp_path / name
        file.write_text(text)
        with pytest.raises(error, match=words.replace("?", r"\?")):
            asyncio.run(register_file(registry, file))
    with pytest.raises(CapabilityInputError, match=r"there is no file missing\.py"):
        asyncio.run(register_file(registry, "missing.py"))
    assert registry.names() == []


def test_a_runtime_checks_arguments_before_a_worker_was_started(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_runtime(tmp_path) as jobs:
            name = jobs.register(tasks.resize)
            with pytest.raises(CapabilityInputError) as caught:
                await jobs.submit(name, {"imge": 1, "width": "wide"})
            assert caught.value.fields_invalid == ["image", "imge", "width"]
            assert jobs.counts()["failed"] == 0
            assert jobs.worker(name).pid is None

    run(work())


def test_arguments_that_json_cannot_hold_are_mistakes_of_the_caller(tmp_path: Path) -> None:
    file = tmp_path / "shapes.py"
    file.write_text(
        "from failwell.capability import capability\n"
        "@capability\ndef by_number(table: dict[int, str]) -> int: return 1\n"
        "@capability\ndef whatever(value) -> int: return 1\n"
    )
    _register(tmp_path, file)
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = 1
    for _ in range(2_000):
        deep = [deep]

    with _a_client(tmp_path) as client:
        with pytest.raises(
            CapabilityInputError, match="`table` has a key of type int; keys are text in JSON"
        ):
            client.submit("by_number", table={1: "a"})
        for value in (loop, deep):
            with pytest.raises(
                CapabilityInputError, match="have more than 200 levels, or contain themselves"
            ):
                client.submit("whatever", value=value)
            with pytest.raises(CapabilityInputError, match="levels"):
                client.submit_many("whatever", [{"value": value}])


ONE = "from failwell.capability import capability\n@capability\ndef one() -> int: return 1\n"


def test_a_file_that_a_module_of_python_hides_says_so(tmp_path: Path) -> None:
    alone, inside = tmp_path / "json.py", tmp_path / "below" / "json" / "tasks.py"
    inside.parent.mkdir(parents=True)
    (inside.parent / "__init__.py").touch()
    for file in (alone, inside):
        file.write_text(ONE)

        with pytest.raises(CapabilityInputError, match="Python has a module `json` of its own; rename"):
            _register(tmp_path, file)


def test_a_file_that_is_found_before_a_module_of_python_is_registered(tmp_path: Path) -> None:
    file = tmp_path / "turtle.py"
    file.write_text(ONE)

    assert _register(tmp_path, file).names() == ["one"]


def test_a_capability_of_another_folder_is_replaced_only_on_purpose(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "tasks.py").write_text(
            f"from failwell.capability import capability\n@capability\ndef send() -> str: return {folder.name!r}\n"
        )
    registry = _register(tmp_path, first / "tasks.py")
    asyncio.run(register_file(registry, first / "tasks.py", replace="same folder"))

    with pytest.raises(CapabilityInputError) as caught:
        asyncio.run(register_file(registry, second / "tasks.py", replace="same folder"))
    assert str(first) in str(caught.value)
    assert "capabilities add FILE --force" in str(caught.value.user_action)
    assert registry.manifest("send").directory == str(first)

    shutil.rmtree(first)
    asyncio.run(register_file(registry, second / "tasks.py", replace="same folder"))
    assert registry.manifest("send").directory == str(second)
