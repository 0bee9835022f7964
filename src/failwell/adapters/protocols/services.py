"""The error codes of Oracle, SQL Server, Snowflake, ClickHouse, Prisma, AMQP, MQTT, Kafka, Kubernetes and mail servers, as they are printed.

Oracle: "Database Error Messages". SQL Server: "Database engine events and errors", and "Troubleshoot transient
connection errors in SQL Database". Snowflake: "Error messages". ClickHouse: `ErrorCodes.cpp`. Prisma: "Error message reference". AMQP: the
constants of version 0-9-1, section 1.1. MQTT: version 3.1.1, section 3.2.2.3. Kafka: "Protocol
guide", table of error codes with its column *retriable*, and `rd_kafka_err_descs` of librdkafka. Kubernetes: reasons of pods, containers and nodes in its API. Mail: RFC 5321
section 4.2 (reply codes) and RFC 3463 (enhanced status codes).
"""

import re

from failwell.errors.lazy_regex import lazy_regex

_DOWN, _BUSY, _UNSURE = "provider.unavailable", "tool.busy", "provider.outcome_unknown"
_BAD, _REJECTED, _OVER = "provider.bad_request", "provider.rejected", "provider.overloaded"
_AUTH, _PERMISSION, _CONNECTION = "provider.auth", "provider.permission", "provider.connection"
_QUOTA, _CANCELLED, _LONG = "provider.quota_exhausted", "cancel.run", "provider.context_too_long"
_DISK, _MEMORY = "resource.disk", "resource.system_memory"

_ORACLE: dict[str, str] = {
    _BAD: "1 900 904 911 913 917 922 923 932 933 936 942 947 955 979 1400 1407 1408 1427 1430 1438 1452 1476 1722 1830 1843 1858 1861 "
          "2290 2291 2292 12899 6502 6512 6550",
    _BUSY: "54 60 4020 4021 8177 30006",
    _UNSURE: "28 1012 2396 3113 3114 3135 12152 12571",
    _CONNECTION: "12170 12535 12537 12541 12543 12545 12547 12560 17002",
    _REJECTED: "12154 12162 12504 12505 12514 12521 12528 1109",
    _DOWN: "1033 1034 1089 1090 1092 12757 25408 10387",
    _OVER: "18 20 12516 12518 12519 12520",
    _AUTH: "1005 1017 1045 28000 28001 28002 28009",
    _PERMISSION: "1031 41900",
    _MEMORY: "4030 4031",
    _DISK: "257 1536 1628 1631 1652 1653 1654 1688 1691 19809 30036",
    _CANCELLED: "1013",
}  # fmt: skip
_ORACLE_BAD = (range(900, 1_000), range(1_400, 1_500), range(1_700, 1_900))
"""Oracle's "Error messages": what is wrong with a statement, with the data in it, with a number or a date."""
_SQL_SERVER: dict[str, str] = {
    _BAD: "102 156 207 208 213 241 245 515 547 2601 2627 2812 8134 8152 2628 8114 8115",
    _BUSY: "1205 1222 3960 3961",
    _DOWN: "40197 40501 40540 40613 49918 49919 49920 615 926 4221 4060 9001 18401",
    _OVER: "10928 10929 10936 17809 40549 40551 40552",
    _CONNECTION: "10053 10054 10060 10061 11001 20 64 233",
    _UNSURE: "-2",
    _AUTH: "18452 18456 18470 18486 18487 18488 40532",
    _PERMISSION: "229 230 262 916 15247 40615",
    _MEMORY: "701 802 8645 8651",
    _DISK: "1101 1105 9002 3257",
}  # fmt: skip
_KAFKA: dict[str, str] = {
    _DOWN: "LeaderNotAvailable NotLeaderForPartition NotLeaderOrFollower ReplicaNotAvailable CoordinatorNotAvailable "
           "GroupCoordinatorNotAvailable NotCoordinator NotCoordinatorForGroup CoordinatorLoadInProgress GroupLoadInProgress "
           "NotEnoughReplicas NotController PreferredLeaderNotAvailable BrokerNotAvailable KafkaStorageError",
    _CONNECTION: "AllBrokersDown",
    _OVER: "QueueFull",
    _BUSY: "RebalanceInProgress ConcurrentTransactions ReassignmentInProgress UnstableOffsetCommit",
    _UNSURE: "NotEnoughReplicasAfterAppend",
    _LONG: "MessageTooLarge MessageSizeTooLarge RecordTooLarge RecordListTooLarge",
    _PERMISSION: "TopicAuthorizationFailed GroupAuthorizationFailed ClusterAuthorizationFailed TransactionalIdAuthorizationFailed",
    _AUTH: "SaslAuthenticationFailed",
    _REJECTED: "UnsupportedSaslMechanism UnsupportedVersion InvalidReplicationFactor InvalidTopic UnknownTopicOrPartition "
               "InconsistentGroupProtocol SecurityDisabled",
    _BAD: "OffsetOutOfRange CorruptMessage InvalidRequiredAcks InvalidTimestamp TopicAlreadyExists",
}  # fmt: skip

