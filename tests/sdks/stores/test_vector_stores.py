"""Clients of vector stores against loopback servers that answer with the bodies that the stores document."""

import json
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from failwell import ErrorReport, describe
from tests.adapters.raisers import CANARY, caught
from tests.sdks.stores.dialects import Reply, answering, routing
from tests.sdks.stores.servers import free_port

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

Call = Callable[[str], object]


def report_of(run: Callable[[], object]) -> ErrorReport:
    report = describe(caught(run))
    assert CANARY not in report.to_json()
    return report


def kinds(call: Call, rows: list[tuple[int, Any, str]], **headers: str) -> list[tuple[int, str, str]]:
    """The rows whose kind differs: the status, what came out, what is expected."""
    wrong: list[tuple[int, str, str]] = []
    for status, body, kind in rows:
        with answering(
            status, body, {name.replace("_", "-"): value for name, value in headers.items()}
        ) as address:
            report = report_of(lambda at=address: call(at))
        if report.kind != kind:
            wrong.append((status, report.kind, kind))
    return wrong


def refused(call: Call) -> tuple[str, str]:
    report = report_of(lambda: call(f"http://127.0.0.1:{free_port()}"))
    return report.kind, str(report.certainty)


def by_qdrant(address: str) -> object:
    client = pytest.importorskip("qdrant_client").QdrantClient(
        url=address, check_compatibility=False, timeout=2
    )
    return client.get_collection(CANARY)


def test_qdrant() -> None:
    def body(error: str) -> dict[str, Any]:
        return {"status": {"error": error}, "time": 0.001}

    rows: list[tuple[int, Any, str]] = [
        (400, body("Wrong input: Vector dimension error: expected dim: 4, got 3"), "provider.bad_request"),
        (401, "Must provide an API key or an Authorization bearer token", "provider.auth"),
        (403, body("Forbidden: Global manage access is required"), "provider.permission"),
        (404, body(f"Not found: Collection `{CANARY}` doesn't exist!"), "provider.rejected"),
        (409, body(f"Wrong input: Collection `{CANARY}` already exists!"), "provider.bad_request"),
        (500, body("Service internal error: task panicked"), "provider.unavailable"),
        (503, body("Service unavailable"), "provider.overloaded"),
    ]

    assert kinds(by_qdrant, rows) == []
    assert refused(by_qdrant) == ("provider.connection", "not_sent")


def test_qdrant_says_how_long_to_wait() -> None:
    with answering(429, {"status": {"error": "Too many requests"}}, {"retry-after": "3"}) as address:
        report = report_of(lambda: by_qdrant(address))

    assert (report.kind, report.not_before is not None) == ("provider.rate_limited", True)
    assert report.not_before is not None
    assert report.not_before.after == 3


def by_pinecone(address: str) -> object:
    client = pytest.importorskip("pinecone").Pinecone(api_key="key", host=address, **_no_retry())
    return client.describe_index(CANARY)


def _no_retry() -> dict[str, Any]:
    config = getattr(pytest.importorskip("pinecone"), "RetryConfig", None)
    return {} if config is None else {"retry_config": config(max_retries=0)}


def test_pinecone() -> None:
    def body(code: str, message: str, status: int) -> dict[str, Any]:
        return {"error": {"code": code, "message": message}, "status": status}

    rows: list[tuple[int, Any, str]] = [
        (400, body("INVALID_ARGUMENT", "Invalid argument", 400), "provider.bad_request"),
        (401, "Unauthorized", "provider.auth"),
        (402, body("PAYMENT_REQUIRED", "Request failed due to delinquent payment", 402), "provider.quota_exhausted"),
        (403, body("FORBIDDEN", "Request failed. You've reached the max serverless indexes allowed in project", 403), "provider.quota_exhausted"),
        (403, body("FORBIDDEN", "Deletion protection is enabled for this index", 403), "provider.permission"),
        (404, body("NOT_FOUND", f"Resource {CANARY} not found", 404), "provider.bad_request"),
        (409, body("ALREADY_EXISTS", "Resource already exists", 409), "provider.bad_request"),
        (429, body("RESOURCE_EXHAUSTED", "Too many requests", 429), "provider.rate_limited"),
        (500, body("UNKNOWN", "Internal server error", 500), "provider.unavailable"),
        (503, body("UNAVAILABLE", "Service unavailable", 503), "provider.overloaded"),
    ]  # fmt: skip

    assert kinds(by_pinecone, rows) == []
    assert refused(by_pinecone)[0] == "provider.connection"


def test_pinecone_without_a_key_calls_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINECONE_API_KEY", raising=False)

    report = report_of(lambda: pytest.importorskip("pinecone").Pinecone())

    assert (report.kind, report.retryable) == ("provider.auth", False)


def by_chroma(route: Callable[[str], Reply]) -> ErrorReport:
    chromadb = pytest.importorskip("chromadb")
    with routing(route) as address:
        port = int(address.rpartition(":")[2])
        client = chromadb.HttpClient(host="127.0.0.1", port=port)
        return report_of(lambda: client.get_collection(CANARY))


def _chroma(status: int, body: Any) -> Callable[[str], Reply]:
    payload = body.encode() if isinstance(body, str) else json.dumps(body).encode()

    def route(path: str) -> Reply:
        kind = {"content-type": "application/json"}
        if "collections" in path:
            return status, payload, kind
        identity = {"user_id": "a", "tenant": "default_tenant", "databases": ["default_database"]}
        known = (
            identity
            if "identity" in path
            else {"name": "default", "id": "0" * 32, "tenant": "default_tenant"}
        )
        return 200, json.dumps(known).encode(), kind

    return route


