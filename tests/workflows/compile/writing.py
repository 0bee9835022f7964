"""Workflow files for tests: a whole one around the part that matters."""

from collections.abc import Mapping
from textwrap import dedent, indent

from failwell.calls.policy import Retry, RetryState, decide
from failwell.errors.axes import Category
from failwell.errors.facts import NotBefore
from failwell.files.mistakes import Mistake
from failwell.workflows.compile.compiler import Compiled, compile_loaded
from failwell.workflows.compile.step_index import WorkflowMistakes
from failwell.workflows.failure import Failure
from failwell.workflows.plan import Node, Plan
from tests.files.reading import load_text

HEAD = "workflow: {name: demo, entry_point: work}\n"


def with_step(step: str) -> str:
    """A file whose one step is `step`, its keys written from column 1 on."""
    body = indent(dedent(step).strip(), "    ")
    return f"{HEAD}agents:\n  - {body[4:]}\n"


def with_route(route: str, more: str = "") -> str:
    """A file whose script `work` has the one route `route`, written in flow style."""
    return with_step(f"name: work\ntype: script\ncommand: run\n{more}routes:\n  - {route}\n")


def compile_text(
    text: str,
    *,
    file: str = "workflow.yaml",
    environ: Mapping[str, str] | None = None,
    allow_outside: bool = False,
) -> Compiled:
    """Compile a text as if it stood in `file`."""
    log = WorkflowMistakes()
    loaded = load_text(text, file, log, environ or {}, allow_outside=allow_outside)
    return compile_loaded(lambda: (loaded, log), file)


def compiled(text: str, **environ: str) -> Compiled:
    """The file as it is read, with nothing but `environ` for variables."""
    return compile_text(text, file="flow.yaml", environ=environ)


def plan_of(text: str, **environ: str) -> Plan:
    """The plan of a file in which nothing is wrong."""
    done = compiled(text, **environ)
    assert done.mistakes == ()
    assert done.plan is not None
    return done.plan


def node_of(step: str, **environ: str) -> Node:
    """The one node of a file with one step."""
    (node,) = plan_of(with_step(step), **environ).nodes.values()
    return node


def mistakes_in(text: str, **environ: str) -> list[Mistake]:
    """What is wrong in a file, which then has no plan."""
    done = compiled(text, **environ)
    assert done.plan is None
    assert done.mistakes
    return list(done.mistakes)


def the_mistake(text: str, **environ: str) -> Mistake:
    """The one mistake in a file."""
    (mistake,) = mistakes_in(text, **environ)
    return mistake


def wait_of(
    node: Node, kind: str, calls: int = 1, *, category: str | None = None, after: float | None = None
) -> float | None:
    """The seconds after which the node's own `retry` repeats a failure of `kind`; `None` if it does not."""
    assert node.retry is not None
    requested = None if after is None else NotBefore(after=after, source="test")
    report = Failure.of(
        kind, "m", category=None if category is None else Category(category), not_before=requested
    ).report
    decision = decide(node.retry, report, RetryState(attempts=calls, idempotent=True))
    return decision.after if isinstance(decision, Retry) else None
