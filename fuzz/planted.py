"""Bytes → a secret, an encoding of it, an exception that carries it, and a way out that must not show it.

The same bytes always make the same case. Secrets are drawn by a fixed seed, so nothing in this file looks like one.
"""

import base64
import html
import json
import logging
import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, quote_plus

from failwell.adapters.describe import describe
from failwell.delivery.agent_output import agent_json, agent_markdown
from failwell.delivery.http.problem_details import problem, problem_json
from failwell.delivery.logging import JsonFormatter, ReportFilter
from failwell.delivery.terminal import render_text
from failwell.delivery.webhook import failure_payload
from failwell.errors.axes import ActionKind
from failwell.errors.facts import ProviderMetadata, UserAction
from failwell.errors.fault import Fault
from failwell.errors.foreign_objects import safe_call
from failwell.errors.redact import register_secret
from failwell.integrations.structlog import report_exception
from failwell.otel import attributes
from failwell.sentry import before_send
from fuzz.trees import Choices, tree

_WINDOW = 9
_EDGE = 6
"""Characters at either end of an encoded text that may hold bits of what stands beside the secret."""


def _drawn() -> tuple[str, ...]:
    dice = random.Random(1967)
    plain = string.ascii_letters + string.digits
    signs = plain + "/+=&?%\"'<>\\ @#:;,~!$^*()[]{}|`éß中"
    lengths = (12, 16, 20, 24, 32, 40, 64, 120)
    return tuple(
        f"{dice.choice(plain)}{''.join(dice.choices(alphabet, k=length - 2))}{dice.choice(plain)}"
        for length in lengths
        for alphabet in (plain, signs, plain + "-_", "0123456789abcdef")
    )


SECRETS = _drawn()


def _as_json(text: str) -> str:
    return json.dumps({"value": text})


ENCODINGS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: quote(text, safe=""),
    lambda text: (
        quote(text, safe="").lower() if text.isascii() and text.lower() == text else quote(text, safe="")
    ),
    quote_plus,
    json.dumps,
    lambda text: json.dumps(text, ensure_ascii=False),
    lambda text: json.dumps(_as_json(text)),
    lambda text: json.dumps(json.dumps(_as_json(text))),
    html.escape,
    lambda text: html.escape(json.dumps(text)),
    repr,
    lambda text: repr(text.encode()),
    lambda text: repr([text, {"a": text}]),
    lambda text: text.encode().hex(),
    lambda text: text.encode().hex().upper(),
    *(
        lambda text, encode=encode, before=before: encode(f"{before}{text}".encode()).decode()
        for encode in (base64.b64encode, base64.urlsafe_b64encode)
        for before in ("", "u", "us", "user:")
    ),
)
SENTENCES = (
    "{}", "failed with {} today", "GET https://acme.test/x/{}/y", '{{"body": "{}"}}', "a={} b=c", "\n\n{}\n", "{}{}", "x" * 1_990 + " {}",
    "Authorization: Basic {}", "key={}&other=1", "<td>{}</td>", "said '{}', and left",
)  # fmt: skip


@dataclass
class Holder:
    """As programs have them."""

    note: str


def _grouped(text: str) -> BaseException:
    return ExceptionGroup(text, [ValueError(text), RuntimeError("x")])


def _caused(text: str) -> BaseException:
    error = RuntimeError("above")
    error.__cause__ = ValueError(text)
    return error


def _noted(text: str) -> BaseException:
    error = RuntimeError("noted")
    error.add_note(text)
    return error


def _vendor(text: str) -> BaseException:
    cls: Any = type("BadRequestError", (Exception,), {"__module__": "openai"})
    error = cls(f"Error code: 400 - {{'error': {{'message': {text!r}}}}}")
    error.body = {"message": text, "code": text}
    error.status_code = 400
    error.message = text
    return error


def _fault(text: str) -> BaseException:
    return Fault(
        kind="provider.bad_request",
        message=text,
        details={
            "note": text,
            "list": [text, {"deep": text}],
            text: 1,
            "set": {text},
            "bytes": text.encode(),
        },
        user_action=UserAction(ActionKind.CHANGE_INPUT, text),
        provider=text,
        model=text,
        fields_invalid=[text],
        provider_metadata=ProviderMetadata(
            code=text, request_id=text, headers={"date": text, "x-request-id": text}
        ),
    )


CARRIERS: tuple[Callable[[str], BaseException], ...] = (
    ValueError,
    lambda text: ValueError("said", {"a": [text]}, (text,)),
    KeyError,
    lambda text: OSError(2, text, text),
    lambda text: RuntimeError(text.encode()),
    lambda text: RuntimeError(Holder(text)),
    _grouped,
    _caused,
    _noted,
    _vendor,
    _fault,
)

_POLICIES = ("full", "repr_only", "none", "strict")


def _raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001  (it is only given a traceback)
        return caught


def _report(error: BaseException, choose: Choices) -> str:
    return describe(_raised(error), policy=choose.one(_POLICIES)).to_json()


