"""Whatever is foreign becomes a report: exceptions, saved replies, log records.

An adapter recognises a class by its top-level module and its name along the MRO and never imports the vendor,
so it works with any release of any SDK, or with none. What leaves is a kind, facts and the evidence for them.

Example:
    >>> from failwell.adapters import describe_reply, parse_reply
    >>> describe_reply(parse_reply("HTTP/1.1 429 Too Many Requests"), provider="openai").kind
    'provider.rate_limited'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.adapters.checked_replies import check_reply as check_reply
    from failwell.adapters.log_records.http_reply import SavedReply as SavedReply
    from failwell.adapters.log_records.http_reply import describe_reply as describe_reply
    from failwell.adapters.log_records.http_reply import parse_reply as parse_reply
    from failwell.adapters.registrations import register_code as register_code
    from failwell.adapters.revival import revive as revive
    from failwell.adapters.revival import translate as translate
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.adapters.checked_replies": "check_reply",
            "failwell.adapters.registrations": "register_code",
            "failwell.adapters.revival": "revive translate",
            "failwell.adapters.log_records.http_reply": "SavedReply describe_reply parse_reply",
        },
    )
