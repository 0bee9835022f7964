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
                # In a worker these names come from the worker's own copy of this module.
                is_author = isinstance(key, ast.Name) and key.id == "_AUTHOR"
                home = "failwell.jobs.worker_process.author" if is_author else ast.literal_eval(key or value)
                lazy.update(dict.fromkeys(ast.literal_eval(value).split(), home))
    return typed, lazy


def names_of(module: ModuleType) -> list[str]:
    return list(vars(module)["__all__"])


def test_the_front_door_has_at_most_twenty_four_names() -> None:
    assert len(names_of(failwell)) <= 24


def test_a_name_has_one_public_path() -> None:
    """Each integration has its own `reliability`, and a job is submitted to Temporal as it is to a queue."""
    rooms = [name for name in PROMISED if ".integrations." not in name and ".temporal" not in name]
    paths: dict[str, list[str]] = {}
    for module in rooms:
        for name in names_of(import_module(module)):
            paths.setdefault(name, []).append(module)

    assert {name: modules for name, modules in paths.items() if len(modules) > 1} == {}


def test_no_public_name_is_also_a_module_of_its_room() -> None:
    """Importing the module would put it in the place of the name."""
    traps = [
        f"{module}.{name}"
        for module in PROMISED
        for name in names_of(import_module(module))
        if (source := source_of(module)).name == "__init__.py"
        and ((source.parent / f"{name}.py").exists() or (source.parent / name).is_dir())
    ]

    assert traps == []


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


def test_the_promised_api_is_what_was_promised() -> None:
    promised = (HERE / "api.txt").read_text(encoding="utf-8")

    assert api_text() == promised, "if the change is meant: python -m tools.api > tests/house/api.txt"
