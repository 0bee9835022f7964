"""The public modules: lazy, complete, and listed alike for people, checkers and the interpreter."""

import ast
import inspect
import pydoc
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import failwell
from failwell.policies import RetryOptions, SharedBudget
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
                lazy[str(key.value)] = "failwell.jobs.child.author" if is_author else ast.literal_eval(value)
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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Domain", "failwell.faults.Domain"),
        ("ProviderMetadata", "failwell.faults.ProviderMetadata"),
        ("ResourceShortfall", "failwell.faults.ResourceShortfall"),
        ("Scene", "failwell.reports.Scene"),
        ("scene", "failwell.reports.scene"),
        ("SharedBudget", "failwell.policies.SharedBudget"),
        ("TracebackPolicy", "failwell.reports.TracebackPolicy"),
        ("UserAction", "failwell.faults.UserAction"),
        ("check_reply", "failwell.reports.check_reply"),
        ("kind", "failwell.faults.kind"),
        ("kinds", "failwell.faults.kinds"),
        ("quiet_client", "failwell.without_sdk_retries"),
        ("register_code", "failwell.faults.register_code"),
        ("register_kind", "failwell.faults.register_kind"),
        ("revive", "failwell.faults.revive"),
        ("translate", "failwell.faults.translate"),
        ("unclassified", "failwell.reports.unclassified"),
    ],
)
def test_a_name_that_left_the_core_works_and_says_where_it_is_now(old: str, new: str) -> None:
    home, _, name = new.rpartition(".")

    with pytest.warns(DeprecationWarning, match=rf"`failwell\.{old}` is deprecated: use `{new}`") as caught:
        value = getattr(failwell, old)

    assert value is getattr(import_module(home), name)
    assert caught[0].filename == __file__
    assert old not in dir(failwell)


@pytest.mark.parametrize(
    ("statement", "new"),
    [
        ("from failwell.delivery.agent import agent_json, agent_markdown", "failwell.reports.agent_json"),
        ("from failwell.delivery.asgi import FailwellMiddleware, OnReport", "failwell.http.OnReport"),
        ("from failwell.delivery.log import JsonFormatter, log_report", "failwell.logging.JsonFormatter"),
        ("from failwell.delivery.mcp import tool_result", "failwell.integrations.mcp.tool_result"),
        ("from failwell.delivery.otel import emit", "failwell.otel.emit"),
        ("from failwell.delivery.panel import panel", "failwell.reports.panel"),
        ("from failwell.delivery.problem import from_problem, problem", "failwell.http.from_problem"),
        ("from failwell.delivery.sentry import before_send", "failwell.sentry.before_send"),
        ("from failwell.delivery.starlette import install", "failwell.integrations.starlette.install"),
        ("from failwell.delivery.structlog import report_exception", "failwell.integrations.structlog"),
        ("from failwell.delivery.text import render_text", "failwell.reports.render_text"),
        ("from failwell.jobs.supervisor import SupervisedWorker", "failwell.jobs.SupervisedWorker"),
        ("from failwell.runtime.operation import Retrying", "failwell.policies.RetryOptions"),
        ("from failwell.runtime.bridges.celery import retry_task", "failwell.integrations.celery"),
        ("from failwell.runtime.bridges.langgraph import retry_on", "failwell.integrations.langgraph"),
        ("from failwell.runtime.bridges.pydantic_ai import fallback_on", "failwell.integrations.pydantic_ai"),
        ("from failwell.runtime.bridges.stamina import retry_on", "failwell.integrations.stamina.retry_on"),
        ("from failwell.runtime.bridges.temporal import retry_policy", "failwell.integrations.temporal"),
        ("from failwell.runtime.bridges.tenacity import wait_failwell", "failwell.integrations.tenacity"),
        ("from failwell.runtime.chain import ChainPolicy", "failwell.ChainPolicy"),
        ("from failwell.runtime.guard import ClosedOff, Guard", "failwell.policies.Guard"),
        ("from failwell.runtime.purse import Purse", "failwell.policies.SharedBudget"),
    ],
)
def test_an_old_path_that_guides_have_shown_works_and_says_where_it_is_now(statement: str, new: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(statement, {})

    assert caught, statement
    assert all(issubclass(one.category, DeprecationWarning) for one in caught)
    assert any(f"use `{new}" in str(one.message) for one in caught), [str(one.message) for one in caught]


def _answer() -> int:
    return 42


UNTYPED: Any = failwell
"""The package without its types: a checker does not know the old names."""
ENTRY = failwell.Entry(provider="acme", model="large", call=_answer)


BUDGET = SharedBudget(failwell.Budget(attempts=50))


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (lambda: UNTYPED.retry(purse=BUDGET), "purse", "budget"),
        (lambda: UNTYPED.retry(luck=lambda: 0.5), "luck", "jitter"),
        (lambda: UNTYPED.retry(how=RetryOptions(budget=BUDGET)), "how", "options"),
        (lambda: next(iter(UNTYPED.retrying(purse=BUDGET))), "purse", "budget"),
        (lambda: UNTYPED.Chain(ENTRY, purse=BUDGET).call(), "purse", "budget"),
        (lambda: UNTYPED.Chain(ENTRY, luck=lambda: 0.5).call(), "luck", "jitter"),
        (lambda: import_module("failwell.jobs").Runtime(shelf="folder"), "shelf", "registry"),
    ],
)
def test_a_parameter_works_by_its_old_name_and_says_the_new_one(
    call: Callable[[], object], old: str, new: str
) -> None:
    expected = rf"the parameter `{old}` is deprecated: use `{new}`"
    with pytest.warns(DeprecationWarning, match=expected) as caught:
        call()

    assert caught[0].filename == __file__


def test_a_parameter_by_both_of_its_names_is_refused() -> None:
    old_and_new: Any = {"luck": lambda: 0.5, "jitter": lambda: 0.5}
    with pytest.raises(TypeError, match="`luck` is the old name of `jitter`"):
        failwell.retry(**old_and_new)


def test_the_old_class_of_retry_options_takes_the_old_parameters() -> None:
    module: Any = import_module("failwell.runtime.operation")
    with pytest.warns(DeprecationWarning, match=r"failwell\.policies\.RetryOptions"):
        old = module.Retrying
    with pytest.warns(DeprecationWarning, match="`purse` is deprecated: use `budget`"):
        options = old(provider="acme", purse=BUDGET)

    assert options == RetryOptions(provider="acme", budget=BUDGET)


def test_the_promised_api_is_what_was_promised() -> None:
    promised = (HERE / "api.txt").read_text(encoding="utf-8")

    assert api_text() == promised, "if the change is meant: python -m tools.api > tests/house/api.txt"
