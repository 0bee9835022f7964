"""The options of a retry loop are written once: a file more that lists them is a file more to change for each new one."""

import ast
from pathlib import Path

from failwell.calls.retry_options import RetryParameters

SRC = Path(__file__).resolve().parents[2] / "src/failwell"
ELSEWHERE = frozenset(
    {"account", "clock", "model", "name", "on", "options", "policy", "provider", "stream", "timeout"}
)
"""Names that mean other things in other functions."""
OPTIONS = frozenset(RetryParameters.__annotations__) - ELSEWHERE
MANY = 4
"""A function or class with that many of the names lists the options."""
LISTS = {"calls/retry_options.py", "calls/chain/entry.py"}


def names_of(scope: ast.AST) -> set[str]:
    """The parameters of a function, or the fields of a class."""
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = scope.args
        return {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    if isinstance(scope, ast.ClassDef):
        fields = [each.target for each in scope.body if isinstance(each, ast.AnnAssign)]
        return {field.id for field in fields if isinstance(field, ast.Name)}
    return set()


def test_at_most_two_files_list_the_options_of_a_retry_loop() -> None:
    lists = {
        str(file.relative_to(SRC))
        for file in SRC.rglob("*.py")
        for scope in ast.walk(ast.parse(file.read_text()))
        if len(names_of(scope) & OPTIONS) >= MANY
    }

    assert lists == LISTS
