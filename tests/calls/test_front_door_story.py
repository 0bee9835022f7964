"""What the front door offers is enough for the whole way of a failure."""

import json

import failwell
from failwell import adapters, errors
from failwell.errors import Blame, Certainty


class OutOfStock(failwell.Fault, kind="shop.out_of_stock"):
    """The shelf is empty."""

    item: str

    def summary(self) -> str:
        return f"there is no {self.item} left"


def test_a_failure_is_raised_described_sent_revived_and_shown_through_the_front_door_alone() -> None:
    errors.register_kind(
        "shop.out_of_stock", category="user_input", title="Out of stock", model_keys=("item",)
    )
    failwell.register_secret("correct-horse")
    with errors.scene(run="r1", tool="shop"):
        try:
            raise OutOfStock(item="tea", details={"note": "ask with correct-horse"})
        except failwell.Fault as error:
            report = failwell.describe(error)

    arrived = failwell.ErrorReport.from_json(report.to_json())
    again = failwell.describe(adapters.revive(arrived))

    assert again == report
    assert errors.kind(report.kind) in errors.kinds()
    assert (report.category, report.domain) == (failwell.Category.USER_INPUT, errors.Domain.INPUT)
    assert (report.scene, report.details["note"]) == (
        errors.Scene(run="r1", tool="shop"),
        "ask with [redacted]",
    )
    assert report.view("model")["context"] == {"item": "tea"}
    assert report.view("user")["message"] == "there is no tea left"
    assert json.loads(report.to_json())["schema"] == "failwell.error/1"


def test_somebody_elses_exception_goes_the_same_way() -> None:
    fault = adapters.translate(ConnectionRefusedError("x"), provider="acme", model="large")

    report = failwell.describe(fault)

    assert (report.kind, report.certainty, report.blame) == (
        "provider.connection",
        Certainty.NOT_SENT,
        Blame.PROVIDER,
    )
    assert (report.provider, report.model, report.retryable) == ("acme", "large", True)