def test_chroma() -> None:
    rows: list[tuple[int, Any, str]] = [
        (404, {"error": "NotFoundError", "message": f"Collection [{CANARY}] does not exist"}, "provider.rejected"),
        (409, {"error": "UniqueConstraintError", "message": f"Collection {CANARY} already exists"}, "provider.bad_request"),
        (400, {"error": "InvalidArgumentError", "message": "…"}, "provider.bad_request"),
        (400, {"error": "QuotaError", "message": "…"}, "provider.quota_exhausted"),
        (401, {"error": "AuthorizationError", "message": "…"}, "provider.auth"),
        (403, {"error": "AuthError", "message": "…"}, "provider.permission"),
        (429, {"error": "RateLimitError", "message": "…"}, "provider.rate_limited"),
        (500, {"error": "InternalError", "message": "…"}, "provider.unavailable"),
        (503, "upstream connect error", "provider.overloaded"),
        (401, {"detail": "who are you"}, "provider.auth"),
    ]  # fmt: skip

    seen = [(status, by_chroma(_chroma(status, body)).kind, kind) for status, body, kind in rows]

    assert [row for row in seen if row[1] != row[2]] == []


def test_chroma_that_is_not_there() -> None:
    chromadb = pytest.importorskip("chromadb")

    report = report_of(lambda: chromadb.HttpClient(host="127.0.0.1", port=free_port()))

    assert (report.kind, report.certainty) == ("provider.connection", "not_sent")


def by_weaviate(address: str) -> object:
    weaviate: Any = pytest.importorskip("weaviate")
    port = int(address.rpartition(":")[2])
    client = weaviate.connect_to_local(port=port, grpc_port=free_port(), skip_init_checks=True)
    try:
        return client.collections.create(f"A{CANARY.replace('-', '')}")
    finally:
        client.close()


def test_weaviate() -> None:
    def body(message: str) -> dict[str, Any]:
        return {"error": [{"message": message}]}

    def route(status: int, reply: Any) -> Callable[[str], Reply]:
        def answer(path: str) -> Reply:
            kind = {"content-type": "application/json"}
            if path.endswith(("/meta", "/ready", "/.well-known/openid-configuration")):
                return (404 if "openid" in path else 200), json.dumps({"version": "1.30.0"}).encode(), kind
            return status, json.dumps(reply).encode(), kind

        return answer

    rows: list[tuple[int, Any, str]] = [
        (401, body("anonymous access not enabled"), "provider.auth"),
        (403, body("rbac: authorization, forbidden action"), "provider.permission"),
        (404, body("class not found"), "provider.bad_request"),
        (422, body("class name already exists"), "provider.bad_request"),
        (429, body("too many requests"), "provider.rate_limited"),
        (500, body("put object: shard: store is read-only"), "provider.unavailable"),
        (503, body("leader not found"), "provider.overloaded"),
    ]
    wrong: list[tuple[int, str, str]] = []
    for status, reply, kind in rows:
        with routing(route(status, reply)) as address:
            report = report_of(lambda at=address: by_weaviate(at))
        if report.kind != kind:
            wrong.append((status, report.kind, kind))

    assert wrong == []
    assert refused(by_weaviate)[0] == "provider.connection"


@contextmanager
def milvus_server(code: int, reason: str, *, retriable: bool = False) -> Generator[str]:
    """A Milvus over gRPC that lets a client in and answers every other call with one status."""
    grpc: Any = pytest.importorskip("grpc")
    milvus_pb2: Any = pytest.importorskip("pymilvus.grpc_gen.milvus_pb2")
    common_pb2: Any = pytest.importorskip("pymilvus.grpc_gen.common_pb2")

    def answer(method: str) -> Callable[[bytes, Any], bytes]:
        def handle(_request: bytes, _context: Any) -> bytes:
            if method in ("Connect", "GetVersion"):
                reply: Any = getattr(milvus_pb2, f"{method}Response")()
                if method == "Connect":
                    reply.server_info.build_tags = "2.6.0"
                else:
                    reply.version = "2.6.0"
                return reply.SerializeToString()
            status = common_pb2.Status(code=code, reason=reason, retriable=retriable, error_code=1)
            name = f"{method}Response"
            reply = getattr(milvus_pb2, name)(status=status) if hasattr(milvus_pb2, name) else status
            return reply.SerializeToString()

        return handle

    class Handler(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer(handler_call_details.method.rpartition("/")[2]))

    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(None)


def by_milvus(address: str) -> object:
    client = pytest.importorskip("pymilvus").MilvusClient(uri=address, timeout=2)
    try:
        return client.describe_collection(CANARY)
    finally:
        client.close()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (100, f"can't find collection[database=default][collection={CANARY}]", "provider.rejected"),
        (1100, "invalid parameter", "provider.bad_request"),
        (1400, "auth check failure, please check username and password are correct", "provider.auth"),
        (1401, "privilege not permitted", "provider.permission"),
        (9, "quota exceeded", "provider.quota_exhausted"),
        (3, "memory limit exceeded", "resource.system_memory"),
        (7, "disk limit exceeded", "resource.disk"),
        (2, "service unavailable", "provider.unavailable"),
        (65535, "something else", "provider.unknown"),
    ],
)
def test_milvus(code: int, reason: str, kind: str) -> None:
    pytest.importorskip("pymilvus")
    with milvus_server(code, reason) as address:
        report = report_of(lambda: by_milvus(address))

    assert report.kind == kind


def test_milvus_that_is_not_there() -> None:
    pytest.importorskip("pymilvus")

    report = report_of(lambda: by_milvus(f"http://127.0.0.1:{free_port()}"))

    assert (report.kind, report.certainty) == ("provider.connection", "not_sent")
