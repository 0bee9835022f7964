"""Finds words that the project does not use: `python -m tools.vocabulary`.

The list is the private vocabulary that the project once had. Prose is searched for phrases, names are taken from the syntax tree.
In tests only the names of files, functions and classes count: what a test says about old input is its own business.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PHRASES = {
    r"\bdoorways?\b": "adapter",
    r"\btold waits?\b": "server-requested delay",
    r"\bhand(?:s|ed|ing)? (?:(?:it|them|one|jobs?|a job|the job|the work|work) )?in\b": "submit",
    r"\b(?:go|goes|going|went|gone) on with\b": "resume, continue",
    r"\b(?:take|takes|taken|taking|took) (?:(?:it|them|one|runs?|a run|the run) )?up\b(?! to\b)": "resume",
    r"\bstands? so\b": "has this status",
    r"\basked wrongly\b": "invalid usage, input or configuration",
    r"\ba run that is going on\b": "a running workflow",
    r"\bquestions that runs wait with\b": "pending gates",
    r"\b(?:its|the) cause is cured\b": "after the cause is fixed",
    r"\bwho lost its process\b": "a job that loses its worker",
    r"\bsomebody else was faster\b": "another process holds the host lock",
    r"\bPurses?\b": "SharedBudget",
    r"\bquiet_client\b": "without_sdk_retries",
}
"""Pattern to the words that are used instead."""

NAMES = {
    **dict.fromkeys(("Purse", "purse"), "SharedBudget"),
    **dict.fromkeys(("luck",), "jitter"),
    **dict.fromkeys(("Wishes", "wishes"), "explicit parameters"),
    **dict.fromkeys(
        ("Desk", "Shelf", "Station", "Heeding"),
        "QueueClient, CapabilityRegistry, Instance, ConfigWatcher",
    ),
    **dict.fromkeys(("Ward", "Conductor"), "RunProcesses, RunCommand"),
    **dict.fromkeys(("asked",), "args"),
}
"""Names that nothing has: no variable, parameter, attribute, function or class."""

DEFINITIONS = {
    "here": "platform",
    "unsayable": "unserializable",
    "mistaken": "…",
    "telling": "…",
    "doorway": "adapter",
}
"""Names that no function has."""

_TEST_WORDS = {
    "doorway",
    "doorways",
    "purse",
    "purses",
    "luck",
    "shelf",
    "desk",
    "Desk",
    "Shelf",
    "Station",
    "Ward",
}
"""Words that are in no name of a test."""

MODULES = {
    "said", "ask", "given", "words", "desk", "shelf", "station", "heeding", "here", "unsayable", "mistaken", "telling",
    "purse", "ward", "conducting",
}  # fmt: skip
"""Names that no module has."""

KEPT = {
    "CHANGELOG.md": (r"\bquiet_client\b", r"\bPurses?\b"),
    "src/failwell/__init__.py": (r"\bquiet_client\b",),
    "src/failwell/calls/__init__.py": (r"\bPurses?\b",),
    "tools/vocabulary.py": tuple(PHRASES),
}
"""Where a phrase may occur: where an old name is announced or still works with a warning, and here."""

STORED = {("src/failwell/workflows/machine/run_state.py", "asked")}
"""Names that are keys of stored snapshots and cannot change."""

PLACES = (
    "src",
    "docs",
    "examples",
    "tools",
    "bench",
    "fuzz",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
)


def findings() -> Iterator[str]:
    """Every place with a word that is not used, as `file:line: what`."""
    for path in _files():
        place = path.relative_to(ROOT).as_posix()
        in_tests = place.startswith("tests/")
        text = path.read_text(encoding="utf-8", errors="replace")
        if not in_tests and (place.startswith(PLACES) or place in PLACES):
            yield from phrases(place, text)
        if path.suffix == ".py":
            if path.stem.removeprefix("test_") in MODULES:
                yield f"{place}:1: a module called `{path.stem}`"
            # Few files hold one of the words at all, and a syntax tree takes long to walk.
            if may_hold_names(text, in_tests=in_tests):
                yield from names(place, ast.parse(text), in_tests=in_tests)


_DEFINITION = r"\b(?:def|class)\s+"
_SUSPECT = re.compile(rf"\b_*(?:{'|'.join(NAMES)})_*\b|{_DEFINITION}_*(?:{'|'.join(DEFINITIONS)})_*\b")
_SUSPECT_IN_TESTS = re.compile(rf"{_DEFINITION}\w*(?:{'|'.join([*NAMES, *_TEST_WORDS])})")


def may_hold_names(text: str, *, in_tests: bool) -> bool:
    """Whether a module may bind a name of the list; the syntax tree says whether it does."""
    return (_SUSPECT_IN_TESTS if in_tests else _SUSPECT).search(text) is not None


def _files() -> Iterator[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607  (whichever git the developer has)
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if (
            name
            and path.is_file()
            and path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ".sh", ".sql", ".json", ""}
        ):
            yield path


def phrases(place: str, text: str) -> Iterator[str]:
    """Phrases of the list in a text; a line break or a comment sign may be between two words."""
    for pattern, better in PHRASES.items():
        if pattern in KEPT.get(place, ()):
            continue
        flags = 0 if pattern[2].isupper() else re.IGNORECASE
        for match in re.finditer(pattern.replace(" ", r"\s+(?:#\s*)?"), text, flags):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{place}:{line}: `{' '.join(match[0].split())}` ({better})"


def names(place: str, tree: ast.Module, *, in_tests: bool) -> Iterator[str]:
    """Names of the list that a module binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name.strip("_")
            if in_tests and (found := _TEST_WORDS & set(re.findall(r"[A-Z]?[a-z]+", name))):
                yield f"{place}:{node.lineno}: `{', '.join(sorted(found))}` in `{node.name}`"
            elif name in NAMES or (not in_tests and name in DEFINITIONS):
                yield f"{place}:{node.lineno}: a definition called `{node.name}` ({({**NAMES, **DEFINITIONS})[name]})"
        elif not in_tests and (name := _bound(node).strip("_")) in NAMES:
            if (place, name) in STORED:
                continue
            yield f"{place}:{getattr(node, 'lineno', 1)}: the name `{name}` ({NAMES[name]})"


def _bound(node: ast.AST) -> str:
    """The name that this node binds, or nothing."""
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr
    return ""


def main() -> int:
    """Print every finding; exit 1 if there is one."""
    found = sorted(set(findings()))
    print("\n".join(found) if found else "words: none that the project does not use")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
