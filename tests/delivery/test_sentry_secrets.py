"""No secret leaves with an event: not in breadcrumbs, source lines, arguments or users."""

import base64
import json
from typing import Any

import pytest

import failwell
from failwell.errors.redact import MARK
from failwell.sentry import before_send

SECRET = "x9Kq2Lm4Zr8Tb1Vc7Wd5"


class Speaking(Exception):
    """Must not be printed by the bridge: Sentry has done so already."""

    def __str__(self) -> str:
        raise AssertionError


def an_event(**more: Any) -> dict[str, Any]:
    return {
        "event_id": "1",
        "exception": {"values": [{"type": "Speaking", "value": "the text that Sentry printed"}]},
        **more,
    }


def sent(event: dict[str, Any], error: BaseException) -> str:
    return json.dumps(before_send(event, {"exc_info": (type(error), error, None)}))


@pytest.mark.parametrize(
    "shown",
    [SECRET, SECRET.encode().hex(), base64.b64encode(f"u:{SECRET}".encode()).decode(), repr(SECRET.encode())],
    ids=["plain", "hex", "base64", "bytes"],
)
def test_a_registered_secret_is_in_no_part_of_an_event(shown: str) -> None:
    failwell.register_secret(SECRET)
    frame = {
        "filename": "app.py",
        "context_line": f"client = Client({shown!r})",
        "pre_context": ["# before", f"key = {shown!r}"],
        "post_context": [f"use({shown!r})"],
        "vars": {"key": shown},
    }
    event = an_event(
        breadcrumbs={"values": [{"message": f"called with {shown}", "data": {"deep": [shown]}}]},
        extra={"sys.argv": ["run", "--key", shown], shown: 1},
        user={"id": 7, "note": shown},
        tags={"note": shown},
        contexts={"trace": {"trace_id": "a" * 32, "data": {"note": shown}}, "own": {"note": shown}},
        request={"url": f"https://acme.test/?a={shown}", "headers": {"Host": "acme.test", "Cookie": shown}},
        logentry={"message": f"failed {shown}", "params": [shown]},
        threads={"values": [{"stacktrace": {"frames": [dict(frame)]}}]},
        server_name=f"host-{shown}",
    )
    event["exception"]["values"][0]["stacktrace"] = {"frames": [frame]}

    written = sent(event, ValueError(shown))

    assert [part for part in (shown[:12], shown[-12:], SECRET) if part in written] == []
    assert MARK in written
    assert "a" * 32 in written
    assert "before" in written


def test_the_text_of_an_exception_is_not_produced_again_and_quotes_of_it_are_masked() -> None:
    event = an_event(extra={"why": "failed: the text that Sentry printed", "args": "the argument of it"})

    written = sent(event, Speaking("the argument of it"))

    assert "the text that Sentry printed" not in written
    assert "the argument of it" not in written
    assert MARK in written


def test_a_value_behind_an_option_that_names_a_secret_is_masked() -> None:
    event = an_event(extra={"sys.argv": ["run", "--password", "swordfish", "--path", "/srv"]})

    written = sent(event, ValueError("x"))

    assert "swordfish" not in written
    assert '"/srv"' in written


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through_the_bridge(signal: type[BaseException]) -> None:
    class Interrupted(dict[str, Any]):
        def get(self, *_: Any) -> Any:
            raise signal

    with pytest.raises(signal):
        before_send(Interrupted(), {})
