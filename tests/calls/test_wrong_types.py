"""A parameter of the wrong type is refused where it is written, with its name and what it takes."""

from typing import Any, cast

import pytest

import failwell
from failwell import Chain, ChainPolicy, Entry
from failwell.calls import RetryOptions
from failwell.calls.policy import Policy, Rule, Schedule

WRONG: dict[str, Any] = {
    "on": ["provider.overloaded"],
    "policy": "patient",
    "backoff": 5,
    "options": {"name": "ask"},
    "guard": "guard",
    "budget": 5,
    "cancel": "turn",
    "watcher": "print",
    "evict": True,
    "reconcile": True,
    "clock": 5,
    "jitter": 0.5,
    "provider": 5,
    "model": 5,
    "account": 5,
    "name": 5,
    "idempotent": "yes",
    "keyed": "yes",
    "repeat_exhausted": "yes",
}
ON_TAKES = "`on` takes a kind, the beginning of kinds with its dot, or a `Match`"


@pytest.mark.parametrize("name", WRONG)
def test_retry_refuses_it_at_decoration(name: str) -> None:
    for use in (failwell.retry, failwell.retrying):
        with pytest.raises(TypeError, match=f"^`{name}` takes .*, not "):
            cast("Any", use)(**{name: WRONG[name]})


def test_the_message_says_what_it_takes_and_what_it_got() -> None:
    retry: Any = failwell.retry

    with pytest.raises(TypeError, match=f"{ON_TAKES}.*, not the class `ValueError`"):
        retry(on=ValueError)
    with pytest.raises(TypeError, match=f"{ON_TAKES}.*, not a list"):
        retry(on=["provider."])
    with pytest.raises(
        TypeError, match=r"`backoff` takes a `Backoff`, such as `Backoff\(first=2.0\)`, not 5"
    ):
        retry(backoff=5)
    with pytest.raises(TypeError, match="`policy` takes a `Policy`, not 'x'"):
        retry(policy="x")


def test_chains_entries_policies_and_options_refuse_it_too() -> None:
    call: Any = print
    wrong: Any = 5
    entry = Entry(provider="p", model="m", call=call)

    for name in ("policy", "prices", "guard", "budget", "watcher", "clock", "jitter", "cancel", "name"):
        with pytest.raises(TypeError, match=f"^`{name}` takes"):
            cast("Any", Chain)(entry, **{name: wrong})
    for use, message in (
        (lambda: Chain(wrong), "`entries` takes entries"),
        (lambda: Entry(provider="p", model="m", call=wrong), "`call` of entry `p/m` takes a function, not 5"),
        (
            lambda: Entry(provider="p", model="m", call=call, backoff=wrong),
            "`backoff` of entry `p/m` takes a",
        ),
        (lambda: Entry(provider="p", model="m", call=call, credential=wrong), "`credential` of entry `p/m`"),
        (lambda: Entry(provider=wrong, model="m", call=call), "`provider` takes"),
        (lambda: ChainPolicy(refresh=wrong), "`refresh` takes a function"),
        (lambda: RetryOptions(policy=wrong), "`policy` takes a `Policy`"),
        (lambda: Schedule(max_attempts=3, backoff=wrong), "`backoff` takes a `Backoff`"),
        (lambda: Rule(match=wrong), "`match` takes a `Match`"),
        (lambda: Policy(rules=(wrong,)), "`rules` takes"),
        (lambda: Policy(rules=wrong), "`rules` takes"),
    ):
        with pytest.raises(TypeError, match=message):
            use()
