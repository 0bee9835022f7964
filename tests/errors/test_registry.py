"""The registry: one meaning for each kind, and no author under the runtime's prefixes."""

import pytest

from failwell import errors
from failwell.errors.axes import ActionKind, Blame, Category, Certainty
from failwell.errors.kind_registry import (
    LONGEST_KIND,
    OWNED_PREFIXES,
    KindError,
    find_kind,
    is_kind,
    is_owned,
    kind,
    kinds,
    near_kinds,
    register_kind,
)
from failwell.errors.kinds_table import CATALOGUE


def test_every_kind_of_the_runtime_lies_under_a_prefix_of_its_own() -> None:
    assert [made.name for made in CATALOGUE if not is_owned(made.name) or not made.owned] == []


def test_every_owned_prefix_has_a_kind() -> None:
    used = {f"{made.name.split('.')[0]}." for made in CATALOGUE}

    assert used == set(OWNED_PREFIXES)


def test_kinds_are_listed_by_name_and_include_the_whole_catalogue() -> None:
    listed = [made.name for made in kinds()]

    assert listed == sorted(listed)
    assert {made.name for made in CATALOGUE} <= set(listed)


def test_every_kind_has_words_for_people() -> None:
    silent = [
        made.name
        for made in CATALOGUE
        if not made.title
        or not made.summary.endswith(".")
        or not made.advice.endswith(".")
        or made.title.endswith(".")
    ]

    assert silent == []


@pytest.mark.parametrize("name", ["external.git.drift", "a.b", "_a._b", "a1.b2.c3"])
def test_a_kind_is_lower_case_words_joined_by_dots(name: str) -> None:
    assert is_kind(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "alone",
        "a.",
        ".b",
        "a..b",
        "A.b",
        "a.B",
        "a b.c",
        "1a.b",
        "a.1b",
        "a.b\n",
        "a-b.c",
        "ä.b",
        None,
        7,
    ],
)
def test_anything_else_is_not_a_kind(name: object) -> None:
    assert not is_kind(name)


def test_a_kind_is_bounded() -> None:
    assert is_kind("a." + "b" * (LONGEST_KIND - 2))
    assert not is_kind("a." + "b" * (LONGEST_KIND - 1))


def test_an_unregistered_kind_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(KindError, match=r"no kind is called 'provider.rate_limit'.*`provider\.rate_limited`"):
        kind("provider.rate_limit")


def test_a_kind_with_the_right_last_word_is_found_under_another_prefix() -> None:
    assert "provider.rate_limited" in near_kinds("zzzz.rate_limited")
    assert near_kinds("provider.rate") == ["provider.rate_limited"]


def test_nothing_is_suggested_for_a_name_that_is_like_no_other() -> None:
    with pytest.raises(KindError, match=r"'qq\.xyzzy'$"):
        kind("qq.xyzzy")


def test_an_unknown_kind_can_be_looked_up_without_an_error() -> None:
    assert find_kind("nobody.registered_this") is None


def test_an_authors_kind_gets_what_follows_from_its_category() -> None:
    made = errors.register_kind("registry_test.flaky_line", category="transient")

    assert made.category is Category.TRANSIENT
    assert (made.status, made.resubmit, made.policy, made.owned) == (503, True, "server", False)
    assert (made.certainty, made.blame, made.action) == (
        Certainty.UNKNOWN,
        Blame.WORKFLOW,
        ActionKind.UNKNOWN,
    )
    assert (made.title, made.summary) == ("Flaky line", "The work reported flaky line.")
    assert errors.kind("registry_test.flaky_line") is made


def test_an_authors_kind_keeps_the_words_it_was_given() -> None:
    made = register_kind(
        "registry_test.drift",
        category=Category.CONFIGURATION,
        certainty="not_sent",
        blame="host",
        title="Repository drifted",
        summary="The working copy is not what was recorded.",
        action="fix_configuration",
        advice="Check out the recorded commit.",
        policy="none",
        model_keys=("commit",),
    )

    assert (made.title, made.advice) == ("Repository drifted", "Check out the recorded commit.")
    assert (made.certainty, made.blame, made.model_keys) == (Certainty.NOT_SENT, Blame.HOST, ("commit",))
    assert made in kinds()


def test_the_same_registration_twice_is_harmless() -> None:
    first = register_kind("registry_test.twice", category="content")

    assert register_kind("registry_test.twice", category="content") == first


def test_a_second_meaning_for_a_taken_name_is_refused() -> None:
    register_kind("registry_test.taken", category="content")

    with pytest.raises(KindError, match=r"`registry_test\.taken` is already registered .*content"):
        register_kind("registry_test.taken", category="fatal")

    assert kind("registry_test.taken").category is Category.CONTENT


@pytest.mark.parametrize("prefix", OWNED_PREFIXES)
def test_the_runtimes_prefixes_are_refused_with_a_suggestion(prefix: str) -> None:
    with pytest.raises(KindError, match=r"belongs to the runtime.*`external\.my_own`"):
        register_kind(f"{prefix}my_own", category="fatal")


def test_a_malformed_name_is_refused_with_an_example() -> None:
    with pytest.raises(KindError, match=r"'Not a kind' is not a kind.*`external\.git\.drift`"):
        register_kind("Not a kind", category="fatal")


def test_a_category_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="flaky"):
        register_kind("registry_test.odd", category="flaky")

    assert find_kind("registry_test.odd") is None
