"""The tables of machine evidence: what statuses and codes mean, for every provider.

A code means a kind, or it stands for a status (`invalid_argument` is a 400 in a word). Codes that are made of plain
words (`insufficient_quota`, `ModelNotFoundException`) are read as words and need no row here.
"""

from failwell.adapters.protocols import vendor_codes

QUOTA, RATE, OVER = "provider.quota_exhausted", "provider.rate_limited", "provider.overloaded"
DOWN, AUTH, PERM = "provider.unavailable", "provider.auth", "provider.permission"
MODEL, CAPABILITY, BAD = "provider.model_not_found", "provider.capability_missing", "provider.bad_request"
LONG, REFUSED, UNSURE = "provider.context_too_long", "provider.content_refused", "provider.outcome_unknown"
REJECTED, THROWN, CONNECTION = "provider.rejected", "provider.output_rejected", "provider.connection"

_KINDS_OF_CODES: dict[str, str] = {
    QUOTA: "arrearage billing_hard_limit_reached exhausted_balance billing_disabled gousagelimiterror",
    OVER: "3505 modelnotreadyexception slow_down",
    MODEL: "model_not_available model_not_supported reponotfound revisionnotfound",
    "provider.permission": "gatedrepo gatedrepoerror disabledrepo disabledrepoerror",
    LONG: "3051 string_above_max_length request_too_large model_length",
    REFUSED: "safety prohibited_content image_safety recitation blocklist spii refusal guardrail_intervened content_filter "
    "content_filtered image_recitation image_prohibited_content unsafe_content sensitive_content content_policy_violation "
    "contentpolicyviolation responsibleaipolicyviolation moderation_blocked public_error_unsafe_generation invalid_prompt",
    THROWN: "tool_use_failed failed_generation model_error json_validate_failed modelerrorexception "
    "modelstreamerrorexception malformed_function_call",
    "provider.output_truncated": "lengthfinishreasonerror",
    "provider.output_invalid": "apiresponsevalidationerror responsevalidationerror",
    CAPABILITY: "unsupportedparamserror",
    REJECTED: "noregionerror endpointprovidererror unknownserviceerror invalidregionerror unknownendpointerror "
    "unsupportedprotocol invalidurl missingschema",
    BAD: "entrynotfound",
    UNSURE: "apiconnectionerror websocketconnectionclosederror apitimeouterror",
}
CODES: dict[str, str] = {
    **{code: kind for kind, codes in vendor_codes.rows().items() for code in codes},
    **{code: kind for kind, codes in _KINDS_OF_CODES.items() for code in codes.split()},
}
"""Codes whose words do not say what they mean → the kind. One of a single provider is written as `provider:code`."""

_CANCELLED = "apiuseraborterror clientclosedrequesterror breakpointexception"
_BUGS = "nullreferenceexception nullpointerexception"
CLASSES: dict[str, str] = {
    **dict.fromkeys(_CANCELLED.split(), "cancel.run"),
    **dict.fromkeys(_BUGS.split(), "internal.bug"),
}
"""Names of client classes alone. A provider that sends such a name as a code cancels nothing here."""

STATUS_CODES: dict[str, int] = {
    **vendor_codes.STATUSES, "api_error": 500, "limitexceededexception": 429, "limitexceeded": 429, "1300": 429, "requests": 429, "tokens": 429,
}  # fmt: skip
"""Codes that stand for a status and are no words for it."""

STATUS_WORDS: dict[str, int] = {
    "internalserver": 500, "servererror": 500, "internalerror": 500, "internal": 500,
    "badgateway": 502, "serviceunavailable": 503, "unavailable": 503, "overloaded": 529, "gatewaytimeout": 504,
    "deadlineexceeded": 504, "timeout": 408, "timedout": 408, "unauthorized": 401, "unauthenticated": 401, "authentication": 401,
    "permissiondenied": 403, "permission": 403, "authorizationfail": 403, "accessdenied": 403, "forbidden": 403, "notfound": 404,
    "alreadyexists": 409, "conflict": 409, "aborted": 409, "ratelimit": 429, "toomanyrequests": 429, "throttl": 429,
    "resourceexhausted": 429, "requestlimitexceeded": 429, "throughputexceeded": 429, "invalidrequest": 400, "badrequest": 400,
    "invalidargument": 400, "validation": 400, "failedprecondition": 400, "outofrange": 400, "unprocessable": 422,
    "unimplemented": 501, "contenttoolarge": 413, "invalid": 400,
}  # fmt: skip
"""Words in a code or the name of a class that stand for a status."""

KINDS_OF_STATUSES: dict[int, str] = {
    **dict.fromkeys(range(400, 500), REJECTED),
    **dict.fromkeys(range(500, 600), DOWN),
    **dict.fromkeys((400, 406, 411, 414, 415, 416, 417, 422), BAD),
    # What the request depends on failed: the model of an inference server, or the step before.
    424: DOWN,
    **dict.fromkeys((409, 425), DOWN),
    **dict.fromkeys((408, 499, 504, 524), UNSURE),
    **dict.fromkeys((521, 522, 523), CONNECTION),
    **dict.fromkeys((498, 503, 529), OVER),
    401: AUTH, 402: QUOTA, 403: PERM, 413: LONG, 429: RATE, 501: REJECTED, 505: REJECTED,
    # RFC 4918: the server has no room for what the request would store.
    507: QUOTA,
    # Portkey, for a guardrail that denied the request: https://portkey.ai/docs/api-reference/inference-api/error-codes
    446: REFUSED,
    # DeepL, "Error handling": the quota of the month.
    456: QUOTA,
}  # fmt: skip

_ANY = frozenset({QUOTA, AUTH, PERM, MODEL, CAPABILITY, LONG, REFUSED, BAD})
GENERIC: dict[int, frozenset[str]] = {
    400: _ANY,
    # SendGrid and others answer 401 where the credits are used up. No word makes it more than that.
    401: frozenset({QUOTA}),
    403: frozenset({QUOTA, AUTH, MODEL, CAPABILITY, REFUSED}),
    404: frozenset({MODEL, CAPABILITY, PERM, AUTH}),
    409: frozenset({BAD, QUOTA}),
    422: _ANY,
    429: frozenset({QUOTA, LONG, OVER, RATE}),
    500: frozenset({QUOTA, AUTH, OVER, RATE}),
    **dict.fromkeys((406, 412, 423, 424, 451), _ANY),
    # Statuses that no registry knows say only whose mistake it was.
    **dict.fromkeys(
        (419, 420, 427, 430, *range(432, 446), *range(447, 451), *range(452, 456), *range(457, 498)),
        _ANY | {RATE},
    ),
}
"""Statuses that services use for more than their name says → what words may turn them into.

Every other status stands whatever the words are: no word makes a 401 repeatable or a 5xx the caller's mistake.
"""

_BY_CALLER, _PASSING = frozenset({*range(400, 500), 529}), frozenset({429, 503, 504, 529})
GIVING_WAY: dict[int, frozenset[int]] = {
    400: _BY_CALLER,
    422: _BY_CALLER,
    403: frozenset({401, 429}),
    500: _PASSING,
    502: _PASSING,
}
"""Statuses that give way to a code → the statuses that the code may stand for. None blames the server's own fault on the caller."""

SERVERS_OF_ONE_STATUS = frozenset({"llamacpp", "llama.cpp", "ollama"})
"""Local servers that answer 500 to whatever they do not accept, as their sources show. There a 500 is generic too."""
