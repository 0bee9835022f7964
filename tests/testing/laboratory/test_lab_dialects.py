"""Every dialect answers or declines every scenario, in its provider's own shape, and is understood."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from failwell.adapters.log_records.reading import read_saved
from failwell.errors.axes import Category
from failwell.testing.laboratory.delay_forms import FORMS
from failwell.testing.laboratory.dialects.table import dialect, dialect_names
from failwell.testing.laboratory.lab_reply import LabCall
from failwell.testing.laboratory.matrix import Cell, cells
from failwell.testing.laboratory.scenario import BELOW, SCENARIOS, Truth
from failwell.testing.laboratory.server import Lab, lab
from tests.specimens import each
from tests.testing.laboratory.asking import Got, ask

CELLS = list(cells())
ANSWERED = [cell for cell in CELLS if cell.reply.status is not None and cell.reply.ending == "whole"]
ERRORS = [cell for cell in ANSWERED if (cell.reply.status or 0) >= 400]
OWN_ERRORS = [cell for cell in ERRORS if cell.reply.header("content-type") != "text/html; charset=utf-8"]


def spoken(name: str) -> Any:
    found = dialect(name)
    assert found is not None
    return found


def called(cell: Cell) -> str:
    return f"{cell.dialect}-{cell.scenario.name}"


@pytest.fixture(scope="module")
def fake() -> Iterator[Lab]:
    with lab(stall=0) as opened:
        yield opened


def has(*path: str) -> Callable[[Any], bool]:
    """Whether a body holds something at this place."""

    def check(body: Any) -> bool:
        for step in path:
            try:
                body = body[step]
            except (KeyError, TypeError):
                return False
        return body is not None

    return check


_OPENAI = (has("error", "message"), has("error", "type"))
SHAPES: dict[str, tuple[Callable[[Any], bool], ...]] = {
    "openai": (*_OPENAI, lambda body: {"param", "code"} <= body["error"].keys()),
    "azure-openai": (has("error", "code"), has("error", "message")),
    "openrouter": (has("error", "message"), lambda body: isinstance(body["error"]["code"], int)),
    "anthropic": (
        lambda body: body["type"] == "error",
        has("error", "type"),
        has("error", "message"),
        has("request_id"),
    ),
    "google-genai": (
        has("error", "message"),
        has("error", "status"),
        lambda body: isinstance(body["error"]["code"], int),
    ),
    "google-vertex": (
        has("error", "message"),
        has("error", "status"),
        lambda body: isinstance(body["error"]["code"], int),
    ),
    "mistral": (lambda body: body.get("object") == "error" or "detail" in body,),
    "bedrock": (lambda body: list(body) == ["message"],),
    "huggingface": (lambda body: isinstance(body["error"], str),),
    "fal": (has("detail"),),
    "cohere": (has("message"), has("id")),
    "groq": _OPENAI,
    "together": (*_OPENAI, has("id")),
    "ollama": (lambda body: list(body) == ["error"] and isinstance(body["error"], str),),
    "replicate": (has("title"), has("detail"), has("status")),
    "linkup": (has("error", "code"), has("error", "message"), has("error", "details")),
    "plain": (has("detail"),),
}


@pytest.mark.parametrize("name", dialect_names())
def test_a_dialect_answers_or_declines_every_scenario_and_never_both(name: str) -> None:
    one = spoken(name)
    answered = {scenario for scenario in SCENARIOS if one.answer(scenario) is not None}

    assert answered | set(one.declines) == set(SCENARIOS)
    assert answered & set(one.declines) == set()
    assert set(one.answers) <= set(SCENARIOS)
    assert set(one.differs) <= answered


@pytest.mark.parametrize("name", dialect_names())
def test_a_dialect_says_why_it_declines(name: str) -> None:
    assert all(len(why.split()) > 2 for why in spoken(name).declines.values())


@pytest.mark.parametrize("scenario", sorted(BELOW))
def test_a_failure_below_the_provider_is_shown_by_everybody(scenario: str) -> None:
    assert [name for name in dialect_names() if spoken(name).answer(scenario) is None] == []


@each("cell", ANSWERED, ids=called)
def test_a_scenario_is_answered_over_the_wire_as_its_dialect_says(fake: Lab, cell: Cell) -> None:
    got = ask_for(fake, cell)

    assert got.status == cell.reply.status
    assert got.headers["content-type"] == cell.reply.header("content-type")
    assert fake.calls(cell.dialect, cell.scenario.name) >= 1


def ask_for(fake: Lab, cell: Cell) -> Got:
    path = "/v1/streams/lab/stream" if cell.scenario.streams else "/v1/chat/completions"
    return ask(fake.url(cell.dialect, cell.scenario.name), path, stream=cell.scenario.streams)


@each("cell", OWN_ERRORS, ids=called)
def test_an_error_has_the_shape_that_its_provider_documents(fake: Lab, cell: Cell) -> None:
    got = ask_for(fake, cell)

    body = got.json
    assert all(check(body) for check in SHAPES[cell.dialect]), body
    if cell.dialect == "bedrock":
        assert got.headers["x-amzn-errortype"].endswith("Exception")
    if cell.dialect == "replicate":
        assert (got.headers["content-type"], body["status"]) == ("application/problem+json", got.status)


@each("cell", ERRORS, ids=called)
def test_an_error_is_understood_by_the_rules_as_what_it_is(cell: Cell) -> None:
    fresh = spoken(cell.dialect).reply(cell.scenario.name, LabCall())

    found = read_saved(saved(cell.dialect, fresh.status, fresh.headers, fresh.body))

    assert found.kind == cell.truth.kind, found.rule
    if cell.scenario.name != "rate_limited":
        told = None if found.not_before is None else found.not_before.after
        assert told == (None if cell.truth.wait is None else pytest.approx(cell.truth.wait, abs=2))


def saved(provider: str, status: int | None, headers: Any, body: bytes) -> dict[str, Any]:
    return {"provider": provider, "http_status": status, "headers": dict(headers), "body": body.decode()}


@each(("name", "form"), [(name, form) for name in dialect_names() for form in sorted(spoken(name).forms)])
def test_a_wait_is_understood_in_every_form_it_is_told(fake: Lab, name: str, form: str) -> None:
    truth = fake.truth(name, "rate_limited", form)

    got = ask(fake.url(name, f"rate_limited@{form}"))
    found = read_saved(saved(name, got.status, got.headers, got.body))

    assert (got.status, found.kind) == (429, truth.kind)
    told = None if found.not_before is None else found.not_before.after
    assert told == (None if truth.wait is None else pytest.approx(truth.wait, abs=2))


def test_every_form_of_a_wait_is_told_by_some_dialect() -> None:
    told = {form for name in dialect_names() for form in spoken(name).forms}

    assert told == set(FORMS)
    assert all(spoken(name).wait in spoken(name).forms for name in dialect_names())


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("ok", Truth(None)),
        ("rate_limited", (Category.TRANSIENT, True)),
        ("empty_balance", (Category.CAPACITY, False)),
        ("slow_headers", (Category.AMBIGUOUS, False)),
        ("reset_after_read", (Category.AMBIGUOUS, False)),
        ("refused", (Category.TRANSIENT, True)),
        ("out_of_memory", (Category.RESOURCE, False)),
    ],
)
def test_what_follows_from_a_scenario_follows_from_its_kind(scenario: str, expected: Any) -> None:
    truth = SCENARIOS[scenario].truth

    if isinstance(expected, Truth):
        assert (truth, truth.category, truth.retryable) == (expected, None, False)
    else:
        assert (truth.category, truth.retryable) == expected


def test_the_same_failure_has_other_bodies_and_the_same_name_elsewhere() -> None:
    shown = {cell.dialect: cell.reply.status for cell in CELLS if cell.scenario.name == "empty_balance"}

    assert (shown["anthropic"], shown["fal"], shown["openai"], shown["openrouter"]) == (400, 403, 429, 402)
    assert {cell.truth.kind for cell in CELLS if cell.scenario.name == "empty_balance"} == {
        "provider.quota_exhausted"
    }


def test_gemini_says_in_typed_details_what_its_status_hides(fake: Lab) -> None:
    key = ask(fake.url("google-genai", "bad_key"), "/v1beta/models/gemini-lab:generateContent").json["error"]
    quota = ask(fake.url("google-genai", "daily_quota")).json["error"]

    assert (key["code"], key["status"], key["details"][0]["reason"]) == (
        400,
        "INVALID_ARGUMENT",
        "API_KEY_INVALID",
    )
    assert "PerDay" in quota["details"][0]["violations"][0]["quotaId"]


def test_azure_puts_the_reason_of_a_refusal_inside(fake: Lab) -> None:
    error = ask(
        fake.url("azure-openai", "content_refused_in"), "/openai/deployments/lab/chat/completions"
    ).json

    assert error["error"]["code"] == "content_filter"
    assert error["error"]["innererror"]["code"] == "ResponsibleAIPolicyViolation"


def test_a_response_has_its_own_shape_on_its_own_path(fake: Lab) -> None:
    chat = ask(fake.url("openai", "truncated_output"), "/v1/chat/completions").json
    response = ask(fake.url("openai", "truncated_output"), "/v1/responses").json

    assert chat["choices"][0]["finish_reason"] == "length"
    assert (response["status"], response["incomplete_details"]) == (
        "incomplete",
        {"reason": "max_output_tokens"},
    )


def test_a_queue_leads_back_to_the_laboratory_until_it_is_done(fake: Lab) -> None:
    fake.reset()
    base = fake.url("fal", "ok")

    queued = ask(base, "/lab/painter", body={"prompt": "hi"}).json
    status = ask(queued["status_url"], "", method="GET").json
    result = ask(queued["response_url"], "", method="GET").json

    assert queued["status_url"].startswith(base)
    assert (status["status"], len(result["images"]), fake.calls("fal", "ok")) == ("COMPLETED", 1, 3)


def test_the_model_that_was_asked_for_is_the_one_that_answers(fake: Lab) -> None:
    got = ask(fake.url("openai", "ok"), body={"model": "gpt-of-mine"})

    assert got.json["model"] == "gpt-of-mine"


@pytest.mark.parametrize("name", dialect_names())
def test_junk_says_it_is_json_and_is_not(fake: Lab, name: str) -> None:
    got = ask(fake.url(name, "garbage_json"), body={"stream": False})

    assert got.headers["content-type"].startswith("application/json")
    with pytest.raises(json.JSONDecodeError):
        json.loads(got.body)
