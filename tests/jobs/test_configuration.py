"""Configurations: checked on the host, every bad field named, applied without a restart."""

import asyncio
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.capability import CapabilityConfigError
from failwell.jobs import UnknownConfigWarning
from failwell.jobs.manifest import Manifest
from failwell.jobs.manifest_file import parse_manifest
from failwell.jobs.settings import Settings, config_hash
from failwell.jobs.settings_schema import unknown_keys
from failwell.jobs.workers.protocol import Ready, Started, WorkerState
from failwell.jobs.workers.supervisor import SupervisedWorker
from tests.jobs.children import children
from tests.jobs.workers import a_manifest, a_worker, failure, run, until

WORKERS = str(Path(__file__).with_name("workers.py"))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "SampleConfig",
    "properties": {
        "model": {"type": "string", "enum": ["small", "large"], "default": "small"},
        "beam": {"type": "integer", "minimum": 1, "maximum": 16, "default": 4},
        "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": True},
        "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "deep": {
            "type": "object",
            "properties": {"x": {"type": "number", "exclusiveMinimum": 0, "default": 1}},
        },
        "speed": {"$ref": "#/$defs/speed"},
    },
    "additionalProperties": False,
    "$defs": {"speed": {"type": "number", "exclusiveMaximum": 10, "multipleOf": 0.5}},
}


def checked(schema: dict[str, Any], config: dict[str, Any], *, strict: bool = True) -> dict[str, Any]:
    manifest = Manifest(name="sample", object="sample:Sample", config=schema, config_strict=strict)
    return dict(Settings(manifest).settle(config, None).effective)


