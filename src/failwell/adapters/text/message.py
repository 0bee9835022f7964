"""The reading of a live exception whose class says nothing, by the facts in its message.

Programs wrap a failed call into a plain `RuntimeError` with the status and the body in its text. Words alone decide
nothing here; a message without a fact leaves the class to decide.

Takes off what a program that passes on the output of others puts before each line: journald, torchrun, Docker Compose.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.text.first_look import may_hold_facts
from failwell.errors.causes import instance_dict
from failwell.errors.foreign_objects import int_attr, safe_call, safe_getattr
from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.safe_str import words_of

_LONGEST = 4_000
_STATUSES = ("status_code", "status", "http_status")
_PARTS_OF_A_REPLY = ("body", "reason", "response", "http_resp")


def read_reply(error: BaseException) -> Classification | None:
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


def read_message(error: BaseException, *, reply_only: bool = False) -> Classification | None:
    """What the facts in the message of `error` decide; `None` if it holds none.

    `reply_only`: only a reply's status or a service's code counts, for classes that a program raises about its own input.
    """
    text = safe_call(words_of, "", error)[:_LONGEST]
    if not text or not may_hold_facts(text):
        return None
    from failwell.adapters.facts import Facts
    from failwell.adapters.text.reader import read_text
    from failwell.adapters.text.verdict import has_known_code, read_printed

    facts = read_text(text)
    if reply_only and facts.status is None and facts.grpc is None and not has_known_code(facts):
        return None
    from failwell.adapters.sdk_exceptions import names_of

    return read_printed(facts, Facts(exception_type=type(error).__name__, names=names_of(error)))


_FROM_OTHERS = lazy_regex(
    r"\[(?:default|rank)?\d{1,4}\]:? ?|[\w.-]{1,60} {1,30}\| ?|#\d{1,4} \d{1,6}\.\d{1,4} "
)
_WITH_A_TIME = lazy_regex(
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [^\s:]{1,80} [^\s:]{1,80}: ?|\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]{2,12}(?:Z|[+-]\d\d:?\d\d) "
)
_FEWEST, _MOST = 2, 4_000
_TRACEBACK = "Traceback (most recent call last)"


def without_prefixes(text: str) -> str:
    """The text without what stands before every line. Times are taken from the lines of a traceback only: elsewhere they tell records apart."""
    if "\n" not in text:
        return text
    lines = text.split("\n", _MOST)
    for prefix in (_FROM_OTHERS, _WITH_A_TIME) if _TRACEBACK in text else (_FROM_OTHERS,):
        matches = [prefix.match(line) for line in lines]
        shown = [match for match, line in zip(matches, lines, strict=True) if line.strip()]
        if len(shown) >= _FEWEST and None not in shown:
            return "\n".join(
                line if match is None else line[match.end() :]
                for match, line in zip(matches, lines, strict=True)
            )
    return text
