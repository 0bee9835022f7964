"""Sentry: events of the real SDK, as its transport would send them."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport

from failwell.errors.fault import Fault
from failwell.errors.faults import ProviderCapability, ProviderTransient
from failwell.sentry import before_send

# Made at run time: a source line that is quoted with a stack must not look like a leak.
CANARY = "yranac"[::-1]


class Kept(Transport):
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        event = envelope.get_event()
        if event is not None:
            self.events.append(json.loads(json.dumps(event, default=str)))


@pytest.fixture
def sent() -> Iterator[list[dict[str, Any]]]:
    """The events that left, with the SDK as talkative as it can be."""
    transport = Kept()
    with sentry_sdk.isolation_scope():
        sentry_sdk.init(
            dsn="https://key@sentry.invalid/1",
            transport=transport,
            before_send=before_send,
            default_integrations=False,
            integrations=[LoggingIntegration(level=logging.INFO, event_level=logging.ERROR)],
            include_local_variables=True,
            max_request_body_size="always",
        )
        yield transport.events
    sentry_sdk.get_client().close()
    sentry_sdk.Scope.get_global_scope().set_client(None)


def fail(words: str) -> None:
    prompt = f"my prompt: {words}"
    raise RuntimeError(prompt)


def caught(words: str) -> BaseException:
    try:
        try:
            fail(words)
        except RuntimeError as error:
            raise ProviderTransient(kind="provider.overloaded", provider="acme") from error
    except ProviderTransient as fault:
        return fault
    raise AssertionError


def test_an_event_carries_our_fingerprint_tags_and_fields(sent: list[dict[str, Any]]) -> None:
    sentry_sdk.set_tag("release_ring", "two")

    sentry_sdk.capture_exception(caught("x"))

    (event,) = sent
    assert event["fingerprint"] == [event["contexts"]["failwell"]["fingerprint"]]
    assert event["tags"] == {
        "release_ring": "two",
        "kind": "provider.overloaded",
        "category": "transient",
        "provider": "acme",
        "severity": "error",
    }
    assert event["level"] == "error"
    assert event["contexts"]["failwell"]["kind"] == "provider.overloaded"
    assert event["contexts"]["trace"]["trace_id"]


def test_exceptions_say_composed_words_and_frames_lose_their_variables(sent: list[dict[str, Any]]) -> None:
    words = f"{CANARY} words"

    sentry_sdk.capture_exception(caught(words))

    values = sent[0]["exception"]["values"]
    assert [(value["type"], value["value"]) for value in values] == [
        ("RuntimeError", "The program did something it was not written for."),
        ("ProviderTransient", "The provider has no room for the call right now."),
    ]
    frames = [frame for value in values for frame in value["stacktrace"]["frames"]]
    assert frames
    assert frames[0]["function"]
    assert all("vars" not in frame for frame in frames)
    assert words not in json.dumps(sent)


def test_of_a_request_only_what_is_listed_stays() -> None:
    event = {
        "request": {
            "method": "POST",
            "url": "https://api/x?token=canary-token-value",
            "data": {"prompt": "canary"},
            "cookies": {"session": "canary"},
            "query_string": "token=canary",
            "env": {"REMOTE_ADDR": "canary"},
            "headers": {
                "Authorization": "Bearer canary",
                "Cookie": "canary",
                "User-Agent": "curl",
                "X-Own": "canary",
            },
        }
    }

    sent = before_send(event, {})

    assert sent["request"] == {
        "method": "POST",
        "url": "https://api/x?token=[redacted]",
        "headers": {"User-Agent": "curl"},
    }


def test_a_quote_of_the_exception_elsewhere_is_masked(sent: list[dict[str, Any]]) -> None:
    words = f"{CANARY} answer of a model"
    log = logging.getLogger("app.sentry")

    try:
        fail(words)
    except RuntimeError as error:
        log.warning("first try: %s", error)
        sentry_sdk.set_extra("why", str(error))
        log.exception("gave up after %s", error)

    (event,) = sent
    assert event["logentry"] == {"message": "gave up after %s"}
    assert [crumb["message"] for crumb in event["breadcrumbs"]["values"]] == ["first try: [redacted]"]
    assert words not in json.dumps(event)


def test_secrets_in_loose_fields_are_masked() -> None:
    key = "sk-" + "q1w2e3r4t5y6u7i8o9"
    event = {
        "message": f"with {key}",
        "extra": {"sys.argv": ["run", f"--key={key}"], "api_key": "abcdef123456"},
        "breadcrumbs": {"values": [{"message": f"GET {key}", "data": {"password": "hunter22"}}]},
        "contexts": {"response": {"headers": {"Set-Cookie": "session=abc"}}, "trace": {"trace_id": "t1"}},
        "threads": {"values": [{"stacktrace": {"frames": [{"function": "f", "vars": {"k": key}}]}}]},
    }

    sent = json.dumps(before_send(event, {}))

    assert key not in sent
    assert "abcdef123456" not in sent
    assert "hunter22" not in sent
    assert "session=abc" not in sent
    assert '"trace_id": "t1"' in sent


def test_an_exception_that_nobody_handed_over_is_withheld() -> None:
    event = {
        "exception": {
            "values": [{"type": "E", "value": "canary", "mechanism": {"type": "x", "data": {"a": "canary"}}}]
        }
    }

    assert "canary" not in json.dumps(before_send(event, {}))


class Stubborn(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


def test_an_exception_that_cannot_speak_is_still_described(sent: list[dict[str, Any]]) -> None:
    sentry_sdk.set_extra("numbers", (1, 2))

    sentry_sdk.capture_exception(Stubborn())

    assert sent[0]["tags"]["kind"] == "internal.unknown"
    assert sent[0]["extra"]["numbers"] == [1, 2]


def test_a_stack_without_an_exception_loses_its_variables_too() -> None:
    event = {
        "stacktrace": {"frames": [{"function": "f", "vars": {"a": 1}}]},
        "breadcrumbs": [{"message": "hi"}],
    }

    sent = before_send(event, {})

    assert sent["stacktrace"] == {"frames": [{"function": "f"}]}
    assert sent["breadcrumbs"] == {"values": [{"message": "hi"}]}


def test_an_event_that_cannot_be_checked_is_withheld_and_not_lost() -> None:
    event = {"event_id": "e1", "level": "error", "stacktrace": "canary", "message": "canary"}

    sent = before_send(event, {"exc_info": (Fault, Fault(kind="internal.bug"), None)})

    assert sent["event_id"] == "e1"
    assert "canary" not in json.dumps(sent)
    assert "withheld" in sent["message"]


@pytest.mark.parametrize("hint", [{}, {"exc_info": None}, {"exc_info": (None, None, None)}, {"exc_info": 3}])
def test_an_event_without_an_exception_passes(hint: dict[str, Any]) -> None:
    assert before_send({"message": "deployed"}, hint)["message"] == "deployed"


def test_a_failure_that_needs_a_person_is_fatal_once_in_a_window(sent: list[dict[str, Any]]) -> None:
    for _ in range(3):
        sentry_sdk.capture_exception(ProviderCapability(kind="provider.auth", provider="acme"))
    with sentry_sdk.new_scope() as scope:
        scope.set_level("warning")
        sentry_sdk.capture_exception(ProviderCapability(kind="provider.permission", provider="acme"))

    assert [event["level"] for event in sent] == ["fatal", "error", "error", "warning"]
