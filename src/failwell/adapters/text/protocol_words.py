"""Protocol facts that are printed as words: gRPC statuses, SQLSTATEs, errors of operating systems, exit codes, signals.

The HTTP status in a text.
"""

import re
import signal
from http import HTTPStatus

from failwell.adapters.classification import Phase
from failwell.adapters.protocols.sql import MYSQL_ERRORS, kind_of_mysql, kind_of_sqlstate, sqlstate_of
from failwell.adapters.protocols.stores import kind_of_mongodb, kind_of_redis
from failwell.adapters.protocols.system_errors import (
    KIND_BY_NAME,
    NAME_BY_NUMBER,
    NAME_BY_SENTENCE,
    NAME_BY_TRANSLATION,
    NAME_BY_WINDOWS_NUMBER,
    TRANSLATIONS_IN_ASCII,
    is_ntstatus,
)
from failwell.adapters.protocols.wire import GRPC_WORDS, HTTP2_CODES, http_of_close_code, kind_of_close_code
from failwell.errors.lazy_regex import lazy_regex

_GRPC_BY_SPELLING = {name.replace("_", "").lower(): name for name in GRPC_WORDS} | {"canceled": "CANCELLED"}
_GRPC = lazy_regex(
    r"\bStatusCode(?:\.|\W{1,2}\"?)(?P<a>[A-Za-z_]{2,20})"  # Python, .NET: StatusCode="Unavailable"
    r"|\bcode = (?P<b>[A-Z]\w{1,20}) desc\b"  # Go
    r"|\bStatus(?:Runtime)?Exception: (?P<c>[A-Z_]{2,20})\b"  # Java
    r"|\b(?P<n>\d{1,2}) (?P<d>[A-Z][A-Z_]{1,20}): "  # Node
    r"|\b[Ss]tatus\W{1,3}(?:code: )?'?(?P<e>[A-Z]\w{1,20})'?, (?:self|message|details)\b"  # tonic
    r"|\bcode: '?(?P<f>[A-Z]\w{1,20})'?, message: \""  # tonic, debug
    r"|\bCode: (?P<h>[A-Z]\w{1,20})\n\s{0,8}Message: "  # grpcurl
    r"|\bgrpc[-_ ]?(?:status|code)\W{1,4}(?P<g>[A-Za-z_]{2,20}|\d{1,2})\b",
    re.IGNORECASE,
)
_SQLSTATE = lazy_regex(
    r"\bSQL ?STATE\b[^\w\n]{1,4}(?P<state>(?=[0-9A-Z]{0,4}\d)[0-9A-Z]{5})\b"
    # As PostgREST answers, and as drivers print the fields of PostgreSQL's message.
    r"|['\"](?:C|code)['\"]: ?['\"](?P<fields>(?=[0-9A-Z]{0,4}\d)[0-9A-Z]{5})['\"](?=[^\n]{0,400}['\"](?:hint|M)['\"])"
    # ODBC writes it before the names of the driver and of the source: `[08001] [Microsoft][ODBC Driver 18 …]`.
    r"|\[(?P<odbc>(?=[0-9A-Z]{0,4}\d)[0-9A-Z]{5})\] ?\[[A-Z][\w ]{2,40}\]"
    r"|\bERROR #(?P<hash>(?=[0-9A-Z]{0,4}\d)[0-9A-Z]{5})\b"
    # Behind the database's own number, as MySQL and Snowflake print it: `001003 (42000): SQL compilation error`.
    r"|(?<![\w.])\d{4,6} \((?P<behind>(?=[0-9A-Z]{0,4}\d)[0-9A-Z]{5})\): ",
    re.IGNORECASE,
)
_ODBC_LOGIN = ("(SQLDriverConnect)", "(SQLConnect)")

