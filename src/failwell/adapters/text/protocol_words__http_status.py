"""The HTTP status in a text.

A number is a status only with a sign of it: words before it (`status code 429`), the status's own phrase after it
(`429 Too Many Requests`), or its place at the start of an error's message. Ports, counts, sizes, line numbers,
dates and parts of names are never statuses, and 550 to 559 are replies of mail and FTP servers.
"""

import re
from http import HTTPStatus

from failwell.adapters.protocols.services import amqp_in, ftp_in

_NUMBER = re.compile(r"(?<![\w.,$€£#/\\-])(?!55\d)[45]\d\d(?!\w|[.,:-]\d|%|/)")
_REACH = 72
"""How much text on either side of a number is looked at."""
_MOST_NUMBERS = 64

_PHRASES: dict[int, tuple[str, ...]] = {
    **{int(status): (status.phrase.lower(),) for status in HTTPStatus if status >= 400},
    404: ("not found", "page not found", "file not found"),
    403: ("forbidden", "access refused"),
    406: ("not acceptable", "precondition failed"),
    408: ("request timeout", "request time-out"),
    413: ("request entity too large", "content too large", "payload too large"),
    414: ("request-uri too long", "uri too long", "request-uri too large"),
    416: ("requested range not satisfiable", "range not satisfiable"),
    418: ("i'm a teapot",),
    422: ("unprocessable entity", "unprocessable content"),
    429: ("too many requests", "resource exhausted"),
    499: ("client closed request",),
    500: ("internal server error", "internal error"),
    503: ("service unavailable", "service temporarily unavailable", "unavailable"),
    504: ("gateway timeout", "gateway time-out", "deadline exceeded"),
    520: ("web server returned an unknown error", "unknown error"),
    521: ("web server is down",),
    522: ("connection timed out",),
    523: ("origin is unreachable",),
    524: ("a timeout occurred",),
    525: ("ssl handshake failed",),
    526: ("invalid ssl certificate",),
    529: ("overloaded", "site is overloaded"),
}

_PHRASE_ALONE = re.compile(
    r"\s*(?:[\w.]{0,40}(?:Error|Exception): )?(?P<phrase>Bad Request|Unauthorized|Payment Required|Forbidden|Not Found|Method Not Allowed|Conflict"
    r"|Payload Too Large|Request Entity Too Large|Unprocessable Entity|Too Many Requests|Internal Server Error|Bad Gateway|Service Unavailable"
    r"|Gateway Time-?[Oo]ut|Request Timeout)(?=[:.]?\s*$|: )"
)
"""A text that is the phrase of a status, or begins with one as a heading, as servers print it that send no body."""
_STATUS_OF_PHRASE = {phrase: status for status, phrases in _PHRASES.items() for phrase in phrases}

