"""Bounded in size and in time, and without a seam at the edge through which a secret could slip."""

import string
import time
from collections.abc import Callable
from datetime import date, datetime
from enum import Enum, IntEnum
from pathlib import PurePosixPath
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import failwell
from failwell import errors
from failwell.capability import TracebackPolicy
from failwell.errors import NotBefore
from failwell.errors.redact import MARK, TEXT_CAP, cut, mask_known, redact_text, redact_value
from failwell.testing.builders import make_fault
from tests.specimens import each

TOKEN = "sk-ant-" + string.ascii_letters + string.digits

HOSTILE: dict[str, Callable[[int], str]] = {
    "one letter": lambda n: "a" * n,
    "one word": lambda n: "abc_-" * (n // 5),
    "equals": lambda n: "=" * n,
    "pairs": lambda n: "key=" * (n // 4),
    "telling pairs": lambda n: "password=" * (n // 9),
    "open quotes": lambda n: "token='" * (n // 7),
    "escapes": lambda n: 'password="' + "\\" * n,
    "backslashes": lambda n: "\\" * n,
    "schemes": lambda n: "://" * (n // 3),
    "logins": lambda n: "://a:" * (n // 5),
    "one login": lambda n: "://" + "a:" * (n // 2),
    "tokens": lambda n: "sk-" * (n // 3),
    "half tokens": lambda n: "hf_a " * (n // 5),
    "jwt heads": lambda n: "eyJ" * (n // 3),
    "one jwt head": lambda n: "eyJ" + "a" * n,
    "jwt dots": lambda n: "eyJaaaaaaaa." * (n // 12),
    "sendgrid": lambda n: "SG.aaaaaaaaaa." * (n // 14),
    "begins": lambda n: "-----BEGIN " * (n // 11),
    "one key": lambda n: "-----BEGIN PRIVATE KEY-----" + "a" * n,
    "bearers": lambda n: "Bearer " * (n // 7),
    "basics": lambda n: "basic " + "a" * n,
    "queries": lambda n: "?key=&" * (n // 6),
    "query names": lambda n: "?" + "a_" * (n // 2),
    "headers": lambda n: "authorization:" * (n // 14),
    "cookies": lambda n: 'cookie: "' * (n // 9),
    "humps": lambda n: "aA" * (n // 2),
    "telling humps": lambda n: "aPassword" * (n // 9),
    "ids": lambda n: "01234567-89ab-cdef-0123-456789abcdef:" * (n // 37),
}  # fmt: skip


class Colour(Enum):
    """A name for a value."""

    RED = "red"


class Level(IntEnum):
    """A number with a name."""

    HIGH = 3


def best_time(work: Callable[[], object], good: float = 0.0) -> float:
    """The least of several runs, or the first below `good`: what is left when nothing else was going on."""
    least = float("inf")
    for _ in range(5):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
        if least < good:
            break
    return least


@pytest.mark.slow
@each("made", HOSTILE.values(), ids=HOSTILE)
def test_the_work_grows_no_faster_than_the_text(made: Callable[[int], str]) -> None:
    small, large = made(10_000), made(80_000)

    one = best_time(lambda: redact_text(small, limit=1_000_000))

    # Eight times the text is eight times the work; were it quadratic, it would be sixty-four times.
    bound = 30 * max(one, 0.000_2)
    assert best_time(lambda: redact_text(large, limit=1_000_000), good=bound) < bound


def test_a_text_of_any_size_is_read_no_further_than_its_window() -> None:
    small, huge = "token=x " * 1_000, "token=x " * 1_000_000

    assert redact_text(huge)[:1_500] == redact_text(small)[:1_500]
    assert best_time(lambda: redact_text(huge)) < 30 * max(best_time(lambda: redact_text(small)), 0.000_2)


@pytest.mark.parametrize("length", [TEXT_CAP - 1, TEXT_CAP, TEXT_CAP + 1, 5_000, 1_000_000])
def test_a_text_is_cut_visibly_and_says_how_much_is_missing(length: int) -> None:
    text = "x" * length

    shown = redact_text(text)

    assert len(shown) <= TEXT_CAP
    assert (shown == text) is (length <= TEXT_CAP)
    if length > TEXT_CAP:
        kept = shown.count("x")
        assert shown == f"{'x' * kept}… [{length - kept} more characters cut]"
        assert kept > TEXT_CAP - 60


@pytest.mark.parametrize("limit", [0, 1, 10, 40, 100])
def test_no_limit_is_too_small_to_be_kept(limit: int) -> None:
    assert len(cut("x" * 500, limit)) <= limit
    assert len(redact_text("x" * 500, limit)) <= limit


def test_a_text_that_fits_is_not_touched_by_cutting() -> None:
    assert cut("x" * 10, 10) == "x" * 10


@pytest.mark.parametrize("start", [1_900, 1_990, 1_999, 2_000, 2_010, 4_000, 4_040, 4_047])
def test_a_secret_on_the_edge_is_masked_or_cut_but_never_shown_in_part(start: int) -> None:
    shown = redact_text("." * (start - 1) + " " + TOKEN + " " + "." * 5_000)

    assert "sk-ant" not in shown


@each("start", [0, 1_500, 1_999, 3_000, 4_000])
@each("length", [100, 1_999, 2_100, 3_000, 50_000])
def test_no_part_of_a_registered_document_is_shown(start: int, length: int) -> None:
    document = ("Dear Ada, " * (length // 10 + 1))[:length]
    failwell.register_secret(document)

    shown = redact_text("." * start + document + "." * 100)

    assert "Ada" not in shown


@pytest.mark.parametrize("masked", [redact_text, mask_known])
def test_what_is_masked_does_not_pull_the_second_half_of_the_window_into_view(
    masked: Callable[[str], str],
) -> None:
    failwell.register_secret("D" * 900)
    failwell.register_secret("E" * 900)

    shown = masked("D" * 900 + "D" * 900 + "D" * 900 + "D" * 900 + "E" * 900 + "x" * 9_000)

    assert (shown.count("D"), shown.count("E")) == (0, 0)


def test_a_mask_that_is_longer_than_its_secret_does_not_break_the_cap() -> None:
    failwell.register_secret("abcdef")

    shown = redact_text("abcdef" * 333)

    assert len(shown) <= TEXT_CAP
    assert "abcdef" not in shown
    assert "-" not in shown.rsplit("[", 1)[1]


@given(st.text(max_size=300))
def test_whatever_comes_in_comes_out_valid_and_bounded(text: str) -> None:
    shown = redact_text(text, limit=100)

    assert len(shown) <= 100
    assert shown.encode("utf-8").decode("utf-8") == shown


@given(st.text(alphabet=string.printable, max_size=60), st.text(alphabet=string.printable, max_size=60))
def test_a_token_is_never_shown_whatever_stands_around_it(before: str, after: str) -> None:
    # A token is recognised where it stands alone: letters and digits would make another word of it.
    shown = redact_text(f"{before} {TOKEN} {after}")

    assert TOKEN not in shown


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    assert redact_text("a\ud800b") == "a?b"


JSON_SAFE: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (7, 7),
    (1.5, 1.5),
    ("x", "x"),
    (2**70, hex(2**70)),
    (float("nan"), "nan"),
    (float("-inf"), "-inf"),
    ((1, 2), [1, 2]),
    (frozenset({1}), [1]),
    (b"secret", "<6 bytes>"),
    (Colour.RED, "red"),
    (Level.HIGH, 3),
    (date(2026, 3, 1), "2026-03-01"),
    (datetime(2026, 3, 1, 12), "2026-03-01T12:00:00"),  # noqa: DTZ001
    (PurePosixPath("/a/b"), "/a/b"),
    (object(), "<object>"),
    (ValueError("hunter2"), "<ValueError>"),
    ({1: "a", (2,): "b"}, {"1": "a", "<tuple>": "b"}),
    (type("Text", (str,), {})("x"), "x"),
    (type("Real", (float,), {})(1.5), 1.5),
]


@each(("value", "safe"), JSON_SAFE, ids=lambda value: type(value).__name__)
def test_every_value_becomes_json(value: Any, safe: Any) -> None:
    made = redact_value(value)

    assert made == safe
    assert type(made) is type(safe)


def test_values_are_bounded_in_depth_and_width() -> None:
    deep: Any = "bottom"
    for _ in range(50):
        deep = [deep]

    assert str(redact_value(deep)).count("[") == 7
    assert len(redact_value(list(range(1_000)))) == 101
    assert redact_value(list(range(1_000)))[-1] == "… [more items cut]"
    assert redact_value({str(n): n for n in range(1_000)})["…"] == "[more keys cut]"


def test_a_bush_of_values_is_bounded_as_a_whole() -> None:
    bush: Any = [[[[1] * 90] * 90] * 90] * 90

    assert str(redact_value(bush)).count("1") < 40_000
    assert len(failwell.describe(make_fault(details={"bush": bush})).to_json()) < 65_536


def texts(value: Any) -> list[str]:
    """Every text anywhere in JSON-safe data."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for inner in cast("dict[str, Any]", value).values() for text in texts(inner)]
    if isinstance(value, list):
        return [text for inner in cast("list[Any]", value) for text in texts(inner)]
    return []


def test_no_text_of_a_report_is_longer_than_its_cap() -> None:
    long = "word " * 10_000
    fault = make_fault(
        message=long,
        details={"text": long, "list": [long] * 5},
        provider=long,
        fields_invalid=[long],
        user_action=errors.UserAction(errors.kind("tool.busy").action, long),
    )

    report = failwell.describe(fault, policy="full")

    written = report.to_dict()
    trace = written["internal"].pop("traceback")
    assert max(len(text) for text in texts(written)) <= TEXT_CAP
    assert len(trace) <= 12_000


def test_a_secret_in_any_field_of_a_fault_is_in_no_field_of_its_report() -> None:
    secret = f"see {TOKEN} here"
    fault = make_fault(
        message=secret,
        details={"note": secret, TOKEN: "x", "deep": {"list": [secret]}},
        provider=secret,
        model=secret,
        fields_invalid=[secret],
        user_action=errors.UserAction(errors.kind("tool.busy").action, secret),
        provider_metadata=errors.ProviderMetadata(
            sdk=secret, exception_type=secret, code=secret, request_id=secret, headers={"server": secret}
        ),
        not_before=NotBefore(after=1, source=secret),
    )
    fault.add_note(secret)
    fault.__cause__ = ValueError(secret)

    for policy in TracebackPolicy:
        written = failwell.describe(fault, policy=policy).to_json()
        assert TOKEN not in written
        assert MARK in written
