"""Plain text for people: one shape, nothing hidden in it, nothing too long."""

from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.adapters.describe import describe
from failwell.delivery.plain_text import LINE_CAP, neutral, one_line
from failwell.delivery.terminal import render_text, span
from failwell.errors.facts import ResourceShortfall
from failwell.errors.report import Scene
from tests.delivery.builders import a_full_report, a_wait, make_report


def test_a_user_reads_what_happened_where_and_what_to_do() -> None:
    report = replace(make_report(not_before=a_wait(7.5)), scene=Scene(run="r1", node="summarise", attempt=2))

    text = render_text(report)

    assert text == (
        "error: The provider turned the call away because a short usage window is full.\n"
        "  kind: provider.rate_limited (transient, retry in 7.5 s)\n"
        "  where: run r1 / node summarise\n"
        "  id: err_1\n"
        "hint: Wait 8 s, then repeat the call."
    )


def test_an_operator_reads_everything_that_is_known() -> None:
    text = render_text(a_full_report(), "operator")

    assert text == (
        "error: The provider turned the call away because a short usage window is full.\n"
        "  kind: provider.rate_limited (transient, retry in 7.5 s)\n"
        "  where: run r1 / node summarise / attempt 2\n"
        "  type: RateLimitError\n"
        "  certainty: rejected\n"
        "  blame: account\n"
        "  provider: acme\n"
        "  model: acme/large[preview]\n"
        "  status: 429\n"
        "  code: rate_limit_exceeded\n"
        "  request: req_77\n"
        "  details.batch: 3\n"
        '  details.names: ["a", "b"]\n'
        "  id: err_1\n"
        "  fingerprint: f1-0011223344556677\n"
        "  at: 2026-03-01T12:00:00+00:00\n"
        "  causes:\n"
        "    from RateLimitError (provider.rate_limited)\n"
        "      while handling ConnectError (provider.connection)\n"
        "        note: on port 9\n"
        "  attempts:\n"
        "    1  acme/large  provider.rate_limited  rejected  1,200 tokens  $0.001200  then waited 5 s\n"
        "    2  acme/large  provider.rate_limited  rejected"
        "                                            attempts spent\n"
        "  crossed:\n"
        "    node summarise iteration 2 of daily\n"
        "  evidence:\n"
        "    openai.RateLimitError (by type, saw RateLimitError)\n"
        "hint: Wait 8 s, then repeat the call."
    )


def test_a_user_is_not_told_who_was_called() -> None:
    text = render_text(a_full_report())

    assert "acme" not in text
    assert "429" not in text
    assert "RateLimitError" not in text


def test_a_long_message_of_many_lines_becomes_one_short_line_with_a_mark() -> None:
    message = "\n".join(f"line {number} of the author's explanation" for number in range(10))

    first, *rest = render_text(make_report("external.git.drift", message=message)).split("\n")

    assert first.startswith("error: line 0 of the author's explanation line 1")
    assert len(first.removeprefix("error: ")) == LINE_CAP
    assert first.endswith("more characters cut]")
    assert rest[0].startswith("  kind:")


@pytest.mark.acceptance("stud-cli 59")
def test_of_ten_lines_with_a_key_a_user_sees_none_the_audit_all_but_the_key_and_the_model_none() -> None:
    key = "sk-" + "a1b2c3d4e5f6g7h8i9"
    words = "\n".join(f"row {number}: the key {key} was refused" for number in range(10))
    openai: Any = pytest.importorskip("openai", reason="the lowest dependencies come without SDKs")
    request = httpx.Request("POST", "https://api.openai.com/v1/chat/completions")
    reply: Any = httpx.Response(401, request=request)
    report = describe(openai.AuthenticationError(words, response=reply, body=None), policy="full")

    header, *lines = render_text(report).split("\n")
    audited = report.view("audit")["message"]

    assert header == "error: The provider did not accept the credentials."
    assert len(header) <= 240
    assert "row" not in "\n".join(lines)
    assert audited == words.replace(key, "[redacted]")
    assert key not in str(report.view("audit"))
    assert "row" not in str(report.view("model"))


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x1b[2J\x1b[1;1Hall fine", "\\x1b[2J\\x1b[1;1Hall fine"),
        ("failed\rdone  ", "failed done"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("a\u2066b\u2069c", "a\\u2066b\\u2069c"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("tag\U000e0041s", "tag\\U000e0041s"),
        ("bell\x07 del\x7f c1\x9b", "bell\\x07 del\\x7f c1\\x9b"),
        ("half \ud800 pair", "half \\ud800 pair"),
    ],
)
def test_what_a_terminal_would_act_on_is_written_out(hidden: str, shown: str) -> None:
    assert one_line(hidden) == shown


def test_hidden_characters_are_written_out_wherever_text_is_shown() -> None:
    evil = "x\x1b]8;;http://evil\x07y\u202ez"
    full = a_full_report()
    report = replace(
        full,
        message=evil,
        model=evil,
        error_type=evil,
        scene=Scene(run=evil),
        details={evil: evil},
        causes=tuple(replace(cause, type=evil, message=evil, notes=(evil,)) for cause in full.causes),
        attempts=tuple(replace(attempt, model=evil, reason=evil) for attempt in full.attempts),
        frames=tuple(replace(frame, name=evil) for frame in full.frames),
        evidence=tuple(replace(one, saw=evil) for one in full.evidence),
        user_action=replace(full.user_action, detail=evil),
    )

    text = render_text(report, "operator")

    assert "x\\x1b]8;;http://evil\\x07y\\u202ez" in text
    assert all(character == "\n" or character.isprintable() for character in text)


def test_emoji_and_joined_scripts_are_left_alone() -> None:
    family = "👩\u200d👩\u200d👧 می\u200cخواهم"

    assert one_line(family) == family


@given(st.text())
def test_one_line_is_one_printable_line(text: str) -> None:
    line = one_line(text)

    assert len(line.splitlines()) <= 1
    assert len(line) <= LINE_CAP
    assert "\x1b" not in line
    assert "\r" not in line
    line.encode("utf-8")


def test_lines_are_kept_where_several_may_be_shown() -> None:
    assert neutral("one\r\ntwo\rthree\u2028four\x00") == "one\ntwo\nthree\nfour\\x00"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.01, "0.1 s"),
        (1.1, "1.1 s"),
        (7.5, "7.5 s"),
        (119.95, "120 s"),
        (121, "3 min"),
        (7_200, "2 h"),
        (90_001, "25.1 h"),
        (259_200, "3 days"),
        (float("inf"), "an unknown time"),
    ],
)
def test_a_wait_is_never_said_to_be_shorter_than_it_is(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_a_wait_that_invites_no_repeat_is_said_as_a_block() -> None:
    text = render_text(make_report("provider.quota_exhausted", not_before=a_wait(7_200)))

    assert "kind: provider.quota_exhausted (capacity, blocked for 2 h)" in text
    assert "retry" not in text


def test_invalid_fields_and_missing_megabytes_are_named() -> None:
    fields = render_text(make_report("validation.input_invalid", fields_invalid=["name", "age"]))
    memory = render_text(
        make_report(
            "resource.gpu_memory", resource_shortfall=ResourceShortfall("gpu_vram_mb", 24_000, 1_500.5)
        )
    )

    assert "  fields: name, age\n" in fields
    assert "  short of: GPU memory: 24,000 MB needed, 1,500.5 MB free\n" in memory
