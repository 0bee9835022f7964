"""The pages that can be typed along are: each command answers what the page says."""

from pathlib import Path

import pytest

from tests.docs.session import ROOT, Session, typed_in

PAGES = [
    ROOT / "README.md",
    ROOT / "docs/tutorial.md",
    ROOT / "docs/guides/command-line.md",
    ROOT / "docs/guides/workflows.md",
    ROOT / "docs/guides/agent-steps.md",
    ROOT / "docs/guides/interaction.md",
    ROOT / "docs/guides/audit.md",
    ROOT / "docs/guides/stages.md",
    ROOT / "docs/guides/sessions.md",
    ROOT / "docs/guides/errors-from-scripts.md",
    ROOT / "docs/guides/from-conductor.md",
    ROOT / "docs/concepts/runs.md",
]
SLOW = {"interaction.md", "sessions.md"}
"""Pages whose commands load a model's framework again and again."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else []) for page in PAGES],
    ids=lambda page: page.name,
)
def test_a_page_can_be_typed_along_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    wrong = Session(tmp_path).play(page)

    assert wrong == [], "\n\n".join(wrong)


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ("$ echo one\none\n", 0),
        ("$ echo one\ntwo\n", 1),
        ("$ echo one two\none …\n", 0),
        ("$ printf 'a\\nb\\nc\\n'\na\n...\nc\n", 0),
        ("$ false\n", 1),
        ("$ false\n$ echo $?\n1\n", 0),
        ("$ false\n$ echo $?\n0\n", 1),
        ("$ cat shown.txt\nhello\n$ grep -c hello shown.txt\n1\n", 0),
    ],
)
def test_a_session_notices_what_differs(body: str, faults: int, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```console\n{body}```\n")
    folder = tmp_path / "desk"
    folder.mkdir()

    assert len(Session(folder).play(page)) == faults
    assert typed_in(body)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_that_is_typed_along_has_something_to_type(page: Path) -> None:
    assert "```console\n$ " in page.read_text("utf-8")