_ERRNO_NAME = lazy_regex(r"\b(?:Errno::)?(E(?:AI_)?[A-Z0-9]{3,16})\b")
_NUMBERED = lazy_regex(
    r"\[Errno (?P<python>-?\d{1,5})\]|\(os error (?P<rust>\d{1,5})\)|\bOs \{ code: (?P<debug>\d{1,5}),|\[WinError (?P<win>\d{1,5})\]"
    r"|SocketException \((?P<net>\d{1,5})\)|\((?P<server>\d{1,3}): [A-Z]|\b\w{1,60}(?:Error|Exception)\((?P<repr>\d{1,3}), ['\"]",
    re.IGNORECASE,
)
_ANYWHERE = frozenset(
    name
    for name, kind in KIND_BY_NAME.items()
    if name in ("EADDRINUSE", "EBUSY")
    or (kind.startswith(("provider.", "resource.")) and name not in ("EFBIG", "ETIMEDOUT"))
)
"""Errors whose sentence means them wherever it is printed. The others are ordinary words, so they count at the end of a line."""
_AT_END = lazy_regex(r"[ \t]*(?:$|\n|\(os error|\(\d|[.;'\"\])]\s*(?:$|\n)|: ['\"/\w])")
_BEFORE_END = lazy_regex(r"(?:[:\]]|\d\)) ?['\"(]?$")
_RESOLVER = {-2: "ENOTFOUND", -3: "EAI_AGAIN", -4: "EAI_FAIL", -5: "EAI_NODATA"}
"""Numbers of `getaddrinfo`, which glibc counts downwards."""
_CONNECTING = lazy_regex(
    r"\bconnect(?:ing|ion|or)?\b(?! reset)|\bdial\b|\bresolv|\bproxy\b|\bssh\b|\bconnect\(2\)|\btimed out \([\w.-]{1,200}:\d{1,5}\)",
    re.IGNORECASE,
)
_READING = lazy_regex(r"\bread\b|\breading\b|\brecv|\bresponse\b|\bread:", re.IGNORECASE)

_EXIT = lazy_regex(
    r"\bexit(?:ed)?(?:[ _-](?:status|code|value))?(?: with)?(?: (?:status|code|value|error code))*[^\w-]{1,16}(?P<code>-?\d{1,10}|0x[0-9a-f]{8})\b"
    r"|\breturned (?:a )?non-zero(?: exit)?(?: (?:status|code))?:? (?P<nonzero>-?\d{1,10})\b"
    r"|\b(?:worker|process|child|container|pod|task)\b[^\n]{0,60}?\b(?:code|status)[ :=]{1,2}(?P<worker>1[2-9]\d)\b"
    r"|(?:\b(?:returned|return) code:?|\*\*\* \[[^\]\n]{1,200}\] Error) (?P<returned>-?\d{1,5})\b"
    r"|\bdied with <Signals\.SIG[A-Z0-9]+: (?P<python>\d{1,2})>"
    r"|\(signal: (?P<rust>\d{1,2}), SIG|\b(?:by|received|caught|on|with|got|fatal)[ '\"(]{1,3}signal (?P<number>\d{1,2})\b|\b(?:signal|by|SIG)[: =]{0,2}(?P<name>SIG[A-Z0-9]{3,6})\b"
    r"|\b(?:received|caught|got) (?P<ending>SIG(?:TERM|KILL|INT|QUIT|ABRT|SEGV|BUS|ILL|FPE|XCPU))\b",
    re.IGNORECASE,
)
_SHELL_SIGNALS: dict[str, str] = {
    "killed": "SIGKILL",
    "segmentation fault": "SIGSEGV",
    "aborted": "SIGABRT",
    "bus error": "SIGBUS",
    "illegal instruction": "SIGILL",
    "floating point exception": "SIGFPE",
    "terminated": "SIGTERM",
    "trace/breakpoint trap": "SIGTRAP",
    "interrupt": "SIGINT",
}
_SHELL = lazy_regex(
    r"^(?:\S{1,200}: line \d{1,7}: +\d{1,10} |\[\d{1,5}\][+-]? +(?:\d{1,10} )?|(?:zsh|bash|sh|fish|Fatal Python error): +|[^\n]{0,300}\bsignal: )?"
    rf"(?P<word>{'|'.join(map(re.escape, _SHELL_SIGNALS))})(?P<core> \(core dumped\)|: \d{{1,2}}| \(\d{{1,2}}\))?(?:$|[ \t]{{2,}}|\n)",
    re.IGNORECASE | re.MULTILINE,
)
_ENDINGS = ("exit", "return", "died with", "sig", "*** [", "code ", "status ")
_OOM_KILLED = lazy_regex(
    r"\bOOMKilled\b|\boom[-_]kill(?:er)?\b|\bOOM Killed\b|\bOut of memory: Killed process\b|\bKilled process \d+ |\bKilled signal terminated program\b|\bKilled \(program \w"
    r"|\bkilled by signal: Killed\b|\b(?:received|with|by|caught|got) (?:signal )?SIGKILL\b|\bsignal: 9\b|\bsignal 9\b"
)