_SNOWFLAKE: dict[str, str] = {
    _REJECTED: "606 608 609 2003",
    _CANCELLED: "604",
    _BAD: "1003 2043 904 100038 100046",
    _AUTH: "390100 390101 390102 390111 390114 390144 390195",
    _DOWN: "390201 253006",
    # Settings that the connector misses: `errorcode.py` of snowflake-connector-python.
    # 606: no warehouse is selected.
    "validation.config_invalid": "606 251001 251005 251006 251007 251008",
}  # fmt: skip
_CLICKHOUSE: dict[str, str] = {
    _BAD: "6 27 36 42 43 46 47 48 53 57 62 70 158 307 396",
    _REJECTED: "60 81 164 242",
    _UNSURE: "159 209 210 341",
    _CONNECTION: "198 279",
    "provider.rate_limited": "202",
    _OVER: "203 252 285",
    _QUOTA: "201",
    _BUSY: "373",
    _AUTH: "192 193 194 516",
    _PERMISSION: "195 291 497",
    _MEMORY: "173 241",
    _DISK: "243",
    _DOWN: "425 999",
    _CANCELLED: "394",
}  # fmt: skip
_PRISMA: dict[str, str] = {
    _AUTH: "1000",
    _CONNECTION: "1001 1002 2024",  # not reached, reached too late, and no connection free in the pool
    _REJECTED: "1003 1014 2021 2022",
    _UNSURE: "1008 1017",
    _PERMISSION: "1010",
    "provider.tls_failed": "1011",
    "validation.config_invalid": "1012 1013 1015",
    _BUSY: "2034",
    _OVER: "2037",
    _BAD: "1009 1016 2000 2001 2002 2003 2004 2005 2006 2007 2008 2009 2010 2011 2012 2013 2014 2015 2016 2017 2018 2019 2020 "
          "2023 2025 2026 2027 2029 2030 2033",
}  # fmt: skip
_AMQP: dict[str, str] = {
    _LONG: "311 CONTENT_TOO_LARGE",
    _OVER: "313 NO_CONSUMERS 506 RESOURCE_ERROR",
    _UNSURE: "320 CONNECTION_FORCED",
    _REJECTED: "402 INVALID_PATH 404 NOT_FOUND 530 NOT_ALLOWED 540 NOT_IMPLEMENTED",
    _PERMISSION: "403 ACCESS_REFUSED",
    _BUSY: "405 RESOURCE_LOCKED",
    _BAD: "406 PRECONDITION_FAILED 501 FRAME_ERROR 502 SYNTAX_ERROR 503 COMMAND_INVALID 504 CHANNEL_ERROR 505 UNEXPECTED_FRAME",
    _DOWN: "541 INTERNAL_ERROR",
}  # fmt: skip
"""A broker's numbers look like statuses of HTTP and mean other things, so each counts with its name alone."""
_MQTT: dict[str, str] = {
    _REJECTED: "unacceptable protocol version|incorrect protocol version|identifier rejected|invalid client identifier|client identifier not valid",
    _DOWN: "server unavailable|broker unavailable",
    _AUTH: "bad user name or password|bad username or password",
    _PERMISSION: "not authorised|not authorized",
}  # fmt: skip
"""What clients print for the return codes of CONNACK: the connection came about, and the broker ended it."""
_RDKAFKA: dict[str, str] = {
    _CONNECTION: "Host resolution failure|All broker connections are down",
    _UNSURE: "Broker transport failure|Communication failure with broker|Timed out|Message timed out|Request timed out|"
             "Disconnected before response received|Network exception",
    _OVER: "Queue full",
    _AUTH: "Authentication failure|SASL Authentication failed",
    "provider.tls_failed": "SSL error",
    _REJECTED: "Unknown topic|Unknown partition|Unknown topic or partition|Required feature not supported by broker|"
               "Invalid argument or configuration",
    _DISK: "Disk error when trying to access log file on disk",
    _BUSY: "Group rebalance in progress|Operation in progress",
}  # fmt: skip
"""What librdkafka prints after `Local: ` and `Broker: `, where the words are not those of Kafka's own name for it."""
_KUBERNETES: tuple[tuple[str, str], ...] = (
    ("resource.exhausted", r"\bInsufficient (?:cpu|memory|ephemeral-storage|pods|[\w.-]{2,60}/\w{2,40})\b"),
    ("resource.exhausted", r"\bThe node was low on resource: \w|\bNodeHas(?:Insufficient|No)\w{2,20}\b"),
    (
        _REJECTED,
        r"\b(?:ImagePullBackOff|ErrImagePull|InvalidImageName|ErrImageNeverPull|CreateContainerConfigError)\b",
    ),
    ("worker.crashed", r"\bCrashLoopBackOff\b"),
)

