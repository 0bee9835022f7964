"""Validation errors of other libraries: which fields and which rules, never the values."""

from collections.abc import Callable
from datetime import date
from typing import Any, cast

import pydantic
import pydantic_core
import pytest
import yaml
from pydantic import v1 as pydantic_v1

import failwell
from tests.adapters.raisers import CANARY, Action, caught


class Line(pydantic.BaseModel):
    """One line of an order."""

    name: str
    count: int


class Order(pydantic.BaseModel):
    """An order with its lines."""

    day: date
    lines: list[Line]


class OldOrder(pydantic_v1.BaseModel):
    """The same in the old manner."""

    day: date


def a_bad_order(*lines: dict[str, str]) -> dict[str, Any]:
    return {"day": CANARY, "lines": list(lines)}


def report_of(action: Action) -> failwell.ErrorReport:
    report = failwell.describe(caught(action), origin="input")
    assert CANARY not in report.to_json()
    return report


def test_pydantic_names_the_fields_and_the_rules() -> None:
    report = report_of(lambda: Order.model_validate(a_bad_order({"name": CANARY, "count": CANARY}, {})))

    assert report.kind == "validation.shape_invalid"
    assert report.fields_invalid == ("day", "lines.0.count", "lines.1.name", "lines.1.count")
    assert report.details["fields"]["lines.1.name"] == "missing"
    assert report.message == (
        "The data does not fit its model: `day` (date_from_datetime_parsing), `lines.0.count` (int_parsing), "
        "`lines.1.name` (missing), `lines.1.count` (missing)."
    )


def test_pydantic_names_five_fields_and_counts_the_rest() -> None:
    report = report_of(lambda: Order.model_validate(a_bad_order(*[dict[str, str]()] * 30)))

    assert report.message.endswith(" and 15 more.")
    assert report.fields_invalid is not None
    assert len(report.fields_invalid) == 20


def test_pydantic_names_the_whole_when_no_field_is_at_fault() -> None:
    adapter = pydantic.TypeAdapter(int)

    assert report_of(lambda: adapter.validate_python(CANARY)).fields_invalid == ("(whole)",)


def test_pydantics_old_models_are_read_too() -> None:
    report = report_of(lambda: OldOrder(day=CANARY))  # pyright: ignore[reportArgumentType]

    assert (report.kind, report.fields_invalid) == ("validation.shape_invalid", ("day",))


def test_a_mistake_in_a_model_is_a_bug() -> None:
    misused = report_of(lambda: type("Odd", (pydantic.BaseModel,), {"field": 5}))
    broken = report_of(lambda: pydantic_core.SchemaValidator(cast("Any", {"type": CANARY})))

    assert (misused.kind, misused.error_type) == ("internal.bug", "PydanticUserError")
    assert (broken.kind, broken.error_type) == ("internal.bug", "SchemaError")


@pytest.mark.parametrize(
    ("text", "error_type", "where"),
    [
        (f"{CANARY}: [1, 2", "ParserError", (1, 32)),
        (f"a: 1\nb: '{CANARY}", "ScannerError", (2, 29)),
        (f"a: *{CANARY}", "ComposerError", (1, 4)),
        (f"a: !!python/name:{CANARY} x", "ConstructorError", (1, 4)),
    ],
)
def test_yaml_says_where_and_not_what(text: str, error_type: str, where: tuple[int, int]) -> None:
    report = report_of(lambda: yaml.safe_load(text))

    line, column = where
    assert (report.kind, report.error_type) == ("validation.shape_invalid", error_type)
    assert report.message == f"The text is not valid YAML at line {line}, column {column}."
    assert report.details == {"line": line, "column": column}


def test_yaml_without_a_place_says_so_much() -> None:
    report = report_of(lambda: yaml.safe_load(f"{CANARY}: \x00"))

    assert (report.error_type, report.message) == ("ReaderError", "The text is not valid YAML.")


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["day"],
    "properties": {
        "lines": {"type": "array", "items": {"properties": {"count": {"type": "integer"}}}},
        "day": {"type": "string", "maxLength": 5},
    },
}


@pytest.mark.parametrize(
    ("data", "path", "rule"),
    [
        ({"day": "x", "lines": [{}, {"count": CANARY}]}, "lines.1.count", "type"),
        ({"day": CANARY}, "day", "maxLength"),
        ({"canary": CANARY}, "(whole)", "required"),
        (CANARY, "(whole)", "type"),
    ],
)
def test_jsonschema_names_the_path_and_the_keyword(data: object, path: str, rule: str) -> None:
    import jsonschema

    report = report_of(lambda: jsonschema.validate(data, SCHEMA))

    assert (report.kind, report.fields_invalid) == ("validation.shape_invalid", (path,))
    assert report.message == f"The data does not fit its schema: `{path}` breaks `{rule}`."
    assert report.details == {"fields": {path: rule}}


def unknown_schema() -> None:
    import jsonschema

    jsonschema.validate(1, {"type": CANARY})


def unknown_type() -> None:
    import jsonschema

    validator: Any = jsonschema.Draft202012Validator({"type": "moon"})
    validator.validate(CANARY)


def unknown_check() -> None:
    import jsonschema

    jsonschema.Draft202012Validator.TYPE_CHECKER.is_type(CANARY, "moon")


@pytest.mark.parametrize(
    ("action", "error_type"),
    [
        (unknown_schema, "SchemaError"),
        (unknown_type, "UnknownType"),
        (unknown_check, "UndefinedTypeCheck"),
    ],
    ids=["SchemaError", "UnknownType", "UndefinedTypeCheck"],
)
def test_a_schema_that_is_wrong_is_configuration(action: Callable[[], object], error_type: str) -> None:
    report = report_of(action)

    assert (report.error_type, report.kind) == (error_type, "validation.config_invalid")
    assert report.category == "configuration"


def test_a_value_that_fits_no_format_is_a_broken_shape() -> None:
    import jsonschema

    report = report_of(lambda: jsonschema.FormatChecker().check(CANARY, "ipv4"))

    assert (report.error_type, report.kind) == ("FormatError", "validation.shape_invalid")


def a_violation_in_rust(**attributes: object) -> Exception:
    """What `jsonschema_rs` raises, as far as its class and attributes go."""
    made = type("ValidationError", (ValueError,), {"__module__": "jsonschema_rs"})
    error = made(CANARY)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def test_jsonschema_in_rust_names_the_path_and_the_keyword() -> None:
    keyword = type("ValidationErrorKind_MinItems", (), {})()

    report = failwell.describe(a_violation_in_rust(instance_path=["lines", 2], kind=keyword), origin="input")

    assert report.fields_invalid == ("lines.2",)
    assert report.message == "The data does not fit its schema: `lines.2` breaks `MinItems`."


def test_a_violation_that_says_nothing_about_itself_is_still_one() -> None:
    report = failwell.describe(a_violation_in_rust(), origin="input")

    assert report.kind == "validation.shape_invalid"
    assert report.message == "The data does not fit its schema: `(whole)` is not valid."


def test_a_schema_in_rust_that_refers_to_what_is_not_there_is_a_configuration() -> None:
    import jsonschema_rs

    report = report_of(lambda: jsonschema_rs.Registry([("urn:a", {})]).resolver("urn:a").lookup("urn:b"))

    assert (report.error_type, report.kind) == ("ReferencingError", "validation.config_invalid")
