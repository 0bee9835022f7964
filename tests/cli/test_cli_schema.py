"""The published schemas fit what is written, and `schema` prints them."""

from typing import Any, cast

import pytest

from failwell.adapters.describe import describe
from failwell.delivery.http.problem_details import problem
from failwell.errors.axes import Category, Certainty, Domain
from failwell.errors.facts import NotBefore, ProviderMetadata, ResourceShortfall
from failwell.errors.fault import Fault
from failwell.errors.kind_registry import kinds
from failwell.errors.report import ErrorReport, Scene
from failwell.errors.wire import schema
from tests.cli.running import failwell


def a_full_report() -> ErrorReport:
    try:
        raise KeyError("x")
    except KeyError as below:
        fault = Fault.wrap(
            below,
            "no",
            kind="resource.gpu_memory",
            provider="acme",
            model="large",
            not_before=NotBefore(after=3.5, source="retry-after"),
            fields_invalid=["prompt"],
            resource_shortfall=ResourceShortfall("gpu_vram_mb", 20_000, 8_000),
            provider_metadata=ProviderMetadata(status_code=503, code="busy", request_id="r", retry_after=3.5),
        )
    return describe(fault, scene=Scene(run="r1", node="n", item="2", capability="c", attempt=2))


def problem_schema() -> dict[str, Any]:
    return cast("dict[str, Any]", failwell("schema", "problem").data)


def test_the_report_schema_is_printed_as_it_is_shipped() -> None:
    assert failwell("schema").data == failwell("schema", "report", "--json").data == schema()


@pytest.mark.parametrize("document", ["report", "problem"])
def test_a_schema_is_a_schema(document: str) -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(failwell("schema", document).data)


@pytest.mark.parametrize("disclosure", ["strict", "verbose"])
def test_a_problem_document_fits_its_schema_and_holds_nothing_beside_it(disclosure: Any) -> None:
    import jsonschema

    published = problem_schema()

    document = problem(a_full_report(), instance="/runs/1", request_id="q", disclosure=disclosure)

    jsonschema.validate(document, published)
    assert set(document) <= set(published["properties"])


def test_a_problem_document_of_every_kind_fits() -> None:
    import jsonschema

    validator: Any = jsonschema.Draft202012Validator(problem_schema())

    for kind in kinds():
        validator.validate(problem(describe(Fault(kind=kind.name))))


def test_a_document_without_its_kind_does_not_fit() -> None:
    import jsonschema

    document = problem(a_full_report())
    del document["kind"]

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, problem_schema())


def test_the_closed_sets_in_the_schema_are_those_of_the_code() -> None:
    properties = problem_schema()["properties"]

    assert properties["category"]["enum"] == [one.value for one in Category]
    assert properties["domain"]["enum"] == [one.value for one in Domain]
    assert properties["certainty"]["enum"] == [one.value for one in Certainty]
