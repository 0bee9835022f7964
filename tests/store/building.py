"""Builders for what a journal holds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from failwell.store.event import Fact
from failwell.store.run_store import Store
from failwell.store.sqlite.run_store import SqliteStore
from failwell.testing.memory_store import MemoryStore

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "state"),
}


def a_fact(type_: str = "node:started", at: float = 100.0, **data: Any) -> Fact:
    return (type_, at, data or {"path": "build"})


def started(at: float = 100.0, **data: Any) -> Fact:
    return ("run:started", at, {"workflow": "nightly", **data})


def completed(at: float = 200.0) -> Fact:
    return ("run:completed", at, {"outputs": {}})


def failed(at: float = 200.0, kind: str = "external.git.drift", node: str = "build") -> Fact:
    envelope: dict[str, Any] = {"kind": kind, "message": "the tree has moved", "details": {}}
    return ("run:failed", at, {"failure": {"envelope": envelope}, "node": node})


def a_run(store: Store, run: str = "r1", *facts: Fact, at: float = 100.0, **more: Any) -> str:
    """Record a run with these facts after its start."""
    about: dict[str, Any] = {"workflow": "nightly", **more}
    store.create(run, at=at, **about, facts=[started(at), *facts])
    return run
