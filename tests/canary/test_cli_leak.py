"""What somebody pastes into the command comes out without its secrets."""

import json
import traceback

import pytest

from failwell.adapters.log_records.pasted import describe_pasted
from tests.canary.canaries import BODY, REGISTERED, SAID, SECRETS, VARIABLES, all_secrets, leaks
from tests.canary.carriers import CARRIERS
from tests.cli.running import environment, failwell

ENVIRONMENT = environment(**VARIABLES, APP_PASSWORD=REGISTERED.secret)
PASTED = ("openai_status", "plain_arguments", "caused", "grouped", "noted", "from_source", "file_error")
REPLY = f"""HTTP/1.1 400 Bad Request
x-request-id: req_1
set-cookie: sid=abcdefgh1234
authorization: Bearer {all_secrets().splitlines()[0]}
content-type: application/json

{json.dumps({"error": {"message": BODY + all_secrets(), "code": "bad_request"}})}
"""


def printed(carrier: str) -> str:
    """The traceback as Python prints it, with everything in it."""
    error = CARRIERS[carrier]()
    try:
        raise error
    except BaseException as caught:
        return "".join(traceback.format_exception(caught))


@pytest.mark.parametrize("view", ["user", "model", "operator", "audit"])
@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_pasted_traceback_comes_out_without_its_secrets(form: str, view: str) -> None:
    for carrier in PASTED:
        pasted = printed(carrier)
        assert carrier == "noted" or leaks(pasted, said=True)

        done = failwell("describe", "--view", view, "--format", form, given=pasted, env=ENVIRONMENT)

        assert done.code == 0, done.err
        assert leaks(done.out + done.err, carried=False, said=view in ("user", "model")) == []


@pytest.mark.parametrize("view", ["user", "model", "operator", "audit"])
def test_a_pasted_reply_comes_out_without_its_prose_and_its_secrets(view: str) -> None:
    done = failwell(
        "describe", "--as", "reply", "--view", view, "--format", "json", given=REPLY, env=ENVIRONMENT
    )

    assert done.code == 0, done.err
    assert leaks(done.out + done.err, said=True) == []


@pytest.mark.parametrize(
    "arguments", [[], ["--format", "json"], ["--error-format", "markdown"], ["--traceback"]]
)
def test_what_cannot_be_described_is_not_quoted_in_the_refusal(arguments: list[str]) -> None:
    done = failwell("describe", *arguments, given=f"{SAID}\n{all_secrets()}", env=ENVIRONMENT)

    assert done.code != 0
    assert leaks(done.out + done.err, said=True) == []


@pytest.mark.parametrize("shift", range(0, 60, 7))
def test_a_traceback_that_is_longer_than_what_is_kept_is_not_cut_through_a_secret(
    shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*next(iter(VARIABLES.items())))
    secret = next(iter(VARIABLES.values()))
    text = "x" * 30_000 + f" {secret} " + "y" * (11_970 + shift) + "\nValueError: end\n"

    internal = describe_pasted(text, policy="full").internal

    assert internal is not None
    assert leaks(internal.traceback or "") == []
    assert len(internal.traceback or "") <= 12_000
    assert (internal.traceback or "").endswith("ValueError: end")


def test_a_token_that_is_spelled_like_the_name_of_an_exception_is_not_taken_for_one() -> None:
    token = next(canary for canary in SECRETS if canary.name == "token sk_live_").text

    report = describe_pasted(f"Traceback (most recent call last):\n{token}: refused\n", policy="full")

    assert leaks(report.to_json()) == []
    assert report.error_type == "Exception"
