"""Policies as files: read whole, and every mistake named with its key."""

from pathlib import Path
from typing import Any

import pytest

import failwell
from failwell.calls.backoff import Backoff
from failwell.calls.budget import NO_BUDGET, Budget
from failwell.calls.policy import Match, Policy, Rule, Schedule
from failwell.errors.axes import Blame, Category, Certainty
from failwell.errors.faults import Validation
from failwell.files import read_policy
from tests.specimens import each

PATIENT = """
name = "patient"
in_process_limit = 90

[budget]
attempts = 10
seconds = 120.5
usd = 0.01

[[rule]]
name = "rate limits"
match = { kind = ["provider.rate_limited", "tool."], category = "transient", status = [429, 503] }
max_attempts = 4
backoff = { curve = "linear", first = 2, longest = 30, jitter = 0.1 }

[[rule]]
match = { certainty = "unknown", blame = ["account", "model"] }
retryable = false

[[rule]]
schedule = "store"
"""


def refusal(data: Any) -> list[str]:
    with pytest.raises(Validation) as refused:
        read_policy(data)
    assert refused.value.fields_invalid is not None
    return refused.value.fields_invalid


def test_a_policy_reads_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(PATIENT, encoding="utf-8")

    policy = read_policy(str(file))

    assert policy == Policy(
        name="patient",
        in_process_limit=90,
        budget=Budget(attempts=10, seconds=120.5, usd=0.01),
        rules=(
            Rule(
                name="rate limits",
                match=Match(
                    kinds=frozenset({"provider.rate_limited"}),
                    prefixes=("tool.",),
                    categories=frozenset({Category.TRANSIENT}),
                    statuses=frozenset({429, 503}),
                ),
                schedule=Schedule(
                    max_attempts=4, backoff=Backoff(curve="linear", first=2, longest=30, jitter=0.1)
                ),
            ),
            Rule(
                match=Match(
                    certainties=frozenset({Certainty.UNKNOWN}), blames=frozenset({Blame.ACCOUNT, Blame.MODEL})
                ),
                retryable=False,
            ),
            Rule(
                match=Match(), schedule=Schedule(max_attempts=3, backoff=Backoff(curve="linear", first=2.0))
            ),
        ),
    )


def test_an_empty_policy_is_the_default_one() -> None:
    policy = read_policy({})

    assert policy == Policy()
    assert policy.budget is NO_BUDGET


@each(
    ("data", "key"),
    [
        ({"nmae": "x"}, "nmae"),
        ({"name": 3}, "name"),
        ({"in_process_limit": -1}, "in_process_limit"),
        ({"in_process_limit": True}, "in_process_limit"),
        ({"budget": 5}, "budget"),
        ({"budget": {"attempts": -1}}, "budget.attempts"),
        ({"budget": {"attempts": 1.5}}, "budget.attempts"),
        ({"budget": {"seconds": float("nan")}}, "budget.seconds"),
        ({"budget": {"money": 1}}, "budget.money"),
        ({"rule": {"name": "x"}}, "rule"),
        ({"rule": ["x"]}, "rule[0]"),
        ({"rule": [{"max_attempts": 0}]}, "rule[0].max_attempts"),
        ({"rule": [{"retryable": "yes"}]}, "rule[0].retryable"),
        ({"rule": [{"schedule": "never"}]}, "rule[0].schedule"),
        ({"rule": [{"backoff": {"curve": "wavy"}}]}, "rule[0].backoff.curve"),
        ({"rule": [{"backoff": {"jitter": 2}}]}, "rule[0].backoff.jitter"),
        ({"rule": [{"backoff": {"wait": 2}}]}, "rule[0].backoff.wait"),
        ({"rule": [{"match": {"kind": "Rate Limited"}}]}, "rule[0].match.kind"),
        ({"rule": [{"match": {"kind": [3]}}]}, "rule[0].match.kind"),
        ({"rule": [{"match": {"category": "sometimes"}}]}, "rule[0].match.category"),
        ({"rule": [{"match": {"certainty": "sure"}}]}, "rule[0].match.certainty"),
        ({"rule": [{"match": {"blame": "you"}}]}, "rule[0].match.blame"),
        ({"rule": [{"match": {"status": 42}}]}, "rule[0].match.status"),
        ({"rule": [{"match": {"color": "red"}}]}, "rule[0].match.color"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_named_with_its_key(data: dict[str, Any], key: str) -> None:
    assert refusal(data) == [key]


def test_all_mistakes_are_named_at_once() -> None:
    wrong = {
        "nmae": "x",
        "budget": {"usd": "much"},
        "rule": [{}, {"match": {"blame": "you"}, "max_attempts": 0}],
    }

    assert refusal(wrong) == ["nmae", "budget.usd", "rule[1].match.blame", "rule[1].max_attempts"]


def test_a_policy_may_be_written_in_yaml(tmp_path: Path) -> None:
    written = "name: patient\nin_process_limit: 90\nrule:\n  - name: shy\n    match: {kind: provider.rate_limited}\n    max_attempts: 2\n"
    file = tmp_path / "policy.yaml"
    file.write_text(written, encoding="utf-8")

    policy = read_policy(str(file))

    assert (policy.name, policy.in_process_limit, len(policy.rules)) == ("patient", 90, 1)
    assert policy == read_policy(
        {
            "name": "patient",
            "in_process_limit": 90,
            "rule": [{"name": "shy", "match": {"kind": "provider.rate_limited"}, "max_attempts": 2}],
        }
    )


@pytest.mark.parametrize("content", [b"name: [", b"- a\n- b\n", b"a: !!python/object:os.system {}"])
def test_a_yaml_file_that_is_no_policy_is_refused_without_quoting_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "policy.yml"
    file.write_bytes(content)

    with pytest.raises(Validation) as refused:
        read_policy(str(file))

    assert failwell.describe(refused.value).kind == "validation.config_invalid"
    assert "os.system" not in str(refused.value)


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe"])
def test_a_file_that_is_no_policy_is_a_mistake_in_the_configuration(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes(content)

    with pytest.raises(Validation) as refused:
        read_policy(str(file))

    assert failwell.describe(refused.value).kind == "validation.config_invalid"


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        (
            "policy.toml",
            'nmae = "x"\n\n[[rule]]\nmatch = { blame = "you" }\nmax_attempts = 0\n',
            ["1:1", "4:19", "5:16"],
        ),
        (
            "policy.yaml",
            "nmae: x\nrule:\n  - match: {blame: you}\n    max_attempts: 0\n",
            ["1:1", "3:20", "4:19"],
        ),
    ],
)
def test_every_mistake_of_a_file_is_named_with_its_place(
    tmp_path: Path, name: str, text: str, places: list[str]
) -> None:
    file = tmp_path / name
    file.write_text(text)

    with pytest.raises(Validation) as refused:
        read_policy(str(file))

    assert str(refused.value).startswith("the policy cannot be used: ")
    assert [f"{file}:{place}: " in str(refused.value) for place in places] == [True, True, True]
    assert "a policy has no key `nmae` (did you mean `name`?)" in str(refused.value)
    assert "`rule[0].max_attempts` must be a whole number at least 1" in str(refused.value)
    assert refused.value.fields_invalid == ["nmae", "rule[0].match.blame", "rule[0].max_attempts"]


def test_yaml_is_read_as_workflow_files_are(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("name: no\nname: on\nin_process_limit: 0x10\n")

    with pytest.raises(Validation) as refused:
        read_policy(str(file))

    assert "the key `name` is written twice" in str(refused.value)
    assert "`in_process_limit` must be a number" in str(refused.value)
