"""elasticsearch-py and opensearch-py against a loopback server: the error type in the body decides."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from failwell import ErrorReport, describe
from tests.adapters.raisers import CANARY, caught
from tests.sdks.stores.dialects import answering, speaking
from tests.sdks.stores.servers import free_port

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

elasticsearch: Any = pytest.importorskip("elasticsearch")
opensearchpy: Any = pytest.importorskip("opensearchpy")


def report_of(run: Callable[[], object]) -> ErrorReport:
    report = describe(caught(run))
    assert CANARY not in report.to_json()
    return report


def by_elasticsearch(address: str) -> None:
    with elasticsearch.Elasticsearch(
        address, max_retries=0, retry_on_timeout=False, request_timeout=1
    ) as client:
        client.search(index=CANARY, query={"match_all": {}})


def by_opensearch(address: str) -> None:
    client = opensearchpy.OpenSearch(address, max_retries=0, retry_on_timeout=False, timeout=1)
    try:
        client.search(index=CANARY, body={"query": {"match_all": {}}})
    finally:
        client.close()


CLIENTS: dict[str, Callable[[str], None]] = {"elasticsearch": by_elasticsearch, "opensearch": by_opensearch}
PRODUCT = {"x-elastic-product": "Elasticsearch"}


def _body(name: str, reason: str, status: int) -> dict[str, Any]:
    cause = {"type": name, "reason": reason, "index": CANARY}
    return {"error": {"root_cause": [cause], **cause}, "status": status}


ROWS: list[tuple[int, str, str, str]] = [
    (400, "parsing_exception", "unknown query [x]", "provider.bad_request"),
    (400, "mapper_parsing_exception", "failed to parse field [age]", "provider.bad_request"),
    (401, "security_exception", "unable to authenticate user [x] for REST request", "provider.auth"),
    (403, "security_exception", "action [indices:data/read/search] is unauthorized for user [x]", "provider.permission"),
    (403, "cluster_block_exception", "blocked by: [FORBIDDEN/8/index write (api)];", "provider.rejected"),
    (404, "index_not_found_exception", f"no such index [{CANARY}]", "provider.rejected"),
    (409, "version_conflict_engine_exception", "[1]: version conflict", "tool.busy"),
    (429, "circuit_breaking_exception", "[parent] Data too large", "provider.overloaded"),
    (429, "es_rejected_execution_exception", "rejected execution of coordinating operation", "provider.overloaded"),
    (429, "cluster_block_exception", "blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark];", "resource.disk"),
    (503, "cluster_block_exception", "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];", "provider.unavailable"),
    (503, "master_not_discovered_exception", "", "provider.unavailable"),
    (500, "something_new_exception", "", "provider.unavailable"),
]  # fmt: skip


@pytest.mark.parametrize("name", CLIENTS)
def test_an_error_type_decides(name: str) -> None:
    wrong: list[tuple[str, str, str]] = []
    for status, kind_of_error, reason, kind in ROWS:
        with answering(status, _body(kind_of_error, reason, status), PRODUCT) as address:
            report = report_of(lambda at=address: CLIENTS[name](at))
        if report.kind != kind:
            wrong.append((kind_of_error, report.kind, kind))

    assert wrong == []


def _stay_silent(line: socket.socket) -> None:
    line.recv(65_536)
    line.recv(1)


def _hang_up(line: socket.socket) -> None:
    line.recv(65_536)


@pytest.mark.parametrize("name", CLIENTS)
def test_nobody_listens_nobody_answers_and_somebody_hangs_up(name: str) -> None:
    refused = report_of(lambda: CLIENTS[name](f"http://127.0.0.1:{free_port()}"))
    with speaking(_stay_silent) as port:
        late = report_of(lambda: CLIENTS[name](f"http://127.0.0.1:{port}"))
    with speaking(_hang_up) as port:
        lost = report_of(lambda: CLIENTS[name](f"http://127.0.0.1:{port}"))

    assert (refused.kind, refused.certainty) == ("provider.connection", "not_sent")
    assert (late.kind, late.certainty) == ("provider.outcome_unknown", "unknown")
    assert (lost.kind, lost.certainty) == ("provider.outcome_unknown", "unknown")


def test_a_server_that_is_no_elasticsearch() -> None:
    with answering(200, {"tagline": "something else"}) as address:
        report = report_of(lambda: by_elasticsearch(address))

    assert (report.kind, report.category) == ("validation.config_invalid", "configuration")
