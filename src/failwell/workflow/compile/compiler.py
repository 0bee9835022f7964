"""`compile_file` and `compile_text`: a workflow file, read as a whole."""

import gc
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from failwell.fault.frozen import frozen
from failwell.files.disk import Refused, unreadable
from failwell.files.includes import Loaded, load, load_text
from failwell.files.item_tree import Item, Place
from failwell.files.mistakes import Mistake
from failwell.files.value_types import Invalid
from failwell.workflow.compile.file_shape import FILE
from failwell.workflow.compile.step_index import FLOW, SECTIONS, WorkflowProblems, named_steps
from failwell.workflow.plan import ForEachSpec, Limits, Node, Notifications, Plan, WorkflowSpec


@frozen
class PartialPlan:
    """What could be read of a file with mistakes in its shape, and what is not known because of them."""

    plan: Plan
    unsure: frozenset[str]
    """`step_index.FLOW`, `NAMES`, `INPUTS`, `KINDS`: what is not known in full."""
    incomplete: frozenset[str]
    """Steps with a mistake in them."""
    unreadable: frozenset[str]
    """Steps of which only the name is known."""


@frozen
class Compiled:
    """A file that was read: its plan if it can be used, and everything that is wrong with it."""

    plan: Plan | None
    mistakes: tuple[Mistake, ...]
    files: Mapping[str, tuple[str, str]]
    """Path → digest and text as it stands on disk: the root first, then what it includes."""
    veiled: frozenset[Place] = frozenset()
    """Places whose text came from environment variables and must not be quoted."""
    partial: PartialPlan | None = None
    """For a file that has no plan: the part of it that the checks of the whole file can still be made on."""


def compile_file(
    path: str | os.PathLike[str], *, environ: Mapping[str, str], allow_outside: bool = False
) -> Compiled:
    """The workflow file at `path`; `environ` gives the variables it may name.

    Raises:
        Validation: there is no such file, or it may not be read.
    """
    file = os.fspath(path)

    def source(problems: WorkflowProblems) -> Loaded:
        try:
            return load(file, problems, environ, allow_outside=allow_outside)
        except OSError as error:
            raise unreadable(file, error) from None
        except Refused as refused:
            from failwell.fault.classes import Validation

            raise Validation(kind=refused.kind, message=refused.message) from None

    return _compiled(source, file)


def compile_text(
    text: str,
    *,
    file: str = "workflow.yaml",
    environ: Mapping[str, str] | None = None,
    allow_outside: bool = False,
    held: Mapping[str, str] | None = None,
) -> Compiled:
    """A workflow that is at hand as text; `file` is its name, and where its includes start from.

    With `held` (path → text, such as a run has recorded) includes come from there and not from disk.
    """

    def source(problems: WorkflowProblems) -> Loaded:
        return load_text(text, file, problems, environ or {}, allow_outside=allow_outside, held=held)

    return _compiled(source, file)


