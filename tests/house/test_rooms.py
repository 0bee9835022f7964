"""Every room keeps the rules of the house."""

import ast
import gc
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/failwell"
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def place(path: Path, node: ast.stmt | ast.expr | ast.excepthandler) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def catch_alls(path: Path) -> Iterator[ast.ExceptHandler]:
    for node in nodes_of(path):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if {"Exception", "BaseException"} & {ast.unparse(one) for one in caught}:
                yield node


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Every node of a module, in no particular order."""
    return list(ast.walk(tree_of(path)))


@pytest.fixture(scope="module", autouse=True)
def _parsed() -> None:
    """Parse everything at once. The collector would visit the hundreds of thousands of nodes again and again."""
    gc.disable()
    for path in MODULES:
        nodes_of(path)
    gc.freeze()
    gc.enable()


def comments_of(path: Path) -> dict[int, str]:
    """Line → comment, with the instructions to tools taken out."""
    readline = io.StringIO(path.read_text(encoding="utf-8")).readline
    found: dict[int, str] = {}
    for token in tokenize.generate_tokens(readline):
        if token.type == tokenize.COMMENT:
            said = re.sub(r"noqa(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?|pyright: ignore(\[.*?\])?", "", token.string)
            found[token.start[0]] = said
    return found


def imports_at_load(path: Path) -> set[str]:
    """The modules of ours that loading `path` loads; not those behind functions or TYPE_CHECKING."""
    found: set[str] = set()
    waiting: list[ast.stmt] = list(tree_of(path).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.If) and not ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            waiting += [*node.body, *node.orelse, *node.finalbody]
        elif isinstance(node, ast.ClassDef | ast.With):
            waiting += node.body
    return found


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """One circle of imports, or nothing."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for below in sorted(graph[name] & graph.keys()):
            if circle := visit(below, [*path, name]):
                return circle
        done.add(name)
        return []

    for name in sorted(graph):
        if circle := visit(name, []):
            return circle
    return []


def test_every_module_says_what_it_does() -> None:
    silent = [str(path.relative_to(ROOT)) for path in MODULES if not ast.get_docstring(tree_of(path))]

    assert silent == []


def test_the_init_of_a_room_says_what_it_is_for_and_at_most_lists_public_names() -> None:
    crowded = [
        str(path.relative_to(ROOT))
        for path in PACKAGE.glob("*/__init__.py")
        if any(
            isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            for node in tree_of(path).body
        )
    ]

    assert crowded == []


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in MODULES}

    assert [
        str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()
    ] == []


def test_nothing_is_caught_without_saying_what() -> None:
    bare = [
        place(path, node)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]

    assert bare == []


def test_nothing_is_swallowed_in_silence() -> None:
    suppressed = [
        place(path, node)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "contextlib.suppress"
    ]
    imported = [
        place(path, node)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom)
        and node.module == "contextlib"
        and any(alias.name == "suppress" for alias in node.names)
    ]

    assert suppressed + imported == []


def test_a_broad_except_says_why() -> None:
    unexplained: list[str] = []
    for path in MODULES:
        handlers = list(catch_alls(path))
        comments = comments_of(path) if handlers else {}
        for caught in handlers:
            nearby = range(caught.lineno - 1, caught.body[0].lineno + 1)
            said = " ".join(comments.get(line, "") for line in nearby)
            if len(re.findall(r"[A-Za-z]{2,}", said)) < 3:
                unexplained.append(place(path, caught))

    assert unexplained == []


def swallows_interrupts(path: Path) -> Iterator[ast.ExceptHandler]:
    """Handlers of everything that neither raise again nor come after one that lets interrupts and exits pass."""
    for node in nodes_of(path):
        if not isinstance(node, ast.Try):
            continue
        passed: set[str] = set()
        for handler in node.handlers:
            types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            names = {ast.unparse(each) for each in types if each is not None}
            raises = any(isinstance(each, ast.Raise) for each in ast.walk(handler))
            if raises:
                passed |= names
            elif "BaseException" in names and not {"KeyboardInterrupt", "SystemExit"} <= passed:
                yield handler


def test_no_broad_except_swallows_an_interrupt_or_an_exit() -> None:
    # In processes of their own these report the exit of somebody else's code as data; the last two raise it: in the
    # thread of the caller, and through the generator that decides about it.
    reporting = {
        PACKAGE / "adapters/doctor/probe.py",
        PACKAGE / "jobs/worker_process/main.py",
        PACKAGE / "calls/streams/plain.py",
        PACKAGE / "store/effects/call.py",
    }

    swallowing = [
        place(path, handler)
        for path in MODULES
        if path not in reporting
        for handler in swallows_interrupts(path)
    ]

    assert swallowing == []


def test_the_search_for_swallowed_interrupts_finds_one(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "try: pass\nexcept BaseException: pass\n"
        "try: pass\nexcept (KeyboardInterrupt, SystemExit): raise\nexcept BaseException: pass\n"
        "try: pass\nexcept BaseException: raise\n"
    )

    assert [handler.lineno for handler in swallows_interrupts(module)] == [2]


def test_no_modules_load_each_other_in_a_circle() -> None:
    graph = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): imports_at_load(path)
        for path in MODULES
    }

    assert cycle_in(graph) == []


def test_the_search_for_circles_finds_one() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": set[str](), "d": {"b", "os"}}

    assert cycle_in(graph) == ["b", "d", "b"]


def test_imports_only_go_down() -> None:
    pytest.importorskip("importlinter", reason="import-linter comes with `make check`")

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as run; run()",
            "--no-cache",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    assert done.returncode == 0, done.stdout + done.stderr