ORACLE_ERRORS = {int(number): kind for kind, numbers in _ORACLE.items() for number in numbers.split()}
SQL_SERVER_ERRORS = {int(number): kind for kind, numbers in _SQL_SERVER.items() for number in numbers.split()}
KAFKA_ERRORS = {name.lower(): kind for kind, names in _KAFKA.items() for name in names.split()}

SNOWFLAKE_ERRORS = {int(number): kind for kind, numbers in _SNOWFLAKE.items() for number in numbers.split()}
CLICKHOUSE_ERRORS = {int(number): kind for kind, numbers in _CLICKHOUSE.items() for number in numbers.split()}
PRISMA_ERRORS = {number: kind for kind, numbers in _PRISMA.items() for number in numbers.split()}
AMQP_ERRORS = {
    (int(number), name): kind
    for kind, words in _AMQP.items()
    for number, name in zip(words.split()[::2], words.split()[1::2], strict=True)
}
RDKAFKA_ERRORS = {words.lower(): kind for kind, every in _RDKAFKA.items() for words in every.split("|")}

MQTT_ERRORS = {words: kind for kind, every in _MQTT.items() for words in every.split("|")}
_CONNACK = lazy_regex(
    r"\bconnection (?:refused|error)[:,]? ?(?:- )?(?P<words>[a-z][a-z ]{8,40})", re.IGNORECASE
)

