"""What a package index shows has no link that leads nowhere, and loses no path."""

import re
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tools.package_readme import published

ROOT = Path(__file__).resolve().parents[2]


def test_a_relative_link_becomes_its_text_and_its_path() -> None:
    assert published("# it\n\nSee [the guide](docs/guide.md).\n").endswith(
        "See the guide (`docs/guide.md`).\n"
    )


def test_a_link_to_a_site_is_left_alone() -> None:
    text = "See [the site](https://example.org/a)."

    assert published(f"# it\n\n{text}\n").endswith(f"{text}\n")


def test_the_distribution_describes_itself_with_the_published_readme() -> None:
    builder: Any = WheelBuilder(str(ROOT))
    readme = builder.metadata.core.readme

    assert readme == published((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "source distribution" in readme
    assert re.findall(r"\]\((?!https?:)", readme) == []


@pytest.mark.slow
def test_the_source_distribution_holds_what_the_readme_names() -> None:
    packed = {file.relative_path for file in SdistBuilder(str(ROOT)).recurse_included_files()}

    links = re.findall(r"\]\(([^)\s:]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if link not in packed] == []
    assert {"README.md", "tools/package_readme.py"} <= packed
