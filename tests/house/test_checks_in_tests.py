"""Every test checks something: a test that only calls code fails for a crash alone."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKS = frozenset({"raises", "warns", "fail", "skip", "validate", "check_schema", "compile"})
"""Calls that raise if what they look at is wrong."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_in(*folders: str) -> list[tuple[Path, Function]]:
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [
        (path, node)
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, Function)
    ]


def calls_of(function: Function) -> set[str]:
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}


def without_checks(functions: list[tuple[Path, Function]]) -> list[str]:
    """The tests that hold no assertion and call no helper that holds one."""
    calls: dict[str, set[str]] = defaultdict(set)
    checking = set(CHECKS)
    for _, function in functions:
        calls[function.name] |= calls_of(function)
        if any(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(function)):
            checking.add(function.name)
    while more := {name for name in calls.keys() - checking if calls[name] & checking}:
        checking |= more
    return [
        f"{path.name}:{function.lineno} {function.name}"
        for path, function in functions
        if function.name.startswith("test_") and function.name not in checking
    ]


@pytest.mark.slow
def test_every_test_checks_something() -> None:
    assert without_checks(functions_in("tests", "fuzz")) == []


def test_a_test_without_a_check_is_named() -> None:
    source = (
        "def test_it():\n    work()\n\ndef test_other():\n    helper()\n\ndef helper():\n    assert work()\n"
    )
    functions = [
        (Path("test_x.py"), node) for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)
    ]

    assert without_checks([*functions]) == ["test_x.py:1 test_it"]