def grpc_in(text: str) -> str | None:
    """The gRPC status that `text` names, in upper case; never `OK`."""
    for match in _GRPC.finditer(text) if "tatus" in text or ": " in text or "code" in text else ():
        word = next((match[group] for group in "abcdefgh" if match[group]), "")
        number = match["n"] or (word if word.isdecimal() else "")
        if number:
            named = GRPC_WORDS[int(number)] if int(number) < len(GRPC_WORDS) else ""
            # Node prints number and name; only together are they a status.
            if word.isdecimal() or named == word:
                name = named
            else:
                continue
        else:
            name = _GRPC_BY_SPELLING.get(word.replace("_", "").lower(), "")
        if name and name != "OK":
            return name
    return None


def sqlstate_in(text: str) -> str | None:
    """The SQLSTATE that `text` names."""
    match = _SQLSTATE.search(text)
    if match is None:
        return None
    state = (match["state"] or match["odbc"] or match["fields"] or match["hash"] or match["behind"]).upper()
    # ODBC has one code for both time limits; the function that it names tells the login from the query.
    return "08001" if state == "HYT00" and any(name in text for name in _ODBC_LOGIN) else state


_MYSQL = lazy_regex(
    r"\b(?:ERROR|Error|SQLSTATE\[\w{5}\] \[)[: ]{0,2}(?P<number>\d{4})(?: \((?P<state>[0-9A-Z]{5})\)|\]|: )"
    # Workbench: `Error Code: 2013. Lost connection …`. PDO: `SQLSTATE[HY000]: General error: 2006 MySQL server …`.
    r"|\bError Code: (?P<workbench>\d{4})\. |\bSQLSTATE\[\w{5}\]: [A-Z][\w ]{2,60}: (?P<pdo>\d{4}) "
    # MySQL Connector/Python: `ProgrammingError: 1064 (42000): You have an error …`.
    r"|\b\w{2,40}Error: (?P<connector>\d{4}) \((?P<its_state>[0-9A-Z]{5})\): "
    # As Rust's drivers print it: `MysqlError { code: 1114, message: …`.
    r"|\bMy[Ss]qlError \{\s{0,8}(?:ERROR )?(?:code: )?(?P<struct>\d{4})\b"
    # As Python's drivers print their arguments: `OperationalError: (1213, 'Deadlock found …')`.
    r"|\b(?:Operational|Programming|Integrity|Internal|Interface|Data|Database|NotSupported|MySQL)Error\)?:? ?\((?P<argument>\d{4}), ?[bu]?['\"]"
)
_MONGODB = lazy_regex(
    r"\bMongo\w{0,40}: E(?P<code>\d{3,5})\b|\bE(?P<bare>11\d{3}) duplicate key"
    # Ruby: `[13:Unauthorized]: not authorized`, and in older releases `not master (10107)`.
    r"|\bMongo::[^\n]{0,300}(?:\[(?P<ruby>\d{1,5}):[A-Z]\w{2,60}\]|\((?P<old>\d{1,5})\))"
    # As the server answers, and as Node and Python print it.
    r"|\bcode['\"]?: (?P<server>\d{1,5}),\s{0,4}['\"]?codeName\b"
)
_NOT_PRIMARY = lazy_regex(
    r"\bnot (?:master|primary) (?:and|or) \w|\bNotWritablePrimary\b|\b[Nn]o primary (?:(?:server|member) )?(?:found|available)\b"
)
_CONDITION = lazy_regex(
    r"\b(?:psycopg2?\.errors|asyncpg\.exceptions)\.(?P<name>\w{3,60})|\b(?:Postgres|PSQL)Exception\b[^\n]{0,24}: (?P<state>[0-9A-Z]{5}): "
)
_REDIS = lazy_regex(
    r"(?:\(error\) |^-|(?:Redis|Reply|Jedis)\w{0,40}(?:Error|Exception): )(?P<reply>[A-Z]{3,14} [^\n]{1,200})",
    re.MULTILINE,
)
_CLOSE = lazy_regex(
    r"\b(?:web ?socket\b[^\n]{0,60}?|close[ds]?(?:[ _-](?:connection|code|status|with|frame))+\W{1,3})\b(?P<a>1[01]\d\d|30\d\d|4[0-5]\d\d)\b|\breceived (?P<b>1[01]\d\d|30\d\d|4[0-5]\d\d) \(|\bsent (?P<c>1009) \(|\bclosed? \((?P<d>10(?:0\d|1[0-5])) [a-z]",
    re.IGNORECASE,
)


