"""What the pages show is run: Python blocks execute, commands answer, links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    ROOT / "docs" / "tutorial.md",
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "concepts").glob("*.md")),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SLOW = {"frameworks.md"}
"""Pages whose code loads several frameworks."""
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def blocks(page: Path, language: str) -> list[str]:
    return [body for named, body in FENCE.findall(page.read_text("utf-8")) if named == language]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else []) for page in PAGES],
    ids=lambda page: page.name,
)
def test_the_python_on_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    code = "\n\n".join(blocks(page, "python"))

    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr


def test_the_readme_prints_what_it_says_it_prints(tmp_path: Path) -> None:
    program = blocks(ROOT / "README.md", "python")[0]
    promised = blocks(ROOT / "README.md", "text")[0]

    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert ran.stdout == promised


def test_every_guide_is_linked_from_the_start_page() -> None:
    linked = set(LINK.findall((ROOT / "docs/index.md").read_text("utf-8")))

    assert {f"guides/{path.name}" for path in (ROOT / "docs/guides").glob("*.md")} - linked == set()


WITHHOLDING = re.compile(
    r"\b(log_report|ReportFilter|JsonFormatter|report_exception|withheld|jobs show|errors\.jsonl)\b|install\(app"
)
"""Where an operator looks for the message of an exception, and does not find it by default."""


def test_a_guide_that_shows_logs_or_records_says_how_to_see_what_they_withhold() -> None:
    guides = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "docs/guides").glob("*.md"))}
    needing = [name for name, text in guides.items() if WITHHOLDING.search(text)]

    assert {"capabilities.md", "http.md", "jobs.md", "observability.md", "workflows.md"} <= set(needing)
    assert [name for name in needing if "FAILWELL_TRACEBACK" not in guides[name]] == []


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = set(re.findall(r"(?:\$ |`)make (\w+)", (ROOT / "README.md").read_text("utf-8")))

    assert named >= {"demo", "test"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)


def test_the_demo_shows_one_failure_to_every_reader_and_no_secret() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "one_failure_every_view.py")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )

    assert "✗ Rate limited" in ran.stdout
    assert "Retry-After: 8" in ran.stdout
    assert "it is the same report: True" in ran.stdout
    assert "must-never-be-seen" not in ran.stdout + ran.stderr
