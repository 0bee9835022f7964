"""PyMySQL and pymongo against loopback servers that speak their protocols and answer with documented errors."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from failwell import ErrorReport, describe
from tests.adapters.raisers import CANARY, caught
from tests.sdks.stores.dialects import read_exactly, speaking
from tests.sdks.stores.servers import free_port

pytestmark = pytest.mark.slow

pymysql: Any = pytest.importorskip("pymysql")
pymongo: Any = pytest.importorskip("pymongo")
bson: Any = pytest.importorskip("bson")


def report_of(run: Callable[[], object]) -> ErrorReport:
    report = describe(caught(run))
    assert CANARY not in report.to_json()
    return report


def _packet(sequence: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload


def _refusal(number: int, state: str, text: str) -> bytes:
    return b"\xff" + struct.pack("<H", number) + b"#" + state.encode() + text.encode()


_HELLO = (
    b"\x0a" + b"8.0.40\0" + struct.pack("<I", 7) + b"a" * 8 + b"\0" + struct.pack("<H", 0xA20B) + b"\x2d"
    + struct.pack("<H", 2) + struct.pack("<H", 0x0008) + bytes([21]) + b"\0" * 10 + b"b" * 12 + b"\0"
    + b"mysql_native_password\0"
)  # fmt: skip
_OK = b"\x00\x00\x00\x02\x00\x00\x00"


def mysql_server(number: int, state: str, *, when: str) -> Callable[[Any], None]:
    """A server that refuses at the door, at the login, or a query that says so; or hangs up."""

    def serve(line: Any) -> None:
        refusal = _refusal(number, state, f"{CANARY} was refused")
        if when == "door":
            line.sendall(_packet(0, refusal))
            return
        line.sendall(_packet(0, _HELLO))
        _receive(line)
        line.sendall(_packet(2, refusal if when == "login" else _OK))
        while when in ("query", "silence"):
            text = _receive(line)
            if b"boom" in text and when == "silence":
                return
            line.sendall(_packet(1, refusal if b"boom" in text else _OK))

    return serve


def _receive(line: Any) -> bytes:
    head = read_exactly(line, 4)
    return read_exactly(line, int.from_bytes(head[:3], "little"))


def by_pymysql(port: int) -> None:
    link = pymysql.connect(host="127.0.0.1", port=port, user="u", password="p", connect_timeout=5)
    try:
        link.cursor().execute(f"boom '{CANARY}'")
    finally:
        if link.open:
            link.close()


@pytest.mark.parametrize(
    ("number", "state", "when", "kind"),
    [
        (1040, "08004", "door", "provider.overloaded"),
        (1129, "HY000", "door", "provider.permission"),
        (1045, "28000", "login", "provider.auth"),
        (1049, "42000", "login", "provider.rejected"),
        (1062, "23000", "query", "provider.bad_request"),
        (1064, "42000", "query", "provider.bad_request"),
        (1146, "42S02", "query", "provider.rejected"),
        (1205, "HY000", "query", "tool.busy"),
        (1213, "40001", "query", "tool.busy"),
        (3024, "HY000", "query", "provider.timeout"),
        (1021, "HY000", "query", "resource.disk"),
        (1053, "08S01", "query", "provider.unavailable"),
    ],
)
def test_an_error_of_mysql_is_read_by_its_number(number: int, state: str, when: str, kind: str) -> None:
    with speaking(mysql_server(number, state, when=when)) as port:
        report = report_of(lambda: by_pymysql(port))

    assert (report.kind, report.certainty) == (kind, "rejected")


def test_a_mysql_that_hangs_up_or_is_not_there() -> None:
    with speaking(mysql_server(0, "HY000", when="silence")) as port:
        lost = report_of(lambda: by_pymysql(port))
    refused = report_of(lambda: by_pymysql(free_port()))

    assert (lost.kind, lost.certainty) == ("provider.outcome_unknown", "unknown")
    assert (refused.kind, refused.certainty) == ("provider.connection", "not_sent")


_PRIMARY = {"ok": 1.0, "isWritablePrimary": True, "ismaster": True, "helloOk": True, "minWireVersion": 0,
            "maxWireVersion": 21, "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000, "logicalSessionTimeoutMinutes": 30}  # fmt: skip


def mongodb_server(reply: dict[str, Any] | None) -> Callable[[Any], None]:
    """A server that is found to be a primary and answers every command with one reply; with `None` it hangs up."""

    def serve(line: Any) -> None:
        while True:
            size, number, _, code = struct.unpack("<iiii", read_exactly(line, 16))
            body = read_exactly(line, size - 16)
            if code == 2004:  # OP_QUERY, for the first greeting alone
                document = bson.encode(_PRIMARY)
                line.sendall(_answer(number, 1, struct.pack("<iqii", 8, 0, 0, 1) + document))
                continue
            document = bson.decode(body[5 : 5 + struct.unpack_from("<i", body, 5)[0]])
            command = next(iter(document)).lower()
            if command in ("hello", "ismaster", "endsessions"):
                line.sendall(_answer(number, 2013, b"\0\0\0\0\0" + bson.encode(_PRIMARY)))
            elif reply is None:
                return
            else:
                line.sendall(_answer(number, 2013, b"\0\0\0\0\0" + bson.encode(reply)))

    return serve


def _answer(number: int, code: int, payload: bytes) -> bytes:
    return struct.pack("<iiii", 16 + len(payload), 1, number, code) + payload


def by_pymongo(port: int) -> None:
    with pymongo.MongoClient(
        "127.0.0.1",
        port,
        serverSelectionTimeoutMS=500,
        directConnection=True,
        retryWrites=False,
        retryReads=False,
    ) as client:
        client.store.held.insert_one({"name": CANARY})


def _failure(code: int, name: str, **more: Any) -> dict[str, Any]:
    return {"ok": 0.0, "code": code, "codeName": name, "errmsg": f"{CANARY} failed", **more}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (_failure(13, "Unauthorized"), "provider.permission"),
        (_failure(18, "AuthenticationFailed"), "provider.auth"),
        (_failure(26, "NamespaceNotFound"), "provider.rejected"),
        (_failure(50, "MaxTimeMSExpired"), "provider.timeout"),
        (_failure(112, "WriteConflict", errorLabels=["TransientTransactionError"]), "tool.busy"),
        (_failure(121, "DocumentValidationFailure"), "provider.bad_request"),
        (_failure(10107, "NotWritablePrimary"), "provider.unavailable"),
        (_failure(14031, "OutOfDiskSpace"), "resource.disk"),
        (_failure(16500, "TooManyRequests"), "provider.rate_limited"),
        (_failure(8000, "AtlasError") | {"errmsg": "bad auth : authentication failed"}, "provider.auth"),
        (_failure(99_999, "Newer", errorLabels=["RetryableWriteError"]), "provider.unavailable"),
        (_failure(99_999, "Newer"), "provider.unknown"),
        ({"ok": 1.0, "n": 0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": f"E11000 {CANARY}"}]}, "provider.bad_request"),
    ],
)  # fmt: skip
def test_an_error_of_mongodb_is_read_by_its_code_and_labels(reply: dict[str, Any], kind: str) -> None:
    with speaking(mongodb_server(reply)) as port:
        report = report_of(lambda: by_pymongo(port))

    assert report.kind == kind


def test_a_mongodb_that_hangs_up_or_is_not_there() -> None:
    with speaking(mongodb_server(None)) as port:
        lost = report_of(lambda: by_pymongo(port))
    refused = report_of(lambda: by_pymongo(free_port()))

    assert (lost.kind, lost.certainty) == ("provider.outcome_unknown", "unknown")
    assert (refused.kind, refused.certainty) == ("provider.connection", "not_sent")


def test_a_value_that_cannot_be_stored_is_the_callers() -> None:
    with (
        speaking(mongodb_server({"ok": 1.0})) as port,
        pymongo.MongoClient("127.0.0.1", port, directConnection=True) as client,
    ):
        report = report_of(lambda: client.store.held.insert_one({"name": object()}))

    assert report.category == "user_input"