def database_kind_in(text: str) -> tuple[str, str] | None:
    """The kind and the code of a database's error in `text`: an SQLSTATE, a number, a reply."""
    state = sqlstate_in(text)
    if (mysql := _MYSQL.search(text)) is not None:
        number = (
            mysql["number"]
            or mysql["workbench"]
            or mysql["pdo"]
            or mysql["argument"]
            or mysql["connector"]
            or mysql["struct"]
        )
        # Others print `Error 1234:` too, so such a number counts only if it has a row.
        state_of_it = mysql["state"] or mysql["its_state"]
        is_certain = (state_of_it or mysql["pdo"] or mysql["argument"] or mysql["struct"]) is not None
        kind = kind_of_mysql(int(number), state_of_it) if is_certain else MYSQL_ERRORS.get(int(number))
        if kind is not None:
            return kind, number
    if state is None and (condition := _CONDITION.search(text)) is not None:
        state = condition["state"] or sqlstate_of(condition["name"])
    if state is not None and (kind := kind_of_sqlstate(state)) is not None:
        return kind, state
    if (mongodb := _MONGODB.search(text)) is not None:
        code = next(group for group in mongodb.groups() if group is not None)
        if (kind := kind_of_mongodb(int(code))) is not None:
            return kind, code
    if _NOT_PRIMARY.search(text) is not None:
        return "provider.unavailable", "NotWritablePrimary"
    if (redis := _REDIS.search(text)) is not None and (kind := kind_of_redis(redis["reply"])) is not None:
        return kind, redis["reply"].partition(" ")[0]
    return None


def close_code_in(text: str) -> tuple[str | None, int | None, int] | None:
    """The kind, or the status, that a WebSocket close code or a code of HTTP/2 in `text` stands for, and the code."""
    for name, (number, meaning) in HTTP2_CODES.items():
        if name in text:
            return meaning, None, number
    match = (
        _CLOSE.search(text)
        if "ocket" in text or "lose" in text or "received" in text or "sent" in text
        else None
    )
    if match is None or "ping timeout" in text:
        # Which side gave up on a connection that was silent does not matter.
        return None
    code = int(match["a"] or match["b"] or match["c"] or match["d"])
    kind, status = kind_of_close_code(code), http_of_close_code(code)
    return None if kind is None and status is None else (kind, status, code)


def errno_in(text: str) -> str | None:
    """The name of the operating system's error that `text` holds: by name, by sentence, or by number."""
    for match in _ERRNO_NAME.finditer(text):
        if match[1] in KIND_BY_NAME:
            return match[1]
    low = text.lower()
    hits = [(low.find(sentence), sentence) for sentence in NAME_BY_SENTENCE if sentence in low]
    if not hits:
        translations = TRANSLATIONS_IN_ASCII if low.isascii() else NAME_BY_TRANSLATION
        hits = [(low.find(sentence), sentence) for sentence in translations if sentence in low]
    for start, sentence in sorted(hits):
        name = NAME_BY_SENTENCE.get(sentence) or NAME_BY_TRANSLATION[sentence]
        if name in _ANYWHERE or (
            _AT_END.match(text, start + len(sentence)) and _BEFORE_END.search(low[max(0, start - 48) : start])
        ):
            return name
    match = _NUMBERED.search(text) if "rro" in low or "xception" in low or "os {" in low else None
    if match is None:
        return None
    if match["win"]:
        return NAME_BY_WINDOWS_NUMBER.get(int(match["win"]))
    number = int(next(value for value in match.groups() if value is not None))
    return _RESOLVER.get(number) or NAME_BY_NUMBER.get(number) or NAME_BY_WINDOWS_NUMBER.get(number)


def timed_out_phase(text: str) -> Phase:
    """How far a call got that ended with `ETIMEDOUT`: the text may say that it was connecting."""
    if _READING.search(text) is None and _CONNECTING.search(text) is not None:
        return "connect"
    return "read"