def refusal(config: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> CapabilityConfigError:
    with pytest.raises(CapabilityConfigError) as caught:
        checked(schema, config)
    return caught.value


def test_defaults_are_filled_in_and_nothing_that_was_given_is_changed() -> None:
    given_: dict[str, Any] = {"beam": 2, "deep": {}}

    made = checked(SCHEMA, given_)

    assert made == {"model": "small", "beam": 2, "deep": {"x": 1}}
    assert given_ == {"beam": 2, "deep": {}}


@pytest.mark.acceptance("cjm-substrate 53")
def test_unknown_keys_are_all_named() -> None:
    error = refusal({"modle": "small", "beem": 3, "beam": 3})

    assert error.fields_invalid == ["beem", "modle"]
    assert error.config_class_name == "SampleConfig"


@pytest.mark.acceptance("cjm-substrate 53")
def test_lenient_checking_leaves_unknown_keys_out_and_warns_of_exactly_these() -> None:
    given_ = {"modle": 1, "beam": 3, "deep": {"x": 2, "y": 3}}

    with pytest.warns(UnknownConfigWarning, match="not known: `deep.y`, `modle`;") as caught:
        made = checked(SCHEMA, given_, strict=False)

    assert made == {"model": "small", "beam": 3, "deep": {"x": 2}}
    assert [one.filename for one in caught] == [__file__]
    assert given_ == {"modle": 1, "beam": 3, "deep": {"x": 2, "y": 3}}


def test_lenient_checking_of_what_is_known_is_as_strict_and_warns_of_nothing() -> None:
    assert checked(SCHEMA, {"beam": 3}, strict=False) == {"model": "small", "beam": 3}
    with pytest.raises(CapabilityConfigError) as caught:
        checked(SCHEMA, {"beam": 99, "modle": 1}, strict=False)

    assert caught.value.fields_invalid == ["beam"]


TABLES: dict[str, Any] = {
    "properties": {
        "one": {"properties": {"a": {}}},
        "maybe": {"anyOf": [{"$ref": "#/$defs/table"}, {"type": "null"}]},
        "many": {"type": "array", "items": {"$ref": "#/$defs/table"}},
        "named": {"type": "object", "additionalProperties": {"$ref": "#/$defs/table"}},
        "open": {"properties": {"a": {}}, "additionalProperties": True},
        "free": {"type": "object"},
    },
    "$defs": {"table": {"type": "object", "properties": {"a": {}}, "additionalProperties": False}},
}


@pytest.mark.acceptance("cjm-substrate 53")
@pytest.mark.parametrize(
    ("config", "places"),
    [
        ({"one": {"a": 1, "b": 2}}, ["one.b"]),
        ({"maybe": {"a": 1, "b": 2}}, ["maybe.b"]),
        ({"maybe": None}, []),
        ({"many": [{"a": 1}, {"b": 2}]}, ["many[1].b"]),
        ({"named": {"x": {"a": 1, "b": 2, "c": 3}}}, ["named.x.b", "named.x.c"]),
        ({"open": {"b": 2}, "free": {"b": {"c": 3}}}, []),
        ({"one": {"b": 1}, "two": {"a": 1}}, ["one.b", "two"]),
    ],
)
def test_unknown_keys_are_named_at_every_depth_and_left_out_if_that_is_wanted(
    config: dict[str, Any], places: list[str]
) -> None:
    assert unknown_keys(TABLES, config) == places
    if not places:
        assert checked(TABLES, config) == config
        return
    assert refusal(config, TABLES).fields_invalid == places

    with pytest.warns(UnknownConfigWarning, match=re.escape(", ".join(f"`{one}`" for one in places) + ";")):
        made = checked(TABLES, config, strict=False)

    assert unknown_keys(TABLES, made) == []


@pytest.mark.acceptance("cjm-substrate 54")
@pytest.mark.parametrize(
    ("config", "field", "words"),
    [
        ({"model": "huge"}, "model", "must be one of 'small', 'large', not 'huge'"),
        ({"model": 3}, "model", "must be a string, not 3"),
        ({"beam": 0}, "beam", "at least 1"),
        ({"beam": 17}, "beam", "at most 16"),
        ({"beam": True}, "beam", "must be an integer, not True"),
        ({"beam": 2.5}, "beam", "must be an integer"),
        ({"name": "x"}, "name", "at least 2 characters"),
        ({"name": "abcde"}, "name", "at most 4 characters"),
        ({"name": "AB"}, "name", "must match"),
        ({"tags": ["a", 2]}, "tags[1]", "must be a string"),
        ({"tags": ["a", "a"]}, "tags", "the same item twice"),
        ({"tags": ["a", "b", "c"]}, "tags", "at most 2 items"),
        ({"size": "big"}, "size", "an integer or null"),
        ({"deep": {"x": 0}}, "deep.x", "more than 0"),
        ({"deep": []}, "deep", "must be an object"),
        ({"speed": 10}, "speed", "less than 10"),
        ({"speed": 0.3}, "speed", "multiple of 0.5"),
        ({"speed": float("nan")}, "speed", "finite"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(config: dict[str, Any], field: str, words: str) -> None:
    error = refusal(config)

    assert error.fields_invalid == [field]
    assert words in str(error)


@pytest.mark.acceptance("cjm-substrate 54")
def test_every_bad_field_is_named_at_once() -> None:
    error = refusal({"model": "huge", "beam": 99, "extra": 1, "deep": {"x": -1}})

    assert error.fields_invalid == ["beam", "deep.x", "extra", "model"]


def test_a_missing_required_field_is_named() -> None:
    error = refusal({}, {"type": "object", "properties": {"a": {}}, "required": ["a"]})

    assert error.fields_invalid == ["a"]


def test_a_schema_that_asks_for_more_than_is_understood_is_refused() -> None:
    error = refusal({}, {"properties": {"a": {"if": {}, "then": {}}}, "patternProperties": {}})

    assert error.fields_invalid == [
        "config.patternProperties", "config.properties.a.if", "config.properties.a.then",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "place", "words"),
    [
        (
            {"properties": {"a": {"type": "intger"}}},
            "config.properties.a.type",
            "`object`, not 'intger'; did you mean `integer`?",
        ),
        (
            {"properties": {"a": {"type": ["string", "nul"]}}},
            "config.properties.a.type",
            "did you mean `null`?",
        ),
        ({"properties": {"a": {"minimun": 1}}}, "config.properties.a.minimun", "did you mean `minimum`?"),
        ({"properties": {"a": 3}}, "config.properties.a", "must be a schema, not 3"),
        ({"properties": []}, "config.properties", "must be a table of schemas"),
        ({"required": "a"}, "config.required", "must be a list of names"),
        ({"properties": {"a": {"enum": "small"}}}, "config.properties.a.enum", "must be a list of values"),
        (
            {"properties": {"a": {"pattern": "("}}},
            "config.properties.a.pattern",
            "must be a regular expression",
        ),
        ({"properties": {"a": {"minimum": "1"}}}, "config.properties.a.minimum", "must be a number"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "config.properties.a.$ref", "leads nowhere"),
        ({"properties": {"a": {"anyOf": [{"type": "text"}]}}}, "config.properties.a.anyOf[0].type", "'text'"),
    ],
)
def test_a_mistake_in_a_schema_is_named_where_it_is_before_any_value_is(
    schema: dict[str, Any], place: str, words: str
) -> None:
    error = refusal({"a": 1}, schema)

    assert error.fields_invalid == [place]
    assert words in str(error)
    with pytest.raises(CapabilityConfigError, match="not a valid manifest"):
        parse_manifest({"name": "x", "object": "m:f", "config": schema})


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=6))
def test_the_hash_of_a_configuration_does_not_depend_on_the_order_of_its_keys(config: dict[str, Any]) -> None:
    assert config_hash(config) == config_hash(dict(reversed(list(config.items()))))


# ------------------------------------------------------------------ on a worker


def test_a_dataclass_is_its_own_schema_and_arrives_as_one() -> None:
    async def work() -> Any:
        async with a_worker("sample:Configured", config={"beam": 8}) as (worker, _):
            return await worker.call("one"), dict(worker.config), worker.about["schema"]

    seen, config, schema = run(work())

    assert (seen["model"], seen["beam"], seen["type"]) == ("small", 8, "Config")
    assert config == {"model": "small", "beam": 8, "language": None, "temperature": 0.0, "voice": "alto"}
    assert schema["properties"]["beam"] == {"type": "integer", "minimum": 1, "maximum": 16, "default": 4}


@pytest.mark.acceptance("cjm-substrate 53", "cjm-substrate 54")
@pytest.mark.parametrize("declared", [True, False], ids=["in the manifest", "by the capability"])
def test_a_bad_configuration_starts_nothing_that_stays(declared: bool) -> None:
    schema = {"properties": {"beam": {"type": "integer", "maximum": 16}}} if declared else None

    worker = SupervisedWorker(
        a_manifest("sample:Configured", config=schema), config={"beam": 99, "colour": "red"}
    )

    async def work() -> Any:
        return await failure(worker.start()), children()

    fault, left = run(work())

    assert isinstance(fault, CapabilityConfigError)
    assert fault.fields_invalid == ["beam", "colour"]
    assert left == []


@pytest.mark.acceptance("cjm-substrate 55")
def test_a_changed_field_releases_only_what_was_made_from_it_and_restarts_nothing() -> None:
    async def work() -> Any:
        async with a_worker("sample:Configured") as (worker, told):
            await worker.start()
            seen: list[Any] = []
            for config in (
                {"beam": 8, "temperature": 0.5},
                {"beam": 8, "model": "large"},
                {"beam": 9, "model": "large"},
                {"beam": 9, "model": "large", "voice": "bass"},
            ):
                await worker.reconfigure(config)
                seen.append(await worker.call("one"))
            return seen, len(told.of(Started)), dict(worker.config)

    seen, starts, config = run(work())

    assert [one["released"] for one in seen] == [[], ["small"], ["small"], ["small", "alto"]]
    assert [one["beam"] for one in seen] == [8, 8, 9, 9]
    assert [one["model"] for one in seen] == ["small", "large", "large", "large"]
    assert {one["initialised"] for one in seen} == {1}
    assert starts == 1
    assert (config["model"], config["voice"], config["temperature"]) == ("large", "bass", 0.0)


@pytest.mark.acceptance("cjm-substrate 54")
@pytest.mark.parametrize("declared", [True, False], ids=["in the manifest", "by the capability"])
def test_bad_values_are_all_named_and_none_reaches_the_worker(declared: bool) -> None:
    bad = {"model": "huge", "beam": 99, "temperature": "warm"}
    schema = None
    if declared:
        schema = {
            "properties": {
                "model": {"enum": ["small", "large"]},
                "beam": {"type": "integer", "maximum": 16},
                "temperature": {"type": "number"},
            }
        }
    manifest = a_manifest("sample:Configured", config=schema)

    async def work() -> Any:
        never, live, told = SupervisedWorker(manifest, config=bad), SupervisedWorker(manifest), list[Any]()
        never.listen(told.append)
        try:
            loading = await failure(never.start())
            await live.start()
            changing = await failure(live.reconfigure(bad))
            return loading, changing, never.state, told, await live.call("one"), live.generation
        finally:
            await live.stop()

    loading, changing, state, told, seen, generation = run(work())

    for fault in (loading, changing):
        assert isinstance(fault, CapabilityConfigError)
        assert fault.fields_invalid == ["beam", "model", "temperature"]
    assert state is WorkerState.COLD
    assert not [one for one in told if isinstance(one, Ready)]
    if declared:
        assert told == []
    assert (seen["model"], seen["beam"], seen["released"], seen["initialised"]) == ("small", 4, [], 1)
    assert generation == 1


@pytest.mark.acceptance("cjm-substrate 53")
def test_a_bad_change_changes_nothing() -> None:
    async def work() -> Any:
        async with a_worker("sample:Configured", config={"beam": 2}) as (worker, _):
            await worker.start()
            fault = await failure(worker.reconfigure({"beam": 0, "nope": 1}))
            return fault, dict(worker.config), await worker.call("one")

    fault, config, seen = run(work())

    assert isinstance(fault, CapabilityConfigError)
    assert fault.fields_invalid == ["beam", "nope"]
    assert (config["beam"], seen["beam"]) == (2, 2)


@pytest.mark.acceptance("cjm-substrate 53")
@pytest.mark.parametrize("declared", [True, False], ids=["in the manifest", "by the capability"])
def test_a_change_of_a_worker_that_was_never_started_is_checked_too(declared: bool) -> None:
    schema = {"properties": {"beam": {"type": "integer"}}} if declared else None

    async def work() -> Any:
        worker = SupervisedWorker(a_manifest("sample:Configured", config=schema), config={"beam": 2})
        told: list[Any] = []
        worker.listen(told.append)
        try:
            fault = await failure(worker.reconfigure({"nope": 1, "colour": "red"}))
            return fault, dict(worker.config), told, children()
        finally:
            await worker.stop()

    fault, config, told, left = run(work())

    assert isinstance(fault, CapabilityConfigError)
    assert fault.fields_invalid == ["colour", "nope"]
    assert config == {"beam": 2}
    assert (told, left) == ([], [])


@pytest.mark.acceptance("cjm-substrate 53")
def test_a_lenient_manifest_has_unknown_keys_left_out_when_it_is_loaded_and_when_it_is_changed() -> None:
    async def work() -> Any:
        async with a_worker(
            "sample:Nested",
            config={"model": "large", "colour": "red", "audio": {"rate": 8000, "chanels": 2}},
            defaults={"size": 3},
            config_strict=False,
        ) as (worker, _):
            with pytest.warns(UnknownConfigWarning) as loading:
                loaded = await worker.call("one")
            with pytest.warns(UnknownConfigWarning) as changing:
                taken = await worker.reconfigure({"model": "tiny", "hue": 1, "backup": {"rate": 1, "x": 2}})
            changed = await worker.call("two")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                await worker.restart()
                again = await worker.call("three")
            fault = await failure(worker.reconfigure({"model": 7, "hue": 1}))
            return loading, loaded, changing, taken, changed, again, fault

    loading, loaded, changing, taken, changed, again, fault = run(work())

    assert [named(one) for one in loading] == [["audio.chanels", "colour", "size"]]
    assert [named(one) for one in changing] == [["backup.x", "hue"]]
    assert {one.filename for one in (*loading, *changing)} <= {__file__, WORKERS}
    assert loaded == ["large", 8000, None]
    assert taken == {"model": "tiny", "backup": {"rate": 1}}
    assert changed == again == ["tiny", 16000, 1]
    assert isinstance(fault, CapabilityConfigError)
    assert fault.fields_invalid == ["model"]


@pytest.mark.acceptance("cjm-substrate 53")
def test_who_takes_warnings_for_errors_gets_no_worker_and_no_change() -> None:
    async def work() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UnknownConfigWarning)
            async with a_worker("sample:Configured", config={"x": 1}, config_strict=False) as (worker, _):
                faults = [
                    await failure(worker.start()),
                    await failure(worker.reconfigure({"beam": 5, "y": 1, "z": 2})),
                ]
                return faults, dict(worker.config), worker.state, children()

    faults, config, state, left = run(work())

    assert [type(one) for one in faults] == [CapabilityConfigError, CapabilityConfigError]
    assert [getattr(one, "fields_invalid", None) for one in faults] == [["x"], ["y", "z"]]
    assert [type(one.__cause__) for one in faults] == [UnknownConfigWarning, UnknownConfigWarning]
    assert (config, state, left) == ({"x": 1}, WorkerState.COLD, [])


