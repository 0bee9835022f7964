"""The published schema says exactly what the writer writes."""

import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given

import failwell
from failwell import Category, ErrorReport
from failwell.capability import TracebackPolicy
from failwell.errors import Blame, Certainty, Domain, scene
from failwell.errors.axes import ActionKind
from failwell.errors.kind_registry import KIND_PATTERN, LONGEST_KIND
from failwell.errors.report import SCHEMA
from failwell.errors.wire import schema
from failwell.errors.wire_fields import REPORT, Part
from tests.errors.strategies import reports

ROOT = Path(__file__).resolve().parents[2]


@cache
def validator() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(schema(), format_checker=jsonschema.FormatChecker())


def parts() -> dict[str, Part]:
    """Every record inside a report, under the name of its definition in the schema."""
    from failwell.errors import wire_fields as room

    named = {name.removesuffix("s") if part.is_list else name: part for name, part in REPORT.optional if part}
    return {**named, "user_action": vars(room)["_ACTION"]}


def objects(value: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of an object in the document, with its place."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        if held.get("type") == "object":
            yield where, held
        for name, inner in held.items():
            yield from objects(inner, f"{where}/{name}")


def test_it_is_a_schema() -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(schema())

    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@given(reports())
def test_every_report_fits_it(report: ErrorReport) -> None:
    validator().validate(report.to_dict())


@pytest.mark.parametrize("policy", list(TracebackPolicy))
def test_a_described_exception_fits_it(policy: TracebackPolicy) -> None:
    with scene(run="r1", node="n"):
        try:
            raise ExceptionGroup("two", [KeyError("x"), OSError(28, "full")])
        except ExceptionGroup as error:
            report = failwell.describe(cast("BaseException", error), policy=policy)

    validator().validate(report.to_dict())


def test_its_properties_are_the_records_fields() -> None:
    written = {field.name for field in fields(ErrorReport)} - {"extra"} | {"domain"}

    assert set(schema()["properties"]) == written == set(REPORT.decode)


@pytest.mark.parametrize("name", parts())
def test_the_properties_of_every_part_are_its_fields(name: str) -> None:
    part, defined = parts()[name], schema()["$defs"][name]

    assert list(defined["properties"]) == [field.name for field in fields(part.record_type)]
    assert set(defined.get("required", [])) == set(part.required)


def test_every_part_is_defined_and_nothing_else() -> None:
    assert set(schema()["$defs"]) == set(parts()) | {"time", "certainty"}


def test_what_is_always_written_is_required() -> None:
    assert schema()["required"] == list(REPORT.required)


@pytest.mark.parametrize(
    ("place", "axis"),
    [
        (("properties", "category"), Category),
        (("properties", "domain"), Domain),
        (("properties", "blame"), Blame),
        (("$defs", "certainty"), Certainty),
        (("$defs", "user_action", "properties", "kind"), ActionKind),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_its_closed_sets_are_the_axes(place: tuple[str, ...], axis: type[Category]) -> None:
    found: Any = schema()
    for step in place:
        found = found[step]

    assert found["enum"] == [str(member) for member in axis]


def test_the_domains_follow_from_the_categories_as_they_do_in_the_code() -> None:
    import jsonschema

    for category in Category:
        for domain in Domain:
            report = {"kind": "external.a.b", "category": str(category), "domain": str(domain)}
            rules = [
                rule for rule in schema()["allOf"] if "domain" in rule["then"]["properties"]
            ]  # fmt: skip
            fits = all(cast("Any", jsonschema.Draft202012Validator(rule)).is_valid(report) for rule in rules)
            assert fits is (category.domain is domain), (category, domain)


def test_a_kind_is_spelled_as_the_registry_spells_it() -> None:
    kind = schema()["properties"]["kind"]

    assert kind["pattern"] == f"^{KIND_PATTERN.pattern.replace('?:', '')}$"
    assert kind["maxLength"] == LONGEST_KIND
    assert schema()["properties"]["schema"]["const"] == SCHEMA


def test_no_object_is_open_but_those_of_authors_and_providers() -> None:
    opened = {where for where, held in objects(schema()) if held.get("additionalProperties") is not False}

    assert opened == {
        "/properties/details",
        "/$defs/provider_metadata/properties/headers",
        "/$defs/attempt/properties/usage",
    }


def test_every_property_says_what_it_is() -> None:
    silent = [
        f"{where}/{name}"
        for where, held in objects(schema())
        for name, described in held.get("properties", {}).items()
        if not described.get("description")
        and not schema()["$defs"].get(described.get("$ref", "").rpartition("/")[2], {}).get("description")
    ]

    assert silent == []


def test_it_is_shipped_in_the_package() -> None:
    shipped = files("failwell.errors").joinpath("schema/error-v1.json")

    assert shipped.is_file()
    assert schema()["$id"].endswith("/error-v1.json")


def test_the_wheel_takes_the_whole_package() -> None:
    settings_of_the_wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "hatch"
    ]
    wheel = settings_of_the_wheel["build"]["targets"]["wheel"]

    assert wheel == {"packages": ["src/failwell"]}


def test_a_built_wheel_holds_it(tmp_path: Path) -> None:
    wheels = pytest.importorskip("hatchling.builders.wheel", reason="hatchling comes with `make check`")

    [built] = wheels.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])

    assert "failwell/errors/schema/error-v1.json" in zipfile.ZipFile(built).namelist()