_CLICKHOUSE_CODE = lazy_regex(
    r"\bCode: (?P<number>\d{1,4})(?:\.|, e\.displayText\(\) =)\s{1,4}DB::(?:Net)?Exception\b"
)
_PRISMA_CODE = lazy_regex(r"\bError: P(?P<cli>\d{4})\b|\b(?:error_)?code\W{1,4}P(?P<client>\d{4})\b")
_AMQP_CODE = lazy_regex(
    r"\b(?P<number>[345]\d\d)(?:, reply-text=|, ?[bu]?['\"]|[ )(]{1,3})['\"]?(?P<name>[A-Z]{2,12}[_-][A-Z_-]{4,20})\b"
)
"""How the clients of brokers print a number and its name: `404 (NOT-FOUND)`, `reply-code=404, reply-text=NOT_FOUND`."""
_RDKAFKA_WORDS = lazy_regex(r"\b(?:Local|Broker): (?P<words>[A-Z][A-Za-z-]{1,20}(?: [A-Za-z-]{1,20}){0,9})")
_FLAKE = lazy_regex(r"(?:^|: )(?P<number>\d{6})(?: \([0-9A-Z]{5}\))?: (?:\d{1,6}: )?[A-Z\d]", re.MULTILINE)
_ORA = lazy_regex(r"\bORA-(?P<number>\d{1,5})\b")
_MSSQL = lazy_regex(
    r"\bMsg (?P<message>\d{2,5}), Level (?P<level>\d{1,2})\b|\bError Number: ?(?P<net>-?\d{1,5})\b(?:,State:\d{1,3},Class:(?P<class>\d{1,2})\b)?"
    r"|\[SQL Server\][^\n]{0,300} \((?P<odbc>\d{3,5})\)|\bSqlException\b[^\n]{0,300}\bnumber[:=] ?(?P<java>\d{1,5})\b"
    r"|\bSQL Server error is: (?P<bulk>\d{2,5})\b",
    re.IGNORECASE,
)
_KAFKA_NAME = lazy_regex(
    r"\b(?:[A-Z][a-z]+){2,7}(?:Exception|Error)?\b|\b_?(?:[A-Z]{2,}_){1,6}[A-Z]{2,}\b|\b(?:Not leader for partition)\b"
)
_MAIL = lazy_regex(
    r"\b(?P<reply>[45][0-5]\d)(?:[ -]|, ?[bu]?['\"])(?P<class>[45])\.(?P<subject>\d{1,3})\.(?P<detail>\d{1,3})\b"
)
_SMTP = lazy_regex(
    r"\bSMTP|(?:^|[\"'(:>] ?)55[0-4][ -][^\n]{0,200}\b(?:address|sender|recipient|mailbox|e?mail|relay)",
    re.IGNORECASE | re.MULTILINE,
)
_REPLY = lazy_regex(
    r"(?:^|[\"'(:>] ?)(?P<reply>4[25]\d|5[035]\d)(?:[ -]|, ?[bu]?['\"])(?=[A-Za-z<#])", re.MULTILINE
)
_SPAM = lazy_regex(r"(?<!anti)(?<!anti-)spam(?!haus|cop)", re.IGNORECASE)
_USED_UP = lazy_regex(
    r"\b(?:quota|credits?)\b|\blimit (?:exceeded|reached)|\bexceeded\b[^.\n]{0,40}\blimit\b", re.IGNORECASE
)
_REPLIES: dict[int, str] = {
    421: _DOWN, 450: _DOWN, 451: _DOWN, 452: _DOWN, 454: _DOWN,
    500: _BAD, 501: _BAD, 502: _REJECTED, 503: _BAD, 504: _REJECTED, 530: _AUTH, 534: _AUTH, 535: _AUTH, 538: _AUTH,
    550: _REJECTED, 551: _BAD, 552: _QUOTA, 553: _BAD, 554: _REJECTED, 555: _BAD,
}  # fmt: skip
_FTP: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (code, lazy_regex(rf"(?:^|[\"'(:] ?){code}[ -](?:{words})", re.IGNORECASE | re.MULTILINE), kind)
    for code, words, kind in (
        (
            "425",
            "(?:can't|cannot|unable|could not)[^\n]{0,20} (?:open|build) (?:passive |data )?connection",
            "provider.connection",
        ),
        ("426", "connection closed|transfer aborted|failure (?:reading|writing)", "provider.outcome_unknown"),
        ("450", "[^\n]{0,80}(?:busy|in use|locked)", "tool.busy"),
        ("530", "[^\n]{0,40}(?:log ?in|logged|user|password|authenticat|anonymous)", _AUTH),
        ("550", "[^\n]{0,120}(?:permission|access|not allowed|denied)", _PERMISSION),
        (
            "550",
            "[^\n]{0,120}(?:no such (?:file|directory)|not found|can't (?:find|check for)|failed to (?:open|change|retrieve)|could not get)",
            _BAD,
        ),
        ("552", "[^\n]{0,80}(?:disk|storage|space|full)", "resource.disk"),
        ("553", "[^\n]{0,80}(?:could not create|not allowed|denied|permission)", _PERMISSION),
    )
)
"""RFC 959, section 4.2, with the words that servers write, because the numbers alone mean other things elsewhere."""
_AUTH_DETAILS = frozenset({"8", "9", "11", "12", "13", "14"})


def oracle_in(text: str) -> tuple[str, str] | None:
    """The kind and the number of Oracle's error in `text`. `ORA-06512` only says where one was raised."""
    for match in _ORA.finditer(text):
        number = int(match["number"])
        kind = ORACLE_ERRORS.get(number) or (_BAD if any(number in some for some in _ORACLE_BAD) else None)
        if kind is not None and number != 6512:
            return kind, f"ORA-{number:05}"
    return None


def sql_server_in(text: str) -> tuple[str, str] | None:
    """The kind and the number of SQL Server's error in `text`."""
    match = _MSSQL.search(text)
    if match is None:
        return None
    number = match["message"] or match["net"] or match["odbc"] or match["java"] or match["bulk"]
    severity = match["level"] or match["class"]
    # "Database Engine error severities": those from 11 to 16 are for the user to correct.
    kind = SQL_SERVER_ERRORS.get(int(number)) or (_BAD if severity and 11 <= int(severity) <= 16 else None)
    return None if kind is None else (kind, number)


def snowflake_in(text: str) -> tuple[str, str] | None:
    """The kind and the number of Snowflake's error in `text`, which it prints with six digits."""
    match = _FLAKE.search(text)
    kind = None if match is None else SNOWFLAKE_ERRORS.get(int(match["number"]))
    return None if match is None or kind is None else (kind, match["number"])