def exit_in(text: str) -> int | None:
    """The exit code that `text` names; negative for a signal, as `subprocess` has it."""
    low = text.lower()
    if "kill" in low and _OOM_KILLED.search(text) is not None:
        return -int(signal.SIGKILL)
    shell = _SHELL.search(text) if any(word in low for word in _SHELL_SIGNALS) else None
    if shell is not None and (shell["core"] or _stands_alone(text, shell)):
        return -int(getattr(signal, _SHELL_SIGNALS[shell["word"].lower()]))
    code: int | None = None
    for match in _EXIT.finditer(text) if any(word in low for word in _ENDINGS) else ():
        name = match["name"] or match["ending"]
        if name:
            number = getattr(signal, name.upper(), None)
            code = -int(number) if number is not None else code
        elif number := match["code"] or match["nonzero"] or match["returned"] or match["worker"]:
            value = int(number, 16 if number[:2].lower() == "0x" else 10)
            code = value if (value and -64 <= value <= 255) or is_ntstatus(value) else code
        else:
            code = -int(match["python"] or match["rust"] or match["number"])
    return code


def _stands_alone(text: str, shell: re.Match[str]) -> bool:
    """Whether a shell printed the word, and it is not a word of a sentence."""
    line = text[shell.start() : shell.end()]
    return shell["word"][0].isupper() or "signal: " in line or line.startswith("zsh: ")


_NUMBER = lazy_regex(r"(?<![\w.,$€£#/\\-])(?!55\d)[45]\d\d(?!\w|[.,:-]\d|%|/)")
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

_PHRASE_ALONE = lazy_regex(
    r"\s*(?:[\w.]{0,40}(?:Error|Exception): )?(?P<phrase>Bad Request|Unauthorized|Payment Required|Forbidden|Not Found|Method Not Allowed|Conflict"
    r"|Payload Too Large|Request Entity Too Large|Unprocessable Entity|Too Many Requests|Internal Server Error|Bad Gateway|Service Unavailable"
    r"|Gateway Time-?[Oo]ut|Request Timeout)(?=[:.]?\s*$|: )"
)
"""A text that is the phrase of a status, or begins with one as a heading, as servers print it that send no body."""
_STATUS_OF_PHRASE = {phrase: status for status, phrases in _PHRASES.items() for phrase in phrases}

_WORDS_BEFORE = lazy_regex(
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
_ERROR_BEFORE = lazy_regex(r"\berror[ ]$")
_ERROR_AFTER = lazy_regex(r"(?=[:.,;)\]]|\s*$|\s[a-z]+ing\b)")
_START_BEFORE = lazy_regex(
    r"(?:^|\n)(?:[\w.$:\\-]{0,48}(?:error|exception|failure|failed|fault)\b(?:[ ]?\[[\w ]{1,24}\])?[ ]?[:\-–][ ]?)?[\[<(\"'`]?$"
)
_START_AFTER = lazy_regex(
    r"[\])>]?(?:\s*$|\n|:[ \n]|[ ][-–][ ]|[ ]{1,2}[\[{<\"'])|[\])>][ ]?[:A-Za-z]|[ ](?:[A-Z][a-z]+[ '’]|[A-Z]{2,}_)|,[ ]message=|[ ](?:no|status)[ ]"
)
_SPEAKS_OF_HTTP = lazy_regex(r"http|status|api|request|response|fetch")
_FAILURE_BEFORE = lazy_regex(
    r"(?:time-?out|timed out|limit(?:ed)?|unauthori[sz]ed|forbidden|denied|overloaded|unavailable|_error|exceeded|bad request|gateway)[ ]\($"
)
_PAREN_AFTER = lazy_regex(r"\)\s{0,4}\n?\s{0,4}reason:")
_MANY_AFTER = lazy_regex(r"[ ]error responses")
_KIND_AFTER = lazy_regex(
    r"[ ](?:(?:client|server) error|http (?:response|error|status)|(?:response|status) code)\b"
)
_LEADING = lazy_regex(r"[\s\-:,()\"'`/.]{1,4}")
_CLICKHOUSE_AFTER = lazy_regex(r"(?:\.|, e\.displaytext\(\) =)\s{1,4}db::")
_COUNT_AFTER = lazy_regex(
    r"[ -]?(?:ms|s|sec|secs|seconds?|min|minutes?|hours?|days?|[kmgt]i?b|bytes?|chars?|characters?|tokens?|words?|requests?|calls?|items?|rows?"
    r"|records?|files?|lines?|users?|jobs?|tasks?|times|attempts?|pages?|results?|documents?|points?|dollars?|usd|eur|credits?|px|x|of \d|entries"
    r"|messages|events|connections|retries|workers|samples|steps|iterations|images|vectors|dimensions|columns|nodes|pods|more|other|different)\b"
)


def status_in(text: str) -> int | None:
    """The first failing HTTP status in `text` that has a sign of being one."""
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
