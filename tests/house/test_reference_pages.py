"""The generated pages say what the code says, and the check notices when they do not."""

import re
from pathlib import Path

import pytest

from tools.docs.__main__ import main
from tools.docs.pages import PAGES, ROOT, NoSource, orphans, page_text, stale_pages


def test_every_reference_page_is_current() -> None:
    assert list(stale_pages(ROOT / "docs/reference")) == [], "run `make docs`"
    assert orphans(ROOT / "docs/reference") == [], "run `make docs`"


@pytest.fixture
def few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only pages that are quickly written: how they are checked does not depend on which they are."""
    for page in set(PAGES) - {"wire.md", "events.md", "kinds/cancel.md"}:
        monkeypatch.delitem(PAGES, page)


@pytest.mark.usefixtures("few_pages")
def test_a_page_changed_by_hand_is_named_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--to", str(tmp_path)])
    (tmp_path / "wire.md").write_text("mine")

    status = main(["--check", "--to", str(tmp_path)])

    assert status == 1
    assert "error: docs/reference/wire.md no longer matches the code" in capsys.readouterr().err
    assert (tmp_path / "wire.md").read_text() == "mine"


@pytest.mark.usefixtures("few_pages")
def test_writing_makes_every_page_current(tmp_path: Path) -> None:
    main(["--to", str(tmp_path)])

    status = main(["--check", "--to", str(tmp_path)])

    assert status == 0
    written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")]
    assert sorted(written) == sorted(PAGES)


@pytest.mark.usefixtures("few_pages")
def test_a_page_that_nothing_writes_any_more_is_named_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--to", str(tmp_path)])
    old = tmp_path / "kinds/nothing.md"
    old.write_text((tmp_path / "kinds/cancel.md").read_text())

    status = main(["--check", "--to", str(tmp_path)])
    main(["--to", str(tmp_path)])

    assert status == 1
    assert "kinds/nothing.md no longer matches the code" in capsys.readouterr().err
    assert not old.exists()


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