def _views(error: BaseException, choose: Choices) -> str:
    report = describe(error, policy=choose.one(_POLICIES))
    audience = choose.one(("user", "model", "operator", "audit"))
    return json.dumps(report.view(audience), ensure_ascii=False)


def _texts(error: BaseException, choose: Choices) -> str:
    report = describe(error, policy=choose.one(_POLICIES))
    ways: tuple[Callable[[], Any], ...] = (
        lambda: render_text(report, "operator"),
        lambda: render_text(report, "user"),
        lambda: agent_json(report),
        lambda: agent_markdown(report),
        lambda: problem_json(problem(report)),
        lambda: failure_payload(report, run_id="r", audience="operator"),
        lambda: attributes(report),
    )
    return str(choose.one(ways)())


def _record(error: BaseException, text: str, choose: Choices) -> logging.LogRecord:
    values: tuple[Any, ...] = (
        error, text, [text], (1, (text,)), {text}, {"a": text}, text.encode(), Holder(text), frozenset({text}),
    )  # fmt: skip
    value, extra = choose.one(values), choose.one(values)
    fields: dict[str, Any] = {"msg": "failed: %s", "args": (value,), "levelname": "ERROR", "name": "app"}
    if choose.below(2):
        fields["exc_info"] = (type(error), error, None)
    if choose.below(4) == 0:
        fields.update(msg=text, args=())
    if choose.below(4) == 0:
        fields["stack_info"] = f"Stack:\n  {text}"
    # As logging would make it: a single mapping is the mapping of the message.
    record = logging.makeLogRecord(fields)
    record.__dict__["why"] = extra
    return record


def _logged(error: BaseException, choose: Choices, text: str) -> str:
    record = _record(error, text, choose)
    if choose.below(2):
        return JsonFormatter().format(record)
    ReportFilter().filter(record)
    return logging.Formatter("%(levelname)s %(message)s %(why)s").format(record) + str(vars(record))


def _structlog(error: BaseException, choose: Choices, text: str) -> str:
    event: dict[str, Any] = {
        "event": text,
        "why": choose.one((error, text, [text], {text}, {"a": [text]}, text.encode(), Holder(text))),
        "exc_info": error if choose.below(2) else None,
    }
    return str(report_exception(None, "error", event))


def _sentry(error: BaseException, choose: Choices, text: str) -> str:
    frame = {"context_line": text, "pre_context": [text], "vars": {"a": text}, "filename": "app.py"}
    value = {"type": "X", "value": text, "stacktrace": {"frames": [frame]}}
    event: Any = {
        "event_id": "1",
        "exception": {"values": [value]},
        "breadcrumbs": {"values": [{"message": text, "data": {"x": [text]}}]},
        "extra": {"why": text, "deep": {"list": [text]}},
        "user": {"note": text},
        "contexts": {"own": {"note": text}, "trace": {"data": {"note": text}}},
        "logentry": {"message": text, "params": [text]},
        "request": {"url": text, "headers": {"Host": text}, "data": text},
    }
    hint = {"exc_info": (type(error), error, None)} if choose.below(4) else {}
    return json.dumps(before_send(event, hint), ensure_ascii=False, default=str)


def check_case(data: bytes) -> None:
    """Let one secret out by one way, and look for any part of it."""
    choose = Choices(data)
    secret = choose.one(SECRETS)
    if choose.below(64) == 0:
        # Now and then a hostile tree carries it, whose other texts do what they like.
        error, shown = tree(data[8:]), secret
        text = secret
        safe_call(BaseException.add_note, None, error, f"with {secret}")
    else:
        shown = choose.one(ENCODINGS)(secret)
        sentence: str = choose.one(SENTENCES)
        text = sentence.replace("{{", "{").replace("}}", "}").replace("{}", shown)
        error = choose.one(CARRIERS)(text)
    ways: tuple[Callable[[], str], ...] = (
        lambda: _report(error, choose),
        lambda: _views(error, choose),
        lambda: _texts(error, choose),
        lambda: _logged(error, choose, text),
        lambda: _structlog(error, choose, text),
        lambda: _sentry(error, choose, text),
    )
    out = cast("Callable[[], str]", choose.one(ways))()
    assert len(out) < 300_000
    for piece in pieces_of(secret, shown):
        assert piece not in out, f"{piece!r} of {shown!r} in {out[:2_000]!r}"


def pieces_of(secret: str, shown: str) -> set[str]:
    """Parts of a secret, plain and encoded, that nothing else can have written."""
    pieces: set[str] = set()
    for whole in (secret, shown[_EDGE:-_EDGE]):
        for at in range(len(whole) - _WINDOW + 1):
            piece = whole[at : at + _WINDOW]
            # Only what no escape changes, so that it is found however the output was encoded again.
            if piece.isalnum() and piece.isascii() and any(map(str.isdigit, piece)):
                pieces.add(piece)
    return pieces


def register_all() -> None:
    """Make the secrets known."""
    for secret in SECRETS:
        register_secret(secret)
