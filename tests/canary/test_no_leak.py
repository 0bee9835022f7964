"""Bodies, prompts, keys and answers leave through no door, whatever an exception carries."""

import json
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

import failwell.delivery
import failwell.integrations
from failwell.adapters.describe import describe
from failwell.errors import redact
from failwell.errors.report import ENVIRONMENT_VARIABLE, TracebackPolicy
from tests.canary.canaries import (
    KNOWN,
    REGISTERED,
    SAID,
    SECRETS,
    VARIABLES,
    Canary,
    all_secrets,
    leaks,
)
from tests.canary.carriers import CARRIERS
from tests.canary.doors import BRIDGES, DOORS, GROUPS, PARTS, Door
from tests.specimens import each, failures, parts

OURS = {"fault_details", "capability_input"}
"""Carriers that are faults: their message is ours, so it is told."""


@pytest.fixture(autouse=True)
def _known_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    redact.register_secret(REGISTERED.secret)


def through(door: Door, error: BaseException) -> str:
    text = door.open(error)
    assert len(text) > 50, "the door was not opened"
    return text


@pytest.mark.acceptance("pipelex 67")
@pytest.mark.parametrize("group", GROUPS)
def test_by_default_nothing_that_an_exception_carries_or_says_gets_out(group: str) -> None:
    def check(carrier: str) -> None:
        error = CARRIERS[carrier]()
        found = {door: leaks(through(DOORS[door], error), said=True) for door in GROUPS[group]}
        assert {door: texts for door, texts in found.items() if texts} == {}

    assert failures(CARRIERS, check) == []


FIRST, *OTHERS = parts(CARRIERS, 3)


@pytest.mark.parametrize(
    ("policy", "carriers"),
    # What the others record is part of what `full` does. Every third carrier is tried each time.
    [
        pytest.param("full", FIRST, id="full"),
        *(pytest.param("full", part, id="full", marks=pytest.mark.slow) for part in OTHERS),
        *(
            pytest.param(policy, CARRIERS, id=policy, marks=pytest.mark.slow)
            for policy in ("repr_only", "none")
        ),
    ],
)
@pytest.mark.parametrize("group", GROUPS)
def test_where_words_are_recorded_secrets_and_carried_data_still_do_not_get_out(
    group: str, policy: str, carriers: Iterable[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, policy)

    def check(carrier: str) -> None:
        error = CARRIERS[carrier]()
        found = {
            door: leaks(through(DOORS[door], error), said=DOORS[door].audience == "shown")
            for door in GROUPS[group]
        }
        assert {door: texts for door, texts in found.items() if texts} == {}

    assert failures(carriers, check) == []


@each("carrier", sorted(set(CARRIERS) - OURS))
def test_every_carrier_really_carries_something(carrier: str) -> None:
    error = CARRIERS[carrier]()

    chain = [error, error.__cause__, error.__context__]
    held = [f"{one} {one!r} {vars(one)} {getattr(one, '__notes__', '')}" for one in chain if one is not None]
    held += [str(one.tb_frame.f_locals) for one in (error.__traceback__,) if one is not None]
    if carrier == "from_source":
        assert describe(error, policy="full").internal is not None
    else:
        assert leaks(" ".join(held), said=True)


def test_words_are_recorded_for_operators_where_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "full")

    assert SAID in DOORS["view for operators"].open(ValueError(SAID))
    assert SAID not in DOORS["view for users"].open(ValueError(SAID))


@each("canary", SECRETS, ids=lambda canary: canary.name)
def test_each_secret_is_masked_alone_and_nothing_around_it_is(canary: Canary) -> None:
    masked = redact.redact_text(f"before it {canary.text} after it")

    assert leaks(masked) == []
    assert masked.startswith("before it")
    assert redact.MARK in masked


@each("at", [1_900, 1_985, 1_999, 4_030, 4_047, 4_090])
@each("canary", [*SECRETS[::9], *KNOWN], ids=lambda canary: canary.name)
def test_a_secret_on_the_edge_of_what_is_kept_is_not_kept_in_part(canary: Canary, at: int) -> None:
    padding = "word " * 2_000

    masked = redact.redact_text(f"{padding[:at]} {canary.text} {padding}")

    assert leaks(masked) == []
    assert len(masked) <= 2_000


def test_a_long_document_that_was_registered_is_not_quoted_in_part() -> None:
    document = " ".join(f"clause {number} of the contract" for number in range(400))
    redact.register_secret(document)

    report = describe(ValueError(f"{SAID}: {document}"), policy="full")

    assert "of the contract" not in report.to_json()


def test_a_long_prompt_is_not_quoted_in_part() -> None:
    prompt = " ".join(f'sentence {number} of the prompt it\'s "quoted"\n' for number in range(400))
    error = ValueError(f"refused: {prompt!r} {prompt}")
    error.__dict__["messages"] = [{"role": "user", "content": "x" * 9} for _ in range(90)] + [
        {"content": prompt}
    ]

    for policy in TracebackPolicy:
        assert "of the prompt" not in describe(error, policy=policy).to_json()


def test_a_door_that_leaks_is_found_out() -> None:
    def blurted(error: BaseException) -> str:
        return f"{error} " + "-" * 60

    careless = replace(DOORS["text for users"], open=blurted)

    for carrier in ("openai_status", "litellm_error", "plain_arguments", "pydantic_error"):
        assert leaks(through(careless, CARRIERS[carrier]()), said=True)


def test_a_door_that_leaks_half_a_secret_is_found_out() -> None:
    key = SECRETS[0].secret

    assert leaks(f"the key was {key[:12]}…")
    assert leaks(f"the key was …{key[-12:]}")
    assert not leaks("the key was [redacted]")
    assert len(leaks(all_secrets())) == len(SECRETS)


def test_every_module_of_the_room_has_a_door_that_was_watched() -> None:
    modules = {
        f"{room}.{module.name}"
        for room, package in (("delivery", failwell.delivery), ("integrations", failwell.integrations))
        for module in pkgutil.iter_modules(package.__path__)
    }

    rooms = ("delivery.", "integrations.")
    watched = {door.module for door in DOORS.values() if door.module.startswith(rooms)} | set(PARTS) | BRIDGES

    assert modules == watched, "a way out that nobody watches: add it to tests/canary/doors.py"
    assert set(PARTS.values()) <= set(DOORS)


def _as_bytes(text: str) -> str:
    return repr(text.encode())


FORMS: dict[str, Callable[[str], str]] = {
    "repr": repr,
    "repr of a repr": lambda text: repr(repr(text)),
    "list": lambda text: repr([text, {"a": text}]),
    "json": json.dumps,
    "json in json": lambda text: json.dumps({"body": json.dumps({"said": text})}),
    "json in a repr": lambda text: repr({"body": json.dumps({"said": text}, ensure_ascii=False)}),
    "bytes": _as_bytes,
    "two lines": lambda text: repr(f"first\n{text}\nlast"),
    "tab": lambda text: repr(f"first\t{text}"),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_secret_is_masked_however_it_was_quoted(form: str) -> None:
    canaries = {canary.name: canary for canary in SECRETS}

    def check(name: str) -> None:
        masked = redact.redact_text(FORMS[form](f"before it {canaries[name].text} after it"))

        assert leaks(masked) == []
        assert "before it" in masked

    assert failures(canaries, check) == []
