"""Webhooks: the caller's payload beside ours, and never in our place."""

import pytest

from failwell.adapters.describe import describe
from failwell.delivery.webhook import RESERVED, ReservedKey, check_payload, failure_payload
from tests.delivery.builders import a_full_report


def test_a_failed_run_is_told_beside_the_callers_own_payload() -> None:
    report = a_full_report()

    told = failure_payload(report, run_id="r1", payload={"order": 17}, result_url="https://x/r1")

    assert told == {
        "order": 17,
        "run_id": "r1",
        "status": "failed",
        "state": "failed",
        "result_url": "https://x/r1",
        "error": report.view("user"),
    }


def test_without_a_report_there_is_no_error_key() -> None:
    assert failure_payload(None, run_id="r1") == {"run_id": "r1", "status": "failed", "state": "failed"}


def test_an_operators_webhook_is_told_everything() -> None:
    report = a_full_report()

    assert failure_payload(report, run_id="r1", audience="operator")["error"] == report.view("operator")


@pytest.mark.acceptance("pipelex 68")
@pytest.mark.parametrize("key", RESERVED)
def test_a_payload_with_a_reserved_key_is_refused_when_it_is_built(key: str) -> None:
    with pytest.raises(ReservedKey) as caught:
        failure_payload(a_full_report(), run_id="r1", payload={"order": 17, key: None})

    assert f"`{key}`" in str(caught.value)
    assert caught.value.fields_invalid == [key]
    assert describe(caught.value).http_status == 422


@pytest.mark.acceptance("pipelex 68")
def test_a_webhook_can_be_refused_before_any_run() -> None:
    check_payload({"order": 17})

    with pytest.raises(ReservedKey, match="`status`, `error`"):
        check_payload({"error": 1, "status": 2})
