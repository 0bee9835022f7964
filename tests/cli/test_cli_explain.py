"""`explain` and `kinds` say what follows from a kind, and find the kind behind other names."""

import pytest

from failwell.cli.exit_codes import Exit
from failwell.errors.axes import Category
from failwell.errors.explanations import explanation
from failwell.errors.kind_registry import kinds
from tests.cli.running import failwell


def test_a_kind_is_explained_with_all_that_follows_from_it() -> None:
    done = failwell("explain", "provider.rate_limited")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("provider.rate_limited: Rate limited\n")
    for part in (
        "a short usage window is full",
        "category     transient",
        "retry        yes, after a wait (policy `rate_limit`)",
        "HTTP status  429",
        "who acts     the runtime: it waits and repeats",
        "\nCause\n",
        "\nRemedy\n  1. ",
        "\nExample\n",
    ):
        assert part in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test_the_same_as_json_and_as_markdown() -> None:
    said = explanation("provider.rate_limited")
    assert said is not None

    told = failwell("explain", "provider.rate_limited", "--json").data
    page = failwell("explain", "provider.rate_limited", "--format", "markdown").out

    assert told["id"] == "provider.rate_limited"
    assert (told["cause"], told["remedy"], told["example"]) == (said.cause, said.remedy, said.example)
    assert (told["status"], told["retryable"], told["policy"]) == (429, True, "rate_limit")
    assert f"```{said.language}\n{said.example}\n```" in page
    assert "## Remedy\n\n1. " in page


def test_a_kind_without_a_retry_policy_is_not_said_to_be_repeated() -> None:
    told = failwell("explain", "resource.never_fits")
    listed = failwell("kinds", "--prefix", "resource.never_fits")

    assert "retry        no\n" in told.out
    assert " resource  never " in listed.out


@pytest.mark.parametrize(
    ("name", "system", "kind"),
    [
        ("RateLimited", "stud-cli", "provider.rate_limited"),
        ("WorkerOOMError", "cjm-substrate", "worker.oom"),
        ("provider_rate_limit", "relavium", "provider.rate_limited"),
        ("ToolTransient/ResourceBusy", "stud-cli", "tool.busy"),
    ],
)
def test_another_systems_name_is_answered_with_our_kind(name: str, system: str, kind: str) -> None:
    text, found = failwell("explain", name), failwell("explain", name, "--json").data

    assert text.code == 0
    assert f"{kind}: " in text.out
    assert f"`{name}` in " in text.out
    assert kind in [one["id"] for one in found]
    assert any(system in one["known_there_as"] for one in found)


def test_a_name_with_two_meanings_is_answered_with_both() -> None:
    done = failwell("explain", "timeout", "--json")

    assert {"provider.timeout", "internal.sandbox_timeout"} <= {one["id"] for one in done.data}


def test_every_kind_is_listed_as_an_object_with_an_id() -> None:
    listed = failwell("kinds", "--json").data

    assert [one["id"] for one in listed] == [kind.name for kind in kinds()]
    assert all(one["title"] and one["summary"] and one["status"] for one in listed)


def test_the_list_is_narrowed_by_category_and_prefix() -> None:
    by_category = failwell("kinds", "--category", "resource", "--json").data
    by_prefix = failwell("kinds", "--prefix", "worker", "--json").data
    by_both = failwell("kinds", "--prefix", "worker", "--category", "resource", "--json").data

    assert {one["category"] for one in by_category} == {"resource"}
    assert {one["id"].partition(".")[0] for one in by_prefix} == {"worker"}
    assert [one["id"] for one in by_both] == ["worker.oom"]


def test_a_prefix_may_end_inside_a_word_only_after_its_dot() -> None:
    inside = failwell("kinds", "--prefix", "provider.ra", "--json").data
    half = failwell("kinds", "--prefix", "pro", "--json")

    assert [one["id"] for one in inside] == ["provider.rate_limited"]
    assert half.code == Exit.INVALID_USAGE


def test_nothing_under_a_prefix_is_a_mistake_and_an_empty_cut_is_not() -> None:
    unknown = failwell("kinds", "--prefix", "provdier", "--error-format", "json")
    empty = failwell("kinds", "--prefix", "halt", "--category", "transient", "--json")

    assert (unknown.code, unknown.error["near"]) == (Exit.INVALID_USAGE, "provider")
    assert (empty.code, empty.data) == (0, [])


def test_the_table_lines_up_and_the_markdown_has_as_many_columns_as_its_head() -> None:
    table = failwell("kinds").out.splitlines()
    page = failwell("kinds", "--format", "markdown").out.splitlines()

    start = table[0].index("category")
    words = {line[start:].split()[0] for line in table[1:]}
    assert words <= {category.value for category in Category}
    assert len(table) == len(kinds()) + 1
    assert {line.count(" |") for line in page} == {5}
