"""The Rich panel: literal text, at any width, in colour only where colour is wanted."""

from io import StringIO

import pytest
from rich.console import Console, RenderableType

from failwell.delivery.terminal import panel
from tests.delivery.builders import a_full_report, make_report


def drawn(what: RenderableType, *, width: int = 80, colour: bool = False) -> str:
    out = StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, color_system="standard" if colour else None
    )
    console.print(what)
    return out.getvalue()


def flowing(text: str) -> str:
    """The words of a panel without its frame and its line breaks."""
    return " ".join(text.translate(str.maketrans("", "", "│╭╮╰╯─")).split())


@pytest.mark.acceptance("pipelex 64")
@pytest.mark.parametrize(
    "message",
    [
        "model [bold]acme[/bold] said no",
        "unclosed [red and [/] stray",
        "a list [1, 2] and [link=http://x]here[/link]",
        ":bomb: went off at :fire:",
        "a backslash \\[escaped]",
    ],
)
def test_brackets_and_emoji_codes_are_printed_as_they_are(message: str) -> None:
    report = make_report("external.model.refused", message=message, model="[large]", provider=":snake:")

    shown = flowing(drawn(panel(report, "operator")))

    assert message in shown
    assert "model [large]" in shown
    assert "provider :snake:" in shown


def test_a_panel_has_a_banner_aligned_rows_and_a_hint() -> None:
    assert drawn(panel(make_report()), width=60) == (
        "╭─ ✗ Rate limited ─────────────────────────────────────────╮\n"
        "│                                                          │\n"
        "│  The provider turned the call away because a short       │\n"
        "│  usage window is full.                                   │\n"
        "│                                                          │\n"
        "│  kind  provider.rate_limited (transient, may be          │\n"
        "│        retried)                                          │\n"
        "│  id    err_1                                             │\n"
        "│                                                          │\n"
        "│  hint: Wait for the window to reopen, then repeat the    │\n"
        "│  call.                                                   │\n"
        "│                                                          │\n"
        "╰──────────────────────────────────────────────────────────╯\n"
    )


@pytest.mark.parametrize("width", [20, 40, 60, 200])
def test_everything_fits_into_the_width_it_is_given(width: int) -> None:
    lines = drawn(panel(a_full_report(), "operator"), width=width).splitlines()

    assert {len(line) for line in lines} == {width}


def test_an_operator_sees_causes_attempts_and_evidence() -> None:
    shown = flowing(drawn(panel(a_full_report(), "operator"), width=120))

    for words in (
        "from RateLimitError",
        "while handling ConnectError",
        "attempts spent",
        "openai.RateLimitError",
    ):
        assert words in shown


def test_a_user_is_not_shown_who_was_called() -> None:
    shown = drawn(panel(a_full_report()), width=120)

    assert "acme" not in shown


def test_the_banner_is_red_and_the_hint_green_on_a_terminal() -> None:
    shown = drawn(panel(make_report()), colour=True)

    assert "\x1b[1;31m✗ " in shown
    assert "\x1b[1;32mhint: \x1b[0m\x1b[32mWait" in shown


def test_no_colour_is_used_where_the_reader_asked_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    shown = drawn(panel(make_report()), colour=True)

    assert "\x1b[31m" not in shown
    assert "\x1b[1;31m" not in shown
    assert "✗ " in shown


def test_an_escape_sequence_in_a_message_stays_inert() -> None:
    shown = drawn(panel(make_report("external.a.b", message="\x1b[31mred\x1b[0m"), "operator"))

    assert "\x1b" not in shown
    assert "\\x1b[31mred\\x1b[0m" in shown
