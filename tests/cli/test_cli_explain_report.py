"""`failwell explain REPORT` says why a saved failure is what it is, and what a policy makes of it."""

from pathlib import Path

import pytest

from failwell.errors.facts import NotBefore
from failwell.errors.report import Attempt, ErrorReport, Evidence
from failwell.testing.builders import make_report
from tests.cli.running import failwell

STRICT = """
name = "hasty"
[[rule]]
name = "limits once more"
match = { kind = "provider.rate_limited" }
max_attempts = 2
backoff = { curve = "fixed", first = 0.5 }
"""


def saved(tmp_path: Path, report: ErrorReport) -> str:
    file = tmp_path / "report.json"
    file.write_text(report.to_json(), encoding="utf-8")
    return str(file)


def a_policy(tmp_path: Path, text: str = STRICT) -> str:
    file = tmp_path / "policy.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def a_limit() -> ErrorReport:
    return make_report(
        evidence=(
            Evidence(rule="rate.code", basis="code", saw="rate_limit_exceeded"),
            Evidence(rule="quota.words", basis="runner_up", saw="provider.quota_exhausted"),
        )
    )


def test_a_saved_failure_is_explained_with_its_evidence_and_the_decision(tmp_path: Path) -> None:
    done = failwell("explain", saved(tmp_path, a_limit()))

    assert (done.code, done.err) == (0, "")
    for part in (
        "provider.rate_limited: Rate limited",
        "rate.code, by its code: rate_limit_exceeded",
        "quota.words would give provider.quota_exhausted",
        "Under the policy `default`",
        "decision: retrying in 5.0 s, after a back-off",
        "rule: default `rate_limit`",
        "6 calls, 5, 10, 20, 40, 80 s apart",
    ):
        assert part in done.out


def test_another_policy_is_shown_beside_the_default(tmp_path: Path) -> None:
    told = failwell("explain", saved(tmp_path, a_limit()), "--policy", a_policy(tmp_path), "--json").data

    assert told["runners_up"] == [{"rule": "quota.words", "kind": "provider.quota_exhausted"}]
    default, hasty = told["decisions"]
    assert (default["policy"], default["calls"]) == ("default", 6)
    assert hasty == {
        "policy": "hasty",
        "rule": "limits once more",
        "others": ["default `rate_limit`"],
        "decision": "retrying in 0.5 s, after a back-off",
        "calls": 2,
        "waits": [0.5],
    }


def test_a_failure_that_was_tried_before_is_judged_after_its_attempts(tmp_path: Path) -> None:
    tries = tuple(Attempt(number=number, kind="provider.rate_limited") for number in range(1, 7))

    done = failwell("explain", saved(tmp_path, make_report(attempts=tries)))

    assert "decision after 6 attempts: giving up, all 6 attempts are spent" in done.out
    assert "What was tried" in done.out


def test_a_long_told_wait_is_shown_as_parked(tmp_path: Path) -> None:
    waits = make_report(not_before=NotBefore(after=3600, source="retry-after"))

    done = failwell("explain", saved(tmp_path, waits), "--format", "markdown")

    assert "parked for 3600 s" in done.out
    assert done.out.startswith("# provider")


def test_a_call_that_may_be_repeated_is_judged_as_one(tmp_path: Path) -> None:
    file = saved(tmp_path, make_report(kind="provider.outcome_unknown"))

    assert failwell("explain", file, "--json").data["decisions"][0]["calls"] == 1
    assert failwell("explain", file, "--idempotent", "--json").data["decisions"][0]["calls"] == 3


def test_a_report_may_come_from_stdin() -> None:
    done = failwell("explain", "-", given=make_report().to_json())

    assert done.code == 0


@pytest.mark.parametrize("text", ["[[rule]]\nmax_attempts = 0", "not toml"])
def test_a_policy_that_cannot_be_used_is_refused_with_its_mistakes(tmp_path: Path, text: str) -> None:
    done = failwell("explain", saved(tmp_path, make_report()), "--policy", a_policy(tmp_path, text))

    assert done.code == 2
    assert "the policy cannot be used" in done.err


def test_a_file_that_is_not_there_is_named() -> None:
    report, policy = (
        failwell("explain", "no/such.json"),
        failwell("explain", "-", "--policy", "no/such.toml", given=make_report().to_json()),
    )

    assert (report.code, policy.code) == (2, 2)
    assert "no/such.json" in report.err
    assert "no/such.toml" in policy.err


def test_every_mistake_of_a_policy_is_on_a_line_of_its_own(tmp_path: Path) -> None:
    rules = "\n".join(
        f'[[rule]]\nmatch = {{category = "nope{number}"}}\nmax_attempts = 0' for number in range(20)
    )

    refused = failwell("explain", saved(tmp_path, a_limit()), "--policy", a_policy(tmp_path, rules))

    lines = [line for line in refused.err.splitlines() if "policy.toml:" in line]
    assert (refused.code, len(lines)) == (2, 40)
    assert lines[-1].endswith("policy.toml:60:16: `rule[19].max_attempts` must be a whole number at least 1")