@contextmanager
def without_garbage_collection() -> Generator[None]:
    """Pause the collector: reading and checking create many objects and no garbage, so it only costs time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _compiled(source: Callable[[WorkflowProblems], Loaded], file: str) -> Compiled:
    problems = WorkflowProblems()
    with without_garbage_collection():
        # The tree is given up before the collector is let in again, so that it has half as much to look at.
        plan, files, veiled = _read(source, file, problems)
    if (plan is None or problems.errors) and not problems.found:
        # A part that could not be read and was not complained of must never pass for a good file.
        problems.add(
            "the file cannot be compiled, and no reason was noted",
            None,
            kind="internal.bug",
            hint="report it",
        )
    texts = {path: text for path, (_, text) in files.items()}
    mistakes = problems.finish(texts) if problems.found else ()
    if plan is None or not problems.errors:
        return Compiled(plan=plan, mistakes=mistakes, files=files, veiled=veiled)
    partial = PartialPlan(
        plan=plan,
        unsure=frozenset(problems.unsure),
        incomplete=frozenset(problems.incomplete),
        unreadable=frozenset(problems.unreadable),
    )
    return Compiled(plan=None, mistakes=mistakes, files=files, veiled=veiled, partial=partial)


def _read(
    source: Callable[[WorkflowProblems], Loaded], file: str, problems: WorkflowProblems
) -> tuple[Plan | None, Mapping[str, tuple[str, str]], frozenset[Place]]:
    loaded = source(problems)
    root = loaded.root
    if root is None:
        if not problems.found:
            start = Place(file=file, line=1, column=1)
            problems.add("the file is empty", start, hint="begin with `workflow:` and `agents:`")
        return None, loaded.files, frozenset()
    plan = _plan(loaded, root, file, problems)
    problems.steps.clear()
    veiled: list[Place] = []
    if any("${" in text for _, text in loaded.files.values()):
        veiled = [item.place for item in root.walk() if item.veiled]
    return plan, loaded.files, frozenset(veiled)


def _plan(loaded: Loaded, root: Item, file: str, problems: WorkflowProblems) -> Plan | None:
    if root.keys is not None:
        problems.index(root)
    values = FILE.read(root, (), problems)
    if isinstance(values, Invalid):
        values = values.rest
        if values is None:
            return None
    nodes = _nodes(values, root, problems)
    head: dict[str, Any] = {"name": "", "entry_point": "", **values.get("workflow", {})}
    context: dict[str, Any] = head.get("context") or {}
    runtime: dict[str, Any] = dict(head.get("runtime") or {})
    runtime |= {key: head[key] for key in ("cost", "mcp") if key in head}
    if len(context) > ("mode" in context):
        runtime["context"] = {key: value for key, value in context.items() if key != "mode"}
    return Plan(
        name=head["name"],
        entry=head["entry_point"],
        nodes=nodes,
        file=file,
        digest=loaded.digest,
        description=head.get("description", ""),
        version=head.get("version", ""),
        inputs=head.get("input") or {},
        context_mode=context.get("mode", "accumulate"),
        limits=head.get("limits") or Limits(),
        output=values.get("output") or {},
        kinds=values.get("kinds") or {},
        hooks=head.get("hooks") or {},
        metadata=head.get("metadata") or {},
        notifications=_notifications(head),
        runtime=runtime,
        tools=values.get("tools", ()),
        instructions=head.get("instructions", ()),
        children=_children(nodes, file),
    )


def _notifications(head: Mapping[str, Any]) -> Notifications | None:
    """The declared notifications; without a namespace of their own they have the workflow's name."""
    declared: Notifications | None = head.get("notifications")
    if declared is None or declared.namespace:
        return declared
    words = "".join(char if char.isalnum() else " " for char in head["name"].lower()).split()
    return Notifications(namespace="_".join(words), correlation=declared.correlation, types=declared.types)


def _nodes(values: dict[str, Any], root: Item, problems: WorkflowProblems) -> dict[str, Node]:
    """Every step and group by name; two of one name are a mistake."""
    nodes: dict[str, Node] = {}
    first: dict[str, Item] = {}
    for section, index, _, name in named_steps(root):
        if name.value in first:
            quoted = "" if name.veiled else f" `{name.value[:100]}`"
            where = first[name.value].place
            problems.unsure.add(FLOW)
            problems.wrong(
                name,
                ((((), section), index), "name"),
                f"the name{quoted} is used twice",
                hint=f"steps and groups share their names; the other one is in line {where.line}",
                also=(where,),
            )
        first.setdefault(name.value, name)
    for section in SECTIONS:
        nodes |= {node.name: node for node in values.get(section, ())}
    if not first and not problems.errors:
        problems.wrong(root, (), "the workflow has no steps", hint="add them under `agents`")
    return nodes


def _children(nodes: Mapping[str, Node], file: str) -> tuple[str, ...]:
    """Files of sub-workflows whose path is plain."""
    paths: dict[str, None] = {}
    folder = os.path.dirname(file)  # noqa: PTH120
    todo = list(nodes.values())
    while todo:
        spec = todo.pop().spec
        if isinstance(spec, ForEachSpec):
            todo.append(spec.body)
        elif isinstance(spec, WorkflowSpec) and spec.path.is_plain and "@" not in spec.path.text:
            paths[os.path.normpath(os.path.join(folder, spec.path.text))] = None  # noqa: PTH118
    return tuple(sorted(paths))
