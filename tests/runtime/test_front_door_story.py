"""What the front door offers is enough for the whole way of a failure."""

import json

import failwell
from failwell import faults, reports


class OutOfStock(failwell.Fault, kind="shop.out_of_stock"):
    """The shelf is empty."""

    item: str

    def summary(self) -> str:
        return f"there is no {self.item} left"


def test_a_failure_is_raised_described_sent_revived_and_shown_through_the_front_door_alone() -> None:
    faults.register_kind(
        "shop.out_of_stock", category="user_input", title="Out of stock", model_keys=("item",)
    )
    failwell.register_secret("correct-horse")
    with reports.scene(run="r1", tool="shop"):
        try:
            raise OutOfStock(item="tea", details={"note": "ask with correct-horse"})
        except failwell.Fault as error:
            report = failwell.describe(error)

    arrived = failwell.ErrorReport.from_json(report.to_json())
    again = failwell.describe(faults.revive(arrived))

    assert again == report
    assert faults.kind(report.kind) in faults.kinds()
    assert (report.category, report.domain) == (failwell.Category.USER_INPUT, faults.Domain.INPUT)
    assert (report.scene, report.details["note"]) == (
        reports.Scene(run="r1", tool="shop"),
        "ask with [redacted]",
    )
    assert report.view("model")["context"] == {"item": "tea"}
    assert report.view("user")["message"] == "there is no tea left"
    assert json.loads(report.to_json())["schema"] == "failwell.error/1"


def test_somebody_elses_exception_goes_the_same_way() -> None:
    fault = faults.translate(ConnectionRefusedError("x"), provider="acme", model="large")

    report = failwell.describe(fault)

    assert (report.kind, report.certainty, report.blame) == (
        "provider.connection",
        failwell.Certainty.NOT_SENT,
        failwell.Blame.PROVIDER,
    )
    assert (report.provider, report.model, report.retryable) == ("acme", "large", True)
