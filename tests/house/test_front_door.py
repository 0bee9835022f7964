"""The public modules: lazy, complete, and listed alike for people, checkers and the interpreter."""

import ast
import inspect
import pydoc
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import failwell
from tests.specimens import each
from tools.api import PROMISED, api_text

HERE = Path(__file__).resolve().parent
SRC = HERE.parents[1] / "src"


def source_of(name: str) -> Path:
    path = SRC / name.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def lazy_modules() -> list[str]:
    """The public modules that load their names on first use."""
    return [
        name for name in PROMISED if "failwell._lazy import" in source_of(name).read_text(encoding="utf-8")
    ]


def tables(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Name to module, as a type checker reads them and as the interpreter does."""
    typed: dict[str, str] = {}
    lazy: dict[str, str] = {}
    for node in ast.walk(ast.parse(source_of(name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                if isinstance(statement, ast.ImportFrom):
                    for alias in statement.names:
                        assert alias.asname == alias.name, f"{name}: re-export `{alias.name}` as itself"
                        typed[alias.name] = statement.module or ""
        table = None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names":
            table = node.args[1]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            table = node.value
        if table is not None:
            assert isinstance(table, ast.Dict), name
            for key, value in zip(table.keys, table.values, strict=True):
                assert isinstance(key, ast.Constant), name
                # In a worker these names come from the worker's own copy of this module.
                is_author = isinstance(value, ast.Name) and value.id == "_AUTHOR"
                lazy[str(key.value)] = (
                    "failwell.jobs.worker_process.author" if is_author else ast.literal_eval(value)
                )
    return typed, lazy


def names_of(module: ModuleType) -> list[str]:
    return list(vars(module)["__all__"])


def test_the_core_has_at_most_thirty_names() -> None:
    assert len(names_of(failwell)) <= 30


def test_checkers_and_the_interpreter_find_each_name_in_the_same_module() -> None:
    for name in lazy_modules():
        typed, lazy = tables(name)

        assert lazy, name
        assert typed == lazy, name


@each("name", PROMISED)
def test_a_public_module_lists_shows_and_resolves_its_names(name: str) -> None:
    module = import_module(name)
    names = names_of(module)

    assert names == sorted(names), name
    assert set(names) <= set(dir(module)), name
    assert [one for one in names if getattr(module, one, None) is None] == [], name
    help_text = pydoc.plain(pydoc.render_doc(module))
    assert [one for one in names if one not in help_text and one != "__version__"] == [], name


@each("name", PROMISED)
def test_everything_public_is_documented(name: str) -> None:
    module = import_module(name)
    bare = [
        one
        for one in names_of(module)
        if (inspect.isclass(value := getattr(module, one)) or inspect.isfunction(value))
        and not inspect.getdoc(value)
    ]

    assert inspect.getdoc(module)
    assert bare == []


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    for name in lazy_modules():
        with pytest.raises(AttributeError, match="no_such_name"):
            getattr(import_module(name), "no_such_name")  # noqa: B009


"""The package without its types: a checker does not know the old names."""


def test_the_promised_api_is_what_was_promised() -> None:
    promised = (HERE / "api.txt").read_text(encoding="utf-8")

    assert api_text() == promised, "if the change is meant: python -m tools.api > tests/house/api.txt"
