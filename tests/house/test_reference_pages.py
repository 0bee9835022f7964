"""The generated pages say what the code says, and the check notices when they do not."""

import re
from pathlib import Path

import pytest

from tools.docs.__main__ import main
from tools.docs.pages import PAGES, NoSource, page_text


def test_the_committed_pages_are_current() -> None:
    assert main(["--check"]) == 0, "run `make docs`"


def test_a_page_changed_by_hand_is_named_and_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--to", str(tmp_path)])
    (tmp_path / "kinds.md").write_text("mine")

    status = main(["--check", "--to", str(tmp_path)])
    told = capsys.readouterr().err
    main(["--to", str(tmp_path)])

    assert status == 1
    assert "error: docs/reference/kinds.md no longer matches the code" in told
    assert main(["--check", "--to", str(tmp_path)]) == 0


@pytest.mark.parametrize("source", ["tools.docs.nowhere:page", "tools.docs.wire:nothing_page"])
def test_a_page_without_its_source_says_which_is_missing(
    monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setitem(PAGES, "wire.md", source)

    with pytest.raises(NoSource, match=r"docs/reference/wire\.md has no source: .*no(where|thing)"):
        page_text("wire.md")


def test_the_cli_page_is_the_same_whatever_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = page_text("cli.md")

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")

    assert page_text("cli.md") == wide


def test_every_command_is_shown_as_it_is_typed() -> None:
    headings = re.findall(r"^## (.+)$", page_text("cli.md"), flags=re.MULTILINE)

    assert headings[0] == "failwell"
    assert [heading for heading in headings[1:] if not re.fullmatch(r"failwell( [a-z-]+)+", heading)] == []
