"""The strict reader refuses whatever the writer would not have written, and names it."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell import ErrorReport, capability, errors
from failwell.errors import NotBefore, Scene
from failwell.errors.faults import Validation
from failwell.errors.report import Attempt, Cause, Evidence, Frame, Internal
from failwell.errors.wire import schema
from failwell.testing.builders import NOON, make_report
from tests.errors.strategies import reports
from tests.specimens import each

Change = Callable[[dict[str, Any]], object]


@cache
def validator() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(schema())


def a_full_dict() -> dict[str, Any]:
    return make_report(
        scene=Scene(run="r1", attempt=2),
        provider="acme",
        model="large",
        provider_metadata=errors.ProviderMetadata(sdk="acme", status_code=429, headers={"date": "x"}),
        not_before=NotBefore(after=1.5, at=NOON),
        fields_invalid=("size",),
        resource_shortfall=capability.ResourceShortfall("disk_mb", 2, 1),
        details={"a": 1},
        causes=(Cause(type="ValueError", notes=("x",)),),
        frames=(Frame(boundary="node", name="n"),),
        attempts=(Attempt(number=1, usage={"input": 3}),),
        evidence=(Evidence(rule="r", basis="type", saw="x"),),
        internal=Internal(repr="x", traceback="y"),
    ).to_dict()


def setting(*path: Any, to: Any) -> Change:
    def change(data: dict[str, Any]) -> None:
        place: Any = data
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def dropping(*path: Any) -> Change:
    def change(data: dict[str, Any]) -> None:
        place: Any = data
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


def refused(data: dict[str, Any]) -> Validation:
    with pytest.raises(Validation) as caught:
        ErrorReport.from_dict(data)
    assert caught.value.kind == "validation.shape_invalid"
    return caught.value


PARTS: list[tuple[Any, ...]] = [
    (),
    ("user_action",),
    ("scene",),
    ("provider_metadata",),
    ("not_before",),
    ("resource_shortfall",),
    ("causes", 0),
    ("frames", 0),
    ("attempts", 0),
    ("evidence", 0),
    ("internal",),
]
REQUIRED = [
    *[(name,) for name in schema()["required"] if name != "schema"],
    ("user_action", "kind"),
    ("not_before", "after"),
    ("resource_shortfall", "resource"),
    ("resource_shortfall", "needed"),
    ("resource_shortfall", "available"),
    ("causes", 0, "type"),
    ("frames", 0, "boundary"),
    ("frames", 0, "name"),
    ("attempts", 0, "number"),
    ("evidence", 0, "rule"),
    ("evidence", 0, "basis"),
    ("internal", "repr"),
]
WRONG: list[tuple[tuple[Any, ...], Any]] = [
    (("schema",), "failwell.error/2"),
    (("schema",), 1),
    (("id",), 7),
    (("kind",), "NotAKind"),
    (("kind",), "nodot"),
    (("kind",), "a." + "b" * 200),
    (("category",), "flaky"),
    (("category",), 3),
    (("domain",), "elsewhere"),
    (("certainty",), "perhaps"),
    (("blame",), "weather"),
    (("retryable",), "yes"),
    (("retryable",), 1),
    (("message",), ["x"]),
    (("title",), {}),
    (("error_type",), 0),
    (("user_action",), "wait"),
    (("user_action", "kind"), "pray"),
    (("user_action", "detail"), 7),
    (("fingerprint",), 7),
    (("occurred_at",), "yesterday"),
    (("occurred_at",), "2026-03-01T12:00:00"),
    (("occurred_at",), "2026-03-01T12:00:00Z"),
    (("occurred_at",), "2026-03-01T14:00:00+02:00"),
    (("occurred_at",), "2026-03-01 12:00:00+00:00"),
    (("occurred_at",), 1_767_000_000),
    (("caller_facing",), "true"),
    (("scene",), []),
    (("scene", "run"), 7),
    (("scene", "attempt"), "2"),
    (("scene", "attempt"), True),
    (("provider",), 7),
    (("model",), ["x"]),
    (("provider_metadata",), "x"),
    (("provider_metadata", "status_code"), "429"),
    (("provider_metadata", "retry_after"), "7"),
    (("provider_metadata", "headers"), {"date": 7}),
    (("provider_metadata", "headers"), ["date"]),
    (("not_before", "after"), "7"),
    (("not_before", "at"), "later"),
    (("not_before", "source"), 7),
    (("not_before", "confidence"), "total"),
    (("fields_invalid",), "size"),
    (("fields_invalid",), [7]),
    (("resource_shortfall", "resource"), "time"),
    (("resource_shortfall", "needed"), "much"),
    (("details",), [1]),
    (("causes",), {}),
    (("causes", 0), "ValueError"),
    (("causes", 0, "via"), "magic"),
    (("causes", 0, "level"), "1"),
    (("causes", 0, "notes"), "x"),
    (("frames", 0, "iteration"), "1"),
    (("attempts", 0, "number"), "1"),
    (("attempts", 0, "certainty"), "perhaps"),
    (("attempts", 0, "usage"), {"input": "3"}),
    (("attempts", 0, "cost"), 1.5),
    (("attempts", 0, "wait"), "1"),
    (("evidence", 0, "saw"), 7),
    (("internal", "repr"), 7),
    (("internal", "traceback"), ["x"]),
]


def place(path: tuple[Any, ...]) -> str:
    """How a path is named in a message: `causes[0].via`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def named(value: Any) -> str | None:
    return place(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else None


def test_the_full_document_is_accepted_by_both() -> None:
    validator().validate(a_full_dict())

    assert ErrorReport.from_dict(a_full_dict()).to_dict() == a_full_dict()


@pytest.mark.acceptance("pipelex 3")
@pytest.mark.parametrize("part", PARTS, ids=place)
def test_a_key_that_is_not_known_is_refused_by_name_in_every_part(part: tuple[Any, ...]) -> None:
    data = a_full_dict()
    setting(*part, "weather", to="rain")(data)

    error = refused(data)

    assert not validator().is_valid(data)
    assert error.fields_invalid == [place((*part, "weather"))]
    assert "this version does not know it" in str(error)


@each("path", REQUIRED, ids=place)
def test_what_is_missing_is_named(path: tuple[Any, ...]) -> None:
    data = a_full_dict()
    dropping(*path)(data)

    error = refused(data)

    assert not validator().is_valid(data)
    assert error.fields_invalid == [place(path)]
    assert f"`{place(path)}` must be present" in str(error)


@each(("path", "value"), WRONG, ids=named)
def test_a_wrong_value_is_refused_and_its_place_is_named(path: tuple[Any, ...], value: Any) -> None:
    data = a_full_dict()
    setting(*path, to=value)(data)

    error = refused(data)

    assert not validator().is_valid(data)
    assert any(place(path).startswith(name) for name in error.fields_invalid or [])
    assert f"`{(error.fields_invalid or [''])[0]}` must be " in str(error)


@each("path", [*((name,) for name in a_full_dict()), *(p for p in REQUIRED if len(p) > 1)], ids=place)
def test_a_null_is_refused_everywhere(path: tuple[Any, ...]) -> None:
    data = a_full_dict()
    setting(*path, to=None)(data)

    error = refused(data)

    assert not validator().is_valid(data)
    assert error.fields_invalid == [place(path)]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"category": "configuration", "domain": "config", "retryable": False}, ["category"]),
        ({"kind": "provider.auth"}, ["category"]),
        ({"domain": "input"}, ["domain"]),
        (
            {"kind": "provider.auth", "category": "configuration", "domain": "config", "retryable": True},
            ["retryable"],
        ),
        ({"kind": "external.a.b", "category": "fatal", "retryable": True}, ["retryable"]),
    ],
)
def test_a_contradiction_is_refused_and_named(changes: dict[str, Any], named: list[str]) -> None:
    error = refused({**make_report().to_dict(), **changes})

    assert error.fields_invalid == named