_WORDS_BEFORE = re.compile(
    r"""(?:
      (?:error|status|response|http|return|reply)[ _-]?(?:status[ _-]?)?code(?:[ ](?:was|is|of))?[^\w\n]{0,4}
    | \b(?:failed|rejected|responded|error)[ ]with[ ](?:an?[ ])?code[ ]
    | \b(?:got|received)[ ](?:an?[ ])?(?:http[ ])?(?:response|status|error)[ ]
    | \bresponse[ ]\[
    | \b(?:error|response|status)[ ]from[ ][^\n:]{1,40}:[ ]
    | (?<!exit[ _-])(?<!job[ _])\bstatus(?:\s(?:was|is|of))?[^\w\n]{1,4}
    | \bhttp[ _-]?(?:status|error|response|failure)?[ _]?(?:(?:client|server)[ ]error)?[^\w\n/]{1,4}
    | \bhttp/[\d.]{1,3}["']?[ ]+
    | \b(?:api|apistatus|client|server|service|provider|upstream|gateway|backend|request|response|fetch|googleapi)[ _:]{0,2}error[^\w\n]{1,4}
    | \b(?:server|endpoint|api|service|provider|upstream|gateway|backend|proxy|host|registry|origin|remote|request|call|url|get|post|put|patch|delete)\b
      [^\n]{0,40}?\b(?:returned|responds|responded|replied|answered|failed|rejected|gave|sent)(?:[ ]with)?(?:[ ]back)?(?:[ ]an?)?(?:[ ](?:http|error|status|code|response))*[ :]{1,2}
    | returned[ ]error:?[ ]
    | (?:unexpected|invalid|bad|wrong|non-2xx|unsuccessful|error)[ ](?:server[ ])?(?:http[ ])?(?:response|status|reply|answer)(?:[ ](?:status|code|received|from[ ]\S{1,40}))*[^\w\n]{1,4}
    | indicate[ ]success:[ ]
    | (?:error|exception)\(
    | (?:https?://|/)\S{1,70}:[ ] | ^\S{60,72}:[ ]
    | resulted[ ]in[ ]an?[ ]
    | \bfailed[,:;]?[ ](?:with[ ])?response[ ] | \bhttp[ ](?:code|status|response)[ ] | \breturned[ ]http[ ]
    | (?:^|[{,(\[\n"'])[ ]{0,8}["']?code["']?[ ]?[:=][ ]?
    )["'`(\[<]{0,2}$""",
    re.VERBOSE,
)
_ERROR_BEFORE = re.compile(r"\berror[ ]$")
_ERROR_AFTER = re.compile(r"(?=[:.,;)\]]|\s*$|\s[a-z]+ing\b)")
_START_BEFORE = re.compile(
    r"(?:^|\n)(?:[\w.$:\\-]{0,48}(?:error|exception|failure|failed|fault)\b(?:[ ]?\[[\w ]{1,24}\])?[ ]?[:\-–][ ]?)?[\[<(\"'`]?$"
)
_START_AFTER = re.compile(
    r"[\])>]?(?:\s*$|\n|:[ \n]|[ ][-–][ ]|[ ]{1,2}[\[{<\"'])|[\])>][ ]?[:A-Za-z]|[ ](?:[A-Z][a-z]+[ '’]|[A-Z]{2,}_)|,[ ]message=|[ ](?:no|status)[ ]"
)
_SPEAKS_OF_HTTP = re.compile(r"http|status|api|request|response|fetch")
_FAILURE_BEFORE = re.compile(
    r"(?:time-?out|timed out|limit(?:ed)?|unauthori[sz]ed|forbidden|denied|overloaded|unavailable|_error|exceeded|bad request|gateway)[ ]\($"
)
_PAREN_AFTER = re.compile(r"\)\s{0,4}\n?\s{0,4}reason:")
_MANY_AFTER = re.compile(r"[ ]error responses")
_KIND_AFTER = re.compile(
    r"[ ](?:(?:client|server) error|http (?:response|error|status)|(?:response|status) code)\b"
)
_LEADING = re.compile(r"[\s\-:,()\"'`/.]{1,4}")
_CLICKHOUSE_AFTER = re.compile(r"(?:\.|, e\.displaytext\(\) =)\s{1,4}db::")
_COUNT_AFTER = re.compile(
    r"[ -]?(?:ms|s|sec|secs|seconds?|min|minutes?|hours?|days?|[kmgt]i?b|bytes?|chars?|characters?|tokens?|words?|requests?|calls?|items?|rows?"
    r"|records?|files?|lines?|users?|jobs?|tasks?|times|attempts?|pages?|results?|documents?|points?|dollars?|usd|eur|credits?|px|x|of \d|entries"
    r"|messages|events|connections|retries|workers|samples|steps|iterations|images|vectors|dimensions|columns|nodes|pods|more|other|different)\b"
)


def status_in(text: str) -> int | None:
    """The first failing HTTP status in `text` that has a sign of being one. Numbers of a broker or of FTP are none."""
    if (("_" in text or "-" in text) and amqp_in(text) is not None) or ftp_in(text) is not None:
        return None
    for count, number in enumerate(_NUMBER.finditer(text)):
        if count >= _MOST_NUMBERS:
            return None
        start, end = number.span()
        if _is_status(text, int(number[0]), start, end):
            return int(number[0])
    alone = _PHRASE_ALONE.match(text)
    return None if alone is None else _STATUS_OF_PHRASE.get(alone["phrase"].lower())


def _is_status(text: str, number: int, start: int, end: int) -> bool:
    cut = max(0, start - _REACH)
    before, after = text[cut:start].lower(), text[end : end + _REACH]
    low = after.lower()
    if _has_phrase(number, low) or _KIND_AFTER.match(low):
        return True
    if _COUNT_AFTER.match(low) or _CLICKHOUSE_AFTER.match(low):
        return False
    if _WORDS_BEFORE.search(before) or (_ERROR_BEFORE.search(before) and _ERROR_AFTER.match(low)):
        return True
    if before.endswith("too many ") and _MANY_AFTER.match(low):
        return True
    if before.endswith("(") and (
        _PAREN_AFTER.match(low) or (low.startswith(")") and _FAILURE_BEFORE.search(before))
    ):
        return True
    at_start = _START_BEFORE.search(before if cut == 0 else f"…{before}")
    if at_start is None or _START_AFTER.match(after) is None:
        return False
    # A number that is all there is may be a missing key as well.
    return bool(after.strip(" \n])>\"'`")) or _SPEAKS_OF_HTTP.search(at_start[0]) is not None


def _has_phrase(number: int, after: str) -> bool:
    gap = _LEADING.match(after)
    if gap is None:
        return False
    rest = after[gap.end() :].replace("_", " ")
    return any(rest.startswith(phrase) for phrase in _PHRASES.get(number, ()))
