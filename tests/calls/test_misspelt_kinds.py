"""Kinds that are spelled wrong are refused where they are written, with the nearest ones."""

import pickle
import re
from pathlib import Path

import pytest

import failwell
from failwell import ErrorReport, Fault, Policy, retry, retrying
from failwell.adapters.revival import revive
from failwell.calls.policy import Match, Rule
from failwell.errors.faults import Validation
from failwell.errors.kind_registry import KINDS, OWNED_PREFIXES, KindError, register_kind
from failwell.files import read_policy
from failwell.testing.builders import make_report

MISTAKES = {
    "provider.rate_limitd": "did you mean `provider.rate_limited`",
    "provider.nothing_like_it": "no kind is called",
    "providr.rate_limited": "did you mean `provider.rate_limited`",
    "tools.failed": "did you mean `tool.failed`",
    "provider": "did you mean `provider.`",
    "Provider.Rate_Limited": "is not a kind",
    "rate limited": "is not a kind",
}
PREFIXES = {
    "providr.": "did you mean `provider.`",
    "provider.rate.": "no kind begins with",
    "Provider.": "not the beginning of kinds",
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_misspelt_kind_is_refused_at_once(kind: str) -> None:
    for use in (
        lambda: retry(on=kind),
        lambda: retrying(on=kind),
        lambda: retry(on=Match(kinds=frozenset({kind}))),
        lambda: Match.of(kind),
        lambda: Policy(rules=(Rule(match=Match(kinds=frozenset({kind}))),)),
        lambda: Fault(kind=kind),
        lambda: type("Broken", (Fault,), {}, kind=kind),
    ):
        with pytest.raises(KindError, match=MISTAKES[kind]):
            use()


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_misspelt_prefix_is_refused_at_once(prefix: str) -> None:
    for use in (lambda: retry(on=prefix), lambda: Rule(match=Match(prefixes=(prefix,)))):
        with pytest.raises(KindError, match=PREFIXES[prefix]):
            use()


@pytest.mark.parametrize("kind", ["provider.rate_limitd", "providr.rate_limited", "providr."])
def test_a_policy_file_names_the_place_and_the_nearest_kind(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "retries.toml"
    file.write_text(f'[[rule]]\nmatch = {{ kind = "{kind}" }}\nretryable = false\n')

    with pytest.raises(Validation) as refused:
        read_policy(str(file))

    assert refused.value.fields_invalid == ["rule[0].match.kind"]
    assert "retries.toml:2:" in str(refused.value)
    assert "did you mean `provider." in str(refused.value)


def test_kinds_of_your_own_may_be_registered_later() -> None:
    retry(on="acme.billing.declined")
    retry(on="acme.billing.")
    error = Fault(kind="acme.billing.declined")

    assert failwell.describe(error).kind == "acme.billing.declined"


def test_a_kind_of_your_own_that_looks_like_one_of_the_runtime_is_accepted_once_registered() -> None:
    with pytest.raises(KindError, match="register it first with `register_kind`"):
        Fault(kind="workers.crashed")

    register_kind("workers.crashed", category="transient")

    assert failwell.describe(Fault(kind="workers.crashed")).retryable
    assert Match.of("workers.crashed").names("workers.crashed")


def test_kinds_of_a_newer_peer_stay_readable() -> None:
    newer = ErrorReport.read({**make_report().to_dict(), "kind": "provider.brand_new"})

    revived = revive(newer)

    assert failwell.describe(revived).kind == "provider.brand_new"
    assert failwell.describe(pickle.loads(pickle.dumps(revived))).kind == "provider.brand_new"


def test_every_suggestion_is_a_kind_or_a_prefix() -> None:
    for kind in (
        "provider.",
        "internal.bug ",
        " internal.bug",
        "provider..overloaded",
        "Provider.Overloaded",
        "tool.failed.",
    ):
        with pytest.raises(KindError) as refused:
            Fault(kind=kind)
        message = str(refused.value)
        suggestions = re.findall("`([^`]*)`", message.partition("did you mean")[2])
        assert all(name in KINDS or name in OWNED_PREFIXES for name in suggestions), message
    for kind, suggestion in {
        "internal.bug ": "internal.bug",
        "Provider.Overloaded": "provider.overloaded",
    }.items():
        with pytest.raises(KindError, match=f"did you mean `{suggestion}`"):
            Match.of(kind)
