"""Which part of the data is invalid: names of fields are for everybody, keys of the data for operators alone."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pydantic
import pytest

import failwell
from failwell.delivery.agent_output import agent_json, agent_markdown
from failwell.delivery.http.problem_details import problem
from failwell.delivery.terminal import render_text
from failwell.errors.faults import Validation
from failwell.errors.report import ErrorReport
from failwell.integrations.mcp import tool_result

ADDRESS, NUMBER, CITY = "vera.lind@acme.test", 4917612345678, "12 Elm Row, Lake Wend"
DATA: dict[str, Any] = {
    "customers": {ADDRESS: {"age": "x"}, CITY: {"age": "x"}},
    "accounts": {str(NUMBER): "x"},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "customers": {"type": "object", "additionalProperties": {"$ref": "#/$defs/customer"}},
        "accounts": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "$defs": {"customer": {"type": "object", "properties": {"age": {"type": "integer"}}}},
}


class Customer(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    age: int


class Store(pydantic.BaseModel):
    customers: dict[str, Customer]
    accounts: dict[int, int] = {}
    rows: list[Customer] = []


def in_pydantic() -> None:
    rows = [{"age": 1}, {"age": 2, "Vera": ADDRESS}]
    Store.model_validate({**DATA, "accounts": {NUMBER: "x"}, "rows": rows})


def in_jsonschema() -> None:
    import jsonschema

    jsonschema.validate({"customers": DATA["customers"]}, SCHEMA)


def in_rust() -> None:
    jsonschema_rs.validate(SCHEMA, {"accounts": DATA["accounts"]})


def under_a_fault(action: Callable[[], None]) -> Callable[[], None]:
    def raise_it() -> None:
        try:
            action()
        except Exception as error:
            raise Validation(kind="validation.input_invalid", message="the file is not valid") from error

    return raise_it


CHECKS: dict[str, Callable[[], None]] = {
    "pydantic": in_pydantic,
    "jsonschema": in_jsonschema,
    "jsonschema_rs": in_rust,
}


def report_of(action: Callable[[], None]) -> ErrorReport:
    try:
        action()
    except Exception as error:
        return failwell.describe(error)
    raise AssertionError("nothing was raised")


def outside(report: ErrorReport) -> str:
    """Everything that leaves the operator's view."""
    return "\n".join(
        [
            *(json.dumps(report.view(audience)) for audience in ("user", "model")),
            json.dumps(report.view("model", debug=True)),
            json.dumps(problem(report)),
            json.dumps(agent_json(report)),
            agent_markdown(report),
            render_text(report, "user"),
            json.dumps(tool_result(report)),
        ]
    )


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "under a fault"])
def test_a_key_of_the_data_never_leaves_the_operators_view(name: str, wrapped: bool) -> None:
    report = report_of(under_a_fault(CHECKS[name]) if wrapped else CHECKS[name])

    shown = outside(report)

    assert all(key not in shown for key in (ADDRESS, str(NUMBER), CITY, "Vera", "vera"))
    assert any(key in json.dumps(report.view("operator")) for key in (ADDRESS, str(NUMBER)))
    assert any("(key)" in path for path in report.fields_invalid or ())


def test_fields_of_ones_own_data_are_shown_to_nobody_and_those_of_the_callers_input_to_the_caller() -> None:
    inside, given = report_of(in_pydantic), report_of(under_a_fault(in_pydantic))

    assert inside.fields_invalid == ("customers.(key).age", "accounts.(key)", "rows.1.(key)")
    assert "fields_invalid" not in inside.view("user")
    assert "fields_invalid" not in inside.view("model")
    assert given.view("user")["fields_invalid"] == ["customers.(key).age", "accounts.(key)", "rows.1.(key)"]
    assert given.view("model")["fields_invalid"] == given.view("user")["fields_invalid"]


def test_names_that_a_schema_declares_are_named_whatever_they_look_like() -> None:
    import jsonschema

    schema = {"properties": {"e-mail address": {"type": "string"}}}

    report = report_of(lambda: jsonschema.validate({"e-mail address": 1}, schema))

    assert report.fields_invalid == ("e-mail address",)
    assert report.details == {"fields": {"e-mail address": "type"}}
