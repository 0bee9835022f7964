"""The axes: what follows from a category is written once and cannot be contradicted."""

import pytest

from failwell.errors.axes import Blame, Category, Certainty, Domain, Repeat

JOB_WORDS = {
    "user_input": {"user_input", "content", "configuration", "denied", "limit"},
    "transient": {"transient", "ambiguous", "capacity", "cancelled"},
    "resource": {"resource"},
    "fatal": {"fatal", "unknown"},
}
DOMAINS = {
    Domain.INPUT: {"content", "user_input", "denied"},
    Domain.CONFIG: {"configuration"},
    Domain.RUNTIME: {
        "transient",
        "resource",
        "ambiguous",
        "capacity",
        "limit",
        "cancelled",
        "fatal",
        "unknown",
    },
}
STATUSES = {
    "transient": 503,
    "resource": 503,
    "ambiguous": 502,
    "capacity": 503,
    "configuration": 500,
    "content": 422,
    "user_input": 422,
    "denied": 403,
    "limit": 409,
    "cancelled": 409,
    "fatal": 500,
    "unknown": 500,
}


def test_only_a_transient_failure_is_retryable() -> None:
    assert [category for category in Category if category.retryable] == [Category.TRANSIENT]


@pytest.mark.parametrize(
    ("category", "condition"),
    [
        ("transient", Repeat.AFTER_WAITING),
        ("resource", Repeat.AFTER_FREEING),
        ("ambiguous", Repeat.AFTER_CHECKING),
    ],
)
def test_three_categories_name_what_a_repeat_waits_for(category: str, condition: Repeat) -> None:
    assert Category(category).repeat is condition


def test_every_other_category_is_never_repeated() -> None:
    never = {str(category) for category in Category if category.repeat is Repeat.NEVER}

    assert never == {str(c) for c in Category} - {"transient", "resource", "ambiguous"}


@pytest.mark.parametrize(("word", "categories"), JOB_WORDS.items())
def test_the_twelve_categories_project_onto_the_four_words_of_a_job(word: str, categories: set[str]) -> None:
    assert {str(category) for category in Category if category.job == word} == categories


@pytest.mark.parametrize(("domain", "categories"), DOMAINS.items())
def test_the_domain_follows_from_the_category(domain: Domain, categories: set[str]) -> None:
    assert {str(category) for category in Category if category.domain is domain} == categories


def test_the_status_follows_from_the_category() -> None:
    assert {str(category): category.status for category in Category} == STATUSES


def test_only_the_hopeless_may_not_be_handed_in_again() -> None:
    assert {category for category in Category if not category.resubmit} == {Category.FATAL, Category.UNKNOWN}


@pytest.mark.parametrize("axis", [Category, Certainty, Blame, Domain])
def test_the_words_of_every_axis_are_plain_lower_case(axis: type[Category]) -> None:
    assert [member for member in axis if not member.isidentifier() or member != member.lower()] == []