def clickhouse_in(text: str) -> tuple[str, str] | None:
    """The kind and the number of ClickHouse's error in `text`."""
    match = _CLICKHOUSE_CODE.search(text)
    if match is not None and match["number"] == "252" and "single INSERT block" in text:
        # Too many parts of a table pass; too many partitions in one statement do not.
        return "provider.bad_request", "252"
    kind = None if match is None else CLICKHOUSE_ERRORS.get(int(match["number"]))
    return None if match is None or kind is None else (kind, match["number"])


def prisma_in(text: str) -> tuple[str, str] | None:
    """The kind and the code of Prisma's error in `text`: `P1001`."""
    match = _PRISMA_CODE.search(text)
    if match is None:
        return None
    number = match["cli"] or match["client"]
    kind = PRISMA_ERRORS.get(number)
    return None if kind is None else (kind, f"P{number}")


def amqp_in(text: str) -> tuple[str, str] | None:
    """The kind and the name of an AMQP broker's error in `text`."""
    for match in _AMQP_CODE.finditer(text):
        name = match["name"].rstrip("-_").replace("-", "_")
        kind = AMQP_ERRORS.get((int(match["number"]), name))
        if kind is not None:
            return kind, name
    return None


def mqtt_in(text: str) -> tuple[str, str] | None:
    """The kind and the words of a connection that an MQTT broker refused."""
    match = _CONNACK.search(text)
    if match is None:
        return None
    words = match["words"].strip().lower()
    kind = MQTT_ERRORS.get(words)
    return None if kind is None else (kind, words)


def kubernetes_in(text: str) -> tuple[str, str] | None:
    """The kind and the reason of an event of Kubernetes in `text`."""
    for kind, pattern in _KUBERNETES:
        match = re.search(pattern, text)
        if match is not None:
            return kind, match[0].partition(" ")[0]
    return None


def kafka_in(text: str) -> tuple[str, str] | None:
    """The kind and the name of Kafka's error in `text`."""
    for match in _RDKAFKA_WORDS.finditer(text) if "Local: " in text or "Broker: " in text else ():
        words = match["words"]
        kind = RDKAFKA_ERRORS.get(words.lower()) or KAFKA_ERRORS.get(words.lower().replace(" ", ""))
        if kind is not None:
            return kind, words
    for match in _KAFKA_NAME.finditer(text):
        name = match[0].replace("_", "").replace(" ", "").removesuffix("Exception").removesuffix("Error")
        kind = KAFKA_ERRORS.get(name.lower())
        if kind is not None:
            return kind, name
    return None


def ftp_in(text: str) -> tuple[str, str] | None:
    """The kind and the code of an FTP server's reply in `text`: RFC 959 numbers them as HTTP and SMTP do, with another meaning."""
    for code, pattern, kind in _FTP:
        if code in text and pattern.search(text) is not None:
            return kind, code
    return None


def mail_in(text: str) -> tuple[str, str] | None:
    """The kind and the code of a mail server's reply in `text`: an enhanced code, or a reply beside the word SMTP."""
    match = _MAIL.search(text)
    if match is not None:
        kind = _kind_of_enhanced(match)
        if kind == _REJECTED and _USED_UP.search(text) is not None:
            # Mail servers have no code for a limit of the sender.
            kind = _QUOTA
        return _spam(match["reply"], text) or kind, f"{match['class']}.{match['subject']}.{match['detail']}"
    reply = _REPLY.search(text) if _SMTP.search(text) is not None else None
    kind = None if reply is None else _REPLIES.get(int(reply["reply"]))
    return None if reply is None or kind is None else (_spam(reply["reply"], text) or kind, reply["reply"])


def _spam(reply: str, text: str) -> str | None:
    """The kind of a message that a mail server refused for good as spam, whatever number it chose."""
    return "provider.content_refused" if reply[0] == "5" and _SPAM.search(text) is not None else None


def _kind_of_enhanced(match: re.Match[str]) -> str:
    subject, detail = match["subject"], match["detail"]
    if (subject, detail) == ("2", "2"):
        return _QUOTA
    if match["class"] == "4":
        return _DOWN
    if subject == "7":
        return _AUTH if detail in _AUTH_DETAILS else _PERMISSION
    if (subject, detail) == ("3", "4"):
        return _LONG
    return _BAD if subject in ("1", "6") else _REJECTED
