"""Every vendor that failwell knows is looked up, tried against the laboratory, and never imported."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from failwell.adapters.classification import Classification
from failwell.adapters.describe import describe
from failwell.adapters.registry import read
from failwell.errors.known_libraries import HOMES
from failwell.testing.laboratory.dialects.table import dialect
from tests.sdks.matrix import caller, caller_names
from tests.specimens import each, failures

ADAPTERS = Path(import_module("failwell.adapters.vendors").__path__[0])
MODULES = sorted(
    ".".join(path.relative_to(ADAPTERS).with_suffix("").parts)
    for path in ADAPTERS.rglob("*.py")
    if path.stem != "__init__"
)
VENDORS = [name for name in MODULES if hasattr(import_module(f"failwell.adapters.vendors.{name}"), "TABLES")]
TABLES: dict[str, dict[str, dict[str, Any]]] = {
    name: import_module(f"failwell.adapters.vendors.{name}").TABLES for name in VENDORS
}
ENTRIES = [(top, cls) for tables in TABLES.values() for top, table in tables.items() for cls in table]

NO_HTTP_SDK = {
    "python": "Python itself; tests/adapters raises each of them",
    "pools": "the standard library; tests/adapters raises each of them",
    "process": "exit codes of processes on this machine",
    "sqlite": "a database in this process",
    "postgresql": "speaks PostgreSQL's protocol; tests/sdks/stores calls a real server",
    "mysql": "speaks MySQL's protocol; tests/sdks/stores answers it",
    "sqlalchemy": "wraps what the drivers raise",
    "redis": "speaks Redis's protocol; tests/sdks/stores calls a real server",
    "mongodb": "speaks MongoDB's protocol; tests/sdks/stores answers it",
    "elasticsearch": "has bodies of its own; tests/sdks/stores answers with them",
    "urllib": "the standard library's client; tests/adapters raises its errors",
    "vector_stores": "have bodies of their own; tests/sdks/stores answers with them",
    "http_sdks": "have nothing of their own; tests/adapters/test_http_sdks.py raises their classes",
    "docker": "speaks to a daemon; tests/sdks/stores answers for it",
    "paramiko": "speaks SSH; tests/sdks/stores answers it",
    "pydantic": "checks values, calls nobody",
    "jsonschema": "checks values, calls nobody",
    "yaml": "parses text, calls nobody",
    "docling": "reads documents on this machine",
    "pypdfium2": "reads documents on this machine",
    "torch": "computes on this machine",
    "numpy": "computes on this machine",
    "jax": "computes on this machine",
    "tenacity": "repeats calls of others and wraps what they raise",
    "langchain_core": "parses what models of other SDKs answered",
    "grpc": "speaks gRPC, which the laboratory does not",
    "websockets": "speaks WebSocket, which the laboratory does not",
    "mcp": "speaks JSON-RPC over pipes and sessions",
    **dict.fromkeys(
        (
            "claude_agent_sdk",
            "crewai",
            "dspy",
            "langgraph",
            "openai_agents",
            "smolagents",
            "agent_framework",
        ),
        "calls through other SDKs and wraps what they raise; tests/sdks/frameworks and engines run it",
    ),
    **dict.fromkeys(
        ("celery", "dbos", "prefect", "ray"),
        "runs tasks; tests/sdks/engines runs them",
    ),
    "temporalio": "speaks gRPC to a cluster of its own",
}
"""Vendor files without a dialect and a caller, each with the reason."""


class Hostile(BaseException):
    """An exception whose every attribute bites; its subclasses borrow the names of real ones."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__str__", "__repr__", "__dict__"):
            return super().__getattribute__(name)
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("str")

    __repr__ = __str__


class Liar(Exception):
    """An exception whose every attribute is there, and nothing that anybody expects."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return {"error": [[self.args, float("nan"), b"\xff"]], "code": object(), "status": -1, None: name}


def _named(base: type[BaseException], top: str, name: str) -> BaseException:
    made = type(name, (base,), {"__module__": top})
    return made("a", 1, None)


@pytest.mark.acceptance("pipelex 38")
@each("name", VENDORS)
def test_a_vendor_file_is_found_by_every_module_it_speaks_for(name: str) -> None:
    homes = {top: HOMES.get(top) for top in TABLES[name]}

    assert homes
    assert set(homes.values()) == {name}


def test_every_home_exists_and_speaks_for_the_module_that_leads_to_it() -> None:
    lost = [(top, home) for top, home in HOMES.items() if top not in TABLES.get(home, {})]

    assert lost == []


@pytest.mark.acceptance("pipelex 38")
@each("name", VENDORS)
def test_a_vendor_file_has_a_dialect_and_a_caller_or_a_reason_for_none(name: str) -> None:
    callers = [one for key in caller_names() if HOMES.get((one := caller(key)).SDK.partition(".")[0]) == name]

    assert bool(callers) != (name in NO_HTTP_SDK), (
        f"{name} needs a caller in tests/sdks/callers or a reason here"
    )
    assert [one.DIALECT for one in callers if dialect(one.DIALECT) is None] == []


@each("name", caller_names())
def test_a_caller_gives_a_reason_for_every_scenario_that_it_leaves_out(name: str) -> None:
    one: Any = caller(name)

    assert all(reason.strip() for reason in one.NOT_HERE.values())
    assert hasattr(one, "call") or hasattr(one, "acall")


@pytest.mark.acceptance("anchors 3.4.2")
def test_no_adapter_imports_the_sdk_that_it_reads() -> None:
    code = (
        "import sys, json\nfrom importlib import import_module\n"
        f"for name in {MODULES!r}:\n    import_module('failwell.adapters.vendors.' + name)\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )

    here = {**os.environ, "PYTHONPATH": str(ADAPTERS.parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=here)
    loaded = set(json.loads(done.stdout))

    assert loaded & (HOMES.keys() - sys.stdlib_module_names) == set()


@pytest.mark.acceptance("anchors 3.4.1")
@pytest.mark.parametrize("base", [Hostile, Liar], ids=["hostile", "lying"])
def test_an_adapter_never_raises_whatever_the_attributes_do(base: type[BaseException]) -> None:
    def check(entry: str) -> None:
        top, _, name = entry.rpartition(".")
        error = _named(base, top, name)

        reading = read(error)
        report = describe(error)

        assert reading is None or isinstance(reading, Classification)
        assert report.evidence[0].rule not in ("adapter_failed", "describe_failed")

    assert failures((f"{top}.{name}" for top, name in ENTRIES), check) == []
