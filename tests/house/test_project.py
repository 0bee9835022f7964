"""The papers around the code: short, true, and free of the machine they were written on."""

import importlib.metadata
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

import failwell._version
from tests.specimens import each
from tools import locks
from tools.docs.pages import PAGES

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = sorted(path for path in (ROOT / "docs/decisions").glob("*.md") if path.stem != "index")
PAPERS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

# Put together here, so that this file does not hold what it looks for.
_HOMES = "|".join(["wo" + "rk", "ro" + "ot"])
MACHINE_PATH = re.compile(rf"(?<![\w./$-])/(?:{_HOMES})/")
REGISTRY = re.compile(
    "|".join(["pythonhosted" + r"\.org", r"https?://\S+/sim" + "ple", "--extra-index" + "-url"])
)


def tracked_texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the project that a clone would hold."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    # An unpacked source archive is no repository; there every file counts.
    paths = [ROOT / name for name in listed if name] or [path for path in ROOT.rglob("*") if path.is_file()]
    for path in paths:
        if path.is_file() and ".venv" not in path.parts:
            content = path.read_bytes()
            if b"\0" not in content:
                yield path, content.decode("utf-8", errors="replace")


def places(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path, text in tracked_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def headings(path: Path) -> list[str]:
    return re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)


def project_table() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_readme_can_be_read_in_one_sitting() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()

    assert 20 <= len(lines) <= 120


def test_the_glossary_has_at_most_twenty_nouns() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    glossary = text.partition("## Glossary")[2].partition("\n## ")[0]

    nouns = re.findall(r"^\| ([a-z, ]+) \|", glossary, flags=re.MULTILINE)[1:]

    assert 10 <= len(nouns) <= 20
    assert not any("," in noun for noun in nouns)


def test_every_room_is_in_the_table_of_rooms() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## Where does this line go?")[2].partition("\n## ")[0]
    rooms = {path.parent.name for path in (ROOT / "src/failwell").glob("*/__init__.py")}

    rows = re.findall(r"^\| .+\? \| (?:`([a-z]+)`|a public module: .+) \|$", table, re.MULTILINE)

    assert rooms <= set(rows)
    assert len(rows) <= 17


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    assert places(MACHINE_PATH) == []


def test_no_file_names_a_package_registry() -> None:
    assert places(REGISTRY) == []


@pytest.mark.parametrize("planted", ["see /" + "work/main/x.py", 'open("/' + 'root/.cache/y")'])
def test_the_search_for_machine_paths_finds_one(planted: str) -> None:
    assert MACHINE_PATH.search(planted)


@pytest.mark.parametrize("honest", ["src/work/x", "https://example.org/work/", "$HOME/work/", "./root/x"])
def test_the_search_for_machine_paths_leaves_other_paths_alone(honest: str) -> None:
    assert not MACHINE_PATH.search(honest)


def test_the_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert "Apache License\n" in text
    assert "Version 2.0, January 2004" in text
    assert project_table()["license"] == "Apache-2.0"


def test_the_library_needs_nothing_and_the_engine_little() -> None:
    table = project_table()
    dependencies = cast("dict[str, list[str]]", table["optional-dependencies"])["engine"]

    assert table["dependencies"] == []
    assert [re.split(r"[<>=~! ]", dependency)[0] for dependency in dependencies] == [
        "cronsim",
        "jinja2",
        "jsonschema-rs",
        "pyyaml",
        "rich",
    ]


def test_the_changelog_begins_with_the_version_and_is_short() -> None:
    assert headings(ROOT / "CHANGELOG.md")[0] == failwell._version.__version__
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").rglob("*.txt")), ids=lambda path: path.stem)
def test_requirements_hold_versions_and_nothing_else(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()

    version = r"[a-z0-9-]+(\[[a-z,]+\])?==[0-9][0-9a-z.]*"
    marker = r"( ; [a-zA-Z0-9_.'<>=! ]+)?" if path.parent.name == "locks" else ""
    odd = [
        line for line in lines if line and not re.fullmatch(rf"#.*|-r [a-z./]+\.txt|{version}{marker}", line)
    ]

    assert odd == []


def test_every_environment_is_locked_with_the_versions_that_its_file_names() -> None:
    for name, source in locks.sources().items():
        locked = pins(locks.LOCKS / f"{name}.txt")

        named = {line for path in included(source) for line in pins(path)}

        assert named <= locked, (
            f"run `make lock`: requirements/locks/{name}.txt lacks {sorted(named - locked)}"
        )


def test_what_is_installed_is_what_is_locked() -> None:
    locked = {pin.partition("==")[0] for pin in pins(locks.LOCKS / "dev.txt")}
    bootstrap = {"failwell", "pip", "setuptools", "wheel"}
    installed = {canonical(package.name) for package in importlib.metadata.distributions()}

    if "uv" not in installed:
        pytest.skip("the development environment is not here")
    assert installed - bootstrap - locked == set(), "run `make lock`"


def test_the_lowest_releases_are_the_lower_bounds_of_the_project() -> None:
    table = project_table()
    extras = cast("dict[str, list[str]]", table["optional-dependencies"])
    bounds = [
        *cast("list[str]", table["dependencies"]),
        *(bound for extra in extras.values() for bound in extra),
    ]
    lower = dict(bound.split(">=") for bound in bounds if ">=" in bound)

    pinned = dict(pin.split("==") for pin in pins(ROOT / "requirements/lowest.txt"))

    assert {name for name in lower if not same_release(pinned[name], lower[name])} == set()


def pins(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    matches = (re.match(r"([a-z0-9-]+)(?:\[[a-z,]+\])?==([^ ;]+)", line) for line in lines)
    return {f"{pin[1]}=={pin[2]}" for pin in matches if pin}


def included(path: Path) -> list[Path]:
    lines = path.read_text(encoding="utf-8").splitlines()
    others = (path.parent / line.removeprefix("-r ") for line in lines if line.startswith("-r "))
    return [path, *(deeper for other in others for deeper in included(other))]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def same_release(pinned: str, bound: str) -> bool:
    """Whether the pin is the bound itself: `13.0.0` is `13`."""
    return pinned == bound or (pinned.startswith(f"{bound}.") and not pinned[len(bound) :].strip(".0"))


def test_every_page_of_decisions_is_listed_under_its_title() -> None:
    index = (ROOT / "docs/decisions/index.md").read_text(encoding="utf-8")
    titles = {
        path.name: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        for path in DECISIONS
    }

    entries = {name: title for title, name in re.findall(r"^- \[(.+)\]\((.+?)\)", index, flags=re.MULTILINE)}

    assert entries == titles


@each("path", DECISIONS, ids=lambda path: path.stem)
def test_a_page_of_decisions_is_short_and_has_sections_that_can_be_cited(path: Path) -> None:
    sections = headings(path)

    assert len(path.read_text(encoding="utf-8").splitlines()) <= 200
    assert len(sections) == len(set(sections)) > 0


@each("path", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_between_the_papers_leads_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]

    # `make site` writes the other pages of the reference, and checks the links between them.
    written = {(ROOT / "docs/reference" / page).resolve() for page in PAGES}
    broken = [
        target
        for target in targets
        if (file := target.split("#")[0])
        and not (path.parent / file).exists()
        and (path.parent / file).resolve() not in written
    ]

    assert broken == []
