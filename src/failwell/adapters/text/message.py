"""The reading of a live exception whose class says nothing, by the facts in its message.

Programs wrap a failed call into a plain `RuntimeError` with the status and the body in its text. Words alone decide
nothing here; a message without a fact leaves the class to decide.
"""

from failwell.adapters.classification import Reading
from failwell.adapters.facts import STRUCTURES, Facts, as_objects
from failwell.adapters.text.reader__first_look import may_hold_facts
from failwell.errors.causes import instance_dict
from failwell.errors.foreign_objects import int_attr, safe_call, safe_getattr
from failwell.errors.safe_str import words_of

_LONGEST = 4_000
_STATUSES = ("status_code", "status", "http_status")
_PARTS_OF_A_REPLY = ("body", "reason", "response", "http_resp")


def read_reply(error: BaseException) -> Reading | None:
    """The reading of an exception that no table knows by the reply that it holds; `None` if it holds none.

    A reply is an object with an error status and headers. Clients that were generated from an OpenAPI document keep
    status, reason, body and headers as plain attributes.
    """
    own = instance_dict(error)
    status = next((value for name in _STATUSES if type(value := own.get(name)) is int), None)
    is_reply = status is not None and any(name in own for name in _PARTS_OF_A_REPLY)
    response = own.get("response")
    if response is not None and safe_getattr(response, "headers") is not None:
        status = int_attr(response, "status_code", "status")
        is_reply = True
    if not is_reply or status is None or not 400 <= status < 600:
        return None
    from failwell.adapters.classify import classify
    from failwell.adapters.sdk_exceptions import gather, provider_of

    facts = gather(error, None, type(error).__module__.partition(".")[0])
    facts.provider = provider_of(error, "") or provider_of(response, "") or None
    return classify(facts)


def read_message(error: BaseException, *, reply_only: bool = False) -> Reading | None:
    """What the facts in the message of `error` decide; `None` if it holds none.

    `reply_only`: only a reply's status or a service's code counts, for classes that a program raises about its own input.
    """
    text = safe_call(words_of, "", error)[:_LONGEST]
    if not text or not may_hold_facts(text):
        return None
    from failwell.adapters.text.reader import read_text
    from failwell.adapters.text.verdict import has_known_code, read_printed

    facts = read_text(text)
    if reply_only and facts.status is None and facts.grpc is None and not has_known_code(facts):
        return None
    from failwell.adapters.sdk_exceptions import names_of

    return read_printed(facts, Facts(exception_type=type(error).__name__, names=names_of(error)))


def add_text_facts(facts: Facts) -> None:
    """Add to an SDK's exception without a reply what its message holds of one."""
    if not may_hold_facts(facts.message):
        return
    from failwell.adapters.text.reader import read_text

    printed_facts = read_text(facts.message)
    facts.status = printed_facts.status
    facts.headers = facts.headers or printed_facts.headers
    facts.codes = tuple(dict.fromkeys((*facts.codes, *printed_facts.codes)))
    if facts.status is None:
        facts.phase = printed_facts.phase
    elif isinstance(printed_facts.body, STRUCTURES):
        facts.body = as_objects(printed_facts.body)