def named(warning: warnings.WarningMessage) -> list[str]:
    """The keys that a warning names, in its order."""
    told = str(warning.message).partition("not known: ")[2].partition(";")[0]
    return [one.strip("`") for one in told.split(", ")]


def test_a_change_while_it_starts_comes_after_the_start() -> None:
    async def work() -> Any:
        async with a_worker(config={"beating": 0.5}) as (worker, told):
            starting = asyncio.ensure_future(worker.start())
            await until(lambda: bool(told.of(Started)))
            await worker.reconfigure({"model": "large"})
            await starting
            return await worker.call("one", action="seen_config"), dict(worker.config), len(told.of(Started))

    assert run(work()) == ({"model": "large"}, {"model": "large"}, 1)


def test_a_changed_configuration_survives_the_process() -> None:
    async def work() -> Any:
        async with a_worker("sample:Configured") as (worker, _):
            await worker.start()
            await worker.reconfigure({"beam": 3})
            await worker.restart()
            return (await worker.call("one"))["beam"]

    assert run(work()) == 3


def test_the_capabilitys_hooks_are_called_when_their_time_comes() -> None:
    async def work() -> Any:
        async with a_worker() as (worker, _):
            await worker.prefetch()
            await worker.enabled(on=False)
            await worker.enabled(on=True)
            released = await worker.release()
            return released, await worker.call("one", action="lived")

    assert run(work()) == (True, ["initialize", "prefetch", "disable", "enable", "release"])


def test_a_capability_that_cannot_release_says_so() -> None:
    async def work() -> Any:
        async with a_worker("sample:double") as (worker, _):
            cold = await worker.release()
            await worker.start()
            return cold, await worker.release()

    assert run(work()) == (False, False)
