"""Which types of node can be run here, and what the others need."""

from collections.abc import Iterator

from failwell.files.mistakes import Mistake
from failwell.workflow.check.context import Look, error

EXECUTORS: dict[str, str] = {"agent": "agents", "job": "jobs", "tool": "agents"}
"""Type of node → the extra that brings its executor. Every other type runs without one."""

BUILT_IN: frozenset[str] = frozenset({"job"})
"""Types of `EXECUTORS` that this installation can run."""


def executors(look: Look) -> Iterator[Mistake]:
    """Nodes that nothing here can run."""
    for node, _, path, _ in look.everything:
        extra = EXECUTORS.get(node.type)
        if extra is not None and node.type not in look.available:
            yield error(
                node.place,
                f"`{node.name}` is of type `{node.type}`, and this type of node needs the extra `{extra}`,"
                " which is not installed here",
                path=f"{path}.type",
                hint=f"install `failwell[{extra}]`",
            )
