"""Looking rows up by code, class and word gives what reading the table from top to bottom gives."""

from itertools import chain

from hypothesis import example, given
from hypothesis import strategies as st

from failwell.adapters import word_index
from failwell.adapters.classify import rules_for
from failwell.adapters.facts import Facts
from failwell.adapters.rules import CLASSES, CODES, DECISIVE, IMPLIED_STATUS, LADDER, WORDS, Rule
from failwell.fault.registry import kind

KNOWN = sorted({*IMPLIED_STATUS, *chain.from_iterable(rule.codes for rule in (*CODES, *CLASSES))})
SPOKEN = sorted(set(chain.from_iterable(rule.words for rule in (*CODES, *WORDS))))
SENTENCES = [
    "This would exceed your organization's monthly spend limit.", "Limit 200, Used 200", "limit: 0",
    "maximum context length is 8192 tokens", "the model `x` does not exist", "is not supported by this model",
    "Incorrect API key provided", "you have been blocked", "Please try again in 5s", "<body>500</body>",
]  # fmt: skip

codes = st.lists(st.sampled_from([*KNOWN, "429", "503", "200", "nobody_knows", ""]), max_size=3).map(tuple)
texts = st.lists(
    st.one_of(
        st.sampled_from(SPOKEN),
        st.sampled_from([word.upper() for word in SPOKEN]),
        st.sampled_from(SENTENCES),
        st.text(max_size=12),
    ),
    max_size=6,
).flatmap(lambda parts: st.sampled_from(["", " ", "\n", "\u00a0", ", "]).map(lambda gap: gap.join(parts)))


def fits(rule: Rule, low: str) -> bool:
    if rule.pattern is not None and not (
        any(word in low for word in rule.words) and rule.pattern.search(low)
    ):
        return False
    return rule.unless is None or rule.unless.search(low) is None


def implied(names: tuple[str, ...]) -> int | None:
    for name in names:
        if name in IMPLIED_STATUS:
            return IMPLIED_STATUS[name]
        if name.isdecimal() and 400 <= int(name) < 600:
            return int(name)
    return None


def from_top_to_bottom(found: Facts) -> list[Rule]:
    """The table as it is written, for a reply whose status is a row of the ladder."""
    low = found.message.lower()
    telling = found.names
    if found.status is not None:
        telling = tuple(name for name in found.names if name not in IMPLIED_STATUS)
    named = {*found.codes, *telling}
    fitting = [rule for rule in CODES if rule.codes & named and fits(rule, low)]
    fitting += [rule for rule in CLASSES if rule.codes & set(telling)]
    status = implied((*found.codes, *found.names)) if found.status is None else found.status
    by_status = [rule for rule in (*DECISIVE, *LADDER) if status in rule.statuses][:1]
    if not fitting and not (by_status and by_status[0] in DECISIVE):
        fitting = [rule for rule in WORDS if fits(rule, low)][:1] if low else []
        if found.status is not None:
            fitting = [rule for rule in fitting if rule.kind != "internal.bug"]
    if status in (401, 403):
        # Words never make these repeatable or a matter of length, and at a 401 no code does either.
        long = "provider.context_too_long"
        weak = [rule for rule in fitting if kind(rule.kind).category.retryable or rule.kind == long]
        weak = weak if status == 401 else [rule for rule in weak if rule.basis != "code"]
        if status == 401:
            weak += [rule for rule in fitting if rule.kind == "provider.content_refused"]
        fitting = [rule for rule in fitting if rule not in weak]
    fitting += [rule for rule in by_status if rule not in fitting]
    return [fitting[0], *[rule for rule in fitting if rule.kind != fitting[0].kind][:3]]


@given(
    codes,
    codes,
    texts,
    st.sampled_from([None, 400, 401, 402, 403, 408, 413, 422, 429, 500, 503, 504, 529]),
)
@example(("rate_limit_exceeded",), (), "Limit 0, requests per day", 429)
def test_a_row_is_found_as_if_every_row_were_tried(
    said_codes: tuple[str, ...], names: tuple[str, ...], message: str, status: int | None
) -> None:
    found = Facts(status=status, codes=said_codes, names=names, message=message)
    if status is None and implied((*said_codes, *names)) in (None, 404):
        return

    assert rules_for(found) == from_top_to_bottom(found)


@given(st.lists(texts, min_size=1, max_size=4))
def test_words_are_found_whatever_texts_came_before(messages: list[str]) -> None:
    for message in messages:
        low = message.lower()

        assert word_index.first_match(low) is next((rule for rule in WORDS if fits(rule, low)), None)


def test_a_text_of_many_new_words_is_still_read() -> None:
    unheard = " ".join(f"x{'y' * n}z" for n in range(200))

    found = word_index.first_match(f"{unheard} model not found {unheard}")

    assert found is not None
    assert found.kind == "provider.model_not_found"


def test_what_is_remembered_of_texts_is_bounded_and_holds_no_ids() -> None:
    for n in range(6_000):
        word = "".join(chr(97 + int(digit)) for digit in str(n))
        word_index.first_match(f"{word} q{word} key-{n:08x}-4f9a {'long' * 9}")

    kept = word_index.remembered()
    assert 0 < len(kept) <= 4_096
    assert not [piece for piece in kept if len(piece) > 24 or sum(map(str.isdigit, piece)) > 3]