@pytest.mark.parametrize(
    "changes",
    [
        {"domain": "input"},
        {"kind": "external.a.b", "category": "fatal", "retryable": True},
        {"kind": "external.a.b", "category": "content", "retryable": False},
    ],
)
def test_contradictions_between_the_axes_are_refused_by_the_schema_too(changes: dict[str, Any]) -> None:
    data = {**make_report().to_dict(), **changes}

    assert not validator().is_valid(data)
    refused(data)


def test_everything_that_is_wrong_is_named_at_once() -> None:
    data = a_full_dict()
    for path, value in (("id", 7), ("weather", "rain"), ("scene", {"run": 1}), ("domain", "input")):
        data[path] = value
    del data["title"]

    error = refused(data)

    assert error.fields_invalid == ["title", "id", "scene.run", "weather", "domain"]
    assert str(error).count(" must be ") == 5


def test_a_newer_version_is_pointed_to_the_tolerant_reader() -> None:
    error = refused({**make_report().to_dict(), "schema": "failwell.error/9"})

    assert "`ErrorReport.read`" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "[1]",
        '"text"',
        "null",
        "{",
        "[" * 100_000,
        b"\xff\xfe",
        make_report(details={"x": 1}).to_json().replace('"x":1', '"x":NaN'),
        make_report(details={"x": 1}).to_json().replace('"x":1', '"x":-Infinity'),
        " " * 5_000_000,
    ],
    ids=lambda text: repr(text)[:12],
)
def test_what_is_no_json_object_is_refused_in_one_sentence(text: str | bytes) -> None:
    for reader in (ErrorReport.from_json, ErrorReport.read):
        with pytest.raises(Validation, match=r"not an error report: `\(whole\)` must be"):
            reader(text)


@given(reports(), st.data())
def test_what_the_schema_refuses_the_reader_refuses(report: ErrorReport, data: st.DataObject) -> None:
    written = report.to_dict()
    name = data.draw(st.sampled_from([*schema()["properties"], "weather"]))
    value = data.draw(
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=1)
        )
    )
    mutated: dict[str, Any] = {**written, name: value}

    if not validator().is_valid(mutated):
        refused(mutated)
