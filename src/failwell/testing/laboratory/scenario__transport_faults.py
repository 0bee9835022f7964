"""Failures below the provider, which look the same for every provider: gateways, sockets, time.

Each is built from the dialect's successful answer.
"""

from collections.abc import Callable
from dataclasses import replace

from failwell.testing.laboratory.lab_reply import Answer, Reply, always, as_page

_EDGE = (("server", "cloudflare"), ("cf-ray", "8f2a6c0d1e3b4a5c-FRA"))
_JUNK = b'{"id": "lab-1", "object": "resp, and then no more JSON'


def _instead(reply: Reply) -> Callable[[Answer], Answer]:
    return lambda _: always(reply)


def _changed(change: Callable[[Reply], Reply]) -> Callable[[Answer], Answer]:
    return lambda fine: lambda call: change(fine(call))


def _garbled(reply: Reply) -> Reply:
    """The same reply, or the first event of the same stream, with its JSON left open."""
    first, *rest = reply.pieces or (b"",)
    body = first.rstrip()
    if not body.endswith(b"}"):
        return Reply(200, (("content-type", "application/json"),), _JUNK)
    return replace(reply, pieces=(body[:-1] + first[len(body) :], *rest))


BELOW: dict[str, Callable[[Answer], Answer]] = {
    "html_502": _instead(as_page(502, "Bad Gateway", ("server", "nginx"))),
    "gateway_timeout": _instead(as_page(504, "Gateway Time-out", ("server", "nginx"))),
    "cloudflare_524": _instead(as_page(524, "A timeout occurred", *_EDGE)),
    "reset_before_read": _instead(Reply(None, ending="reset", unread=True)),
    "reset_after_read": _instead(Reply(None, ending="reset")),
    "slow_headers": _changed(lambda reply: replace(reply, stall="head")),
    "slow_body": _changed(lambda reply: replace(reply, stall="body")),
    "garbage_json": _changed(_garbled),
    # No request arrives: its address is a closed port.
    "refused": _instead(Reply(None, ending="reset", unread=True)),
}
"""Scenario → how it is built from a dialect's successful answer."""
