"""How large each room may be, and which rooms may know each other. Both may only shrink, unless a commit says why."""

import ast
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUDGETS = tomllib.loads((ROOT / "tests/house/budgets.toml").read_text(encoding="utf-8"))
PACKAGE = ROOT / "src/failwell"


def room_of(path: Path) -> str:
    """The folder below the package; a module beside the folders belongs to `top`."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "top"


def files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "src/failwell"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


def lines_by_room() -> Counter[str]:
    counts: Counter[str] = Counter()
    for path in files():
        counts[room_of(path)] += path.read_bytes().count(b"\n")
    return counts


def edges() -> set[str]:
    """Each pair of rooms of which the first imports the second, lazily or not."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    found: set[str] = set()
    for path in files():
        room = room_of(path)
        if path.suffix != ".py" or room == "top":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for module in modules:
                top, _, rest = module.partition(".")
                other = rest.partition(".")[0]
                if top == "failwell" and other in rooms and other != room:
                    found.add(f"{room} -> {other}")
    return found


def test_no_room_has_more_lines_than_its_budget() -> None:
    lines = lines_by_room()

    over = {room: (count, BUDGETS["lines"].get(room, 0)) for room, count in lines.items()}

    assert {room: pair for room, pair in over.items() if pair[0] > pair[1]} == {}
    assert set(BUDGETS["lines"]) == set(lines)


def test_rooms_know_only_the_rooms_on_the_list() -> None:
    listed = set(BUDGETS["edges"]["pairs"])

    assert edges() - listed == set()
    assert listed - edges() == set(), "take these off the list"
