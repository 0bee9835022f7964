"""The package root: one table, read by people, checkers and the interpreter alike."""

import ast
from pathlib import Path
from typing import cast

import pytest

import failwell
from tools.api import api_text

HERE = Path(__file__).resolve().parent
ROOT_SOURCE = HERE.parents[1] / "src/failwell/__init__.py"


def root_tree() -> ast.Module:
    return ast.parse(ROOT_SOURCE.read_text(encoding="utf-8"))


def lazy_table() -> dict[str, str]:
    """The table of lazy names: the one dict of the root that maps names to our modules."""
    found: list[dict[str, str]] = []
    for node in root_tree().body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Dict) and value.values:
            table = cast("dict[object, object]", ast.literal_eval(value))
            if all(isinstance(home, str) and home.startswith("failwell.") for home in table.values()):
                found.append(cast("dict[str, str]", table))
    assert len(found) == 1, "the root keeps one table of lazy names"
    return found[0]


def typed_block() -> dict[str, str]:
    """Name → module, as a type checker reads them."""
    names: dict[str, str] = {}
    for node in root_tree().body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom), ast.unparse(statement)
                for alias in statement.names:
                    assert alias.asname == alias.name, f"re-export `{alias.name}` as itself"
                    names[alias.name] = statement.module or ""
    return names


def test_what_is_exported_is_what_the_table_holds() -> None:
    assert sorted(failwell.__all__) == sorted(lazy_table())


def test_checkers_and_the_interpreter_find_each_name_in_the_same_module() -> None:
    assert typed_block() == lazy_table()


def test_every_exported_name_resolves() -> None:
    missing = [name for name in failwell.__all__ if getattr(failwell, name, None) is None]

    assert missing == []


def test_every_exported_name_is_listed_by_dir() -> None:
    assert set(failwell.__all__) <= set(dir(failwell))


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(failwell, "no_such_name")  # noqa: B009


def test_the_promised_api_is_what_was_promised() -> None:
    promised = (HERE / "api.txt").read_text(encoding="utf-8")

    assert api_text() == promised, "if the change is meant: python -m tools.api > tests/house/api.txt"
