"""`compile_file`: from a workflow file to its plan and its mistakes.

A file with one agent is read as a workflow with one step, and a state machine in Python as if a file had held it.
"""

import gc
import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, cast

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.errors.faults import Validation
from failwell.errors.frozen import frozen
from failwell.files.disk import Refused, kind_of, read
from failwell.files.includes import Loaded, load
from failwell.files.item_tree import Item, Place, is_map
from failwell.files.mistakes import Mistake
from failwell.files.value_types import Invalid
from failwell.workflows.compile.file_shape import FILE
from failwell.workflows.compile.names import REGISTRY_HINT, registry_refusal
from failwell.workflows.compile.step_index import FLOW, SECTIONS, WorkflowMistakes, named_steps
from failwell.workflows.plan import ForEachSpec, Limits, Node, Notifications, Plan, WorkflowSpec
from failwell.workflows.stages.state_machine import machine_in

_MARKS = frozenset({"model", "system_prompt", "agent"})
"""Keys that only an agent has. One of them, and no key of a workflow, makes a file an agent."""
_OF_WORKFLOWS = frozenset({"workflow", "agents", "parallel", "for_each"})
_OF_THE_FILE = ("tools", "kinds")
_OF_THE_HEAD = ("limits", "cost", "instructions", "metadata")
_OTHER_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")


def is_agent_file(root: Item) -> bool:
    """Whether a file holds one agent instead of a workflow."""
    keys = root.keys
    return keys is not None and not _MARKS.isdisjoint(keys) and _OF_WORKFLOWS.isdisjoint(keys)


def as_workflow(root: Item) -> Item:
    """The workflow whose only step is the agent of the file. Every value keeps its place."""
    values: dict[str, Item] = dict(root.value)
    name = values.get("name") or _item(root, _name(root.file))
    file: dict[str, Item] = {}
    head: dict[str, Item] = {"name": name, "entry_point": name}
    for key in _OF_THE_FILE:
        # A list of names belongs to the agent; definitions belong to the file.
        if key in values and (key != "tools" or is_map(values[key].value)):
            file[key] = values.pop(key)
    for key in _OF_THE_HEAD:
        if key in values:
            head[key] = values.pop(key)
    runtime = values.pop("runtime", None)
    if "mcp_servers" in values:
        inner: dict[str, Item] = {} if runtime is None or not is_map(runtime.value) else dict(runtime.value)
        runtime = _mapping(runtime or root, {**inner, "mcp_servers": values.pop("mcp_servers")})
    if runtime is not None:
        head["runtime"] = runtime
    values.setdefault("name", name)
    values.setdefault("routes", _item(root, [_mapping(root, {"to": _item(root, "$end")})]))
    agents = _item(root, [_mapping(root, values)])
    return _mapping(root, {"workflow": _mapping(root, head), **file, "agents": agents})


def _name(file: str) -> str:
    return _OTHER_CHARACTERS.sub("-", PurePath(file).stem).strip("-") or "agent"


def _item(near: Item, value: Any) -> Item:
    return Item(value, near.line, near.column, near.file, near.folder)


def _mapping(near: Item, values: dict[str, Item]) -> Item:
    item = _item(near, values)
    known = near.keys or {}
    item.keys = {key: known.get(key, (value.line, value.column)) for key, value in values.items()}
    return item


@frozen
class PartialPlan:
    """The part of a file with mistakes that could be read, and what is not known because of them."""

    plan: Plan
    unknown_topics: frozenset[str]
    """Which of `step_index.FLOW`, `NAMES`, `INPUTS` and `KINDS` are not known in full."""
    incomplete: frozenset[str]
    """Steps with a mistake in them."""
    unreadable: frozenset[str]
    """Steps of which only the name is known."""


@frozen
class Compiled:
    """A compiled file: its plan, and every mistake in it."""

    plan: Plan | None
    """`None` if the file has errors."""
    mistakes: tuple[Mistake, ...]
    files: Mapping[str, tuple[str, str]]
    """Path → digest and text as on disk: the root first, then its includes."""
    partial: PartialPlan | None = None
    """For a file without a plan: the part that the rules can still check."""


def compile_file(
    path: str | os.PathLike[str], *, environ: Mapping[str, str], allow_outside: bool = False
) -> Compiled:
    """Compile the workflow file at `path`; `environ` has the variables that it may use. A Python file is imported.

    Raises:
        Validation: there is no such file, or it may not be read.
    """
    file = os.fspath(path)

    def load_root() -> tuple[Loaded, WorkflowMistakes]:
        log = WorkflowMistakes()
        try:
            if file.endswith(".py"):
                return load_python(file), log
            return load(file, log, environ, allow_outside=allow_outside), log
        except OSError as error:
            if isinstance(error, FileNotFoundError) and (refusal := registry_refusal(file)) is not None:
                raise _not_supported(refusal) from None
            raise _unreadable(file, error) from None
        except Refused as refused:
            raise Validation(kind=refused.kind, message=refused.message) from None

    return compile_loaded(load_root, file)


def _unreadable(file: str, error: OSError) -> Validation:
    """The fault for a workflow file that cannot be opened."""
    kind = kind_of(error)
    reason = {
        "validation.path_not_found": "there is no such file",
        "validation.path_wrong_type": "it is a folder, or lies below a file",
        "validation.path_denied": "it may not be read",
    }[kind]
    return Validation(kind=kind, message=f"cannot read the workflow `{file}`: {reason}")


def _not_supported(refusal: str) -> Validation:
    action = UserAction(ActionKind.CHANGE_INPUT, REGISTRY_HINT)
    return Validation(kind="validation.path_not_found", message=refusal, user_action=action)


@contextmanager
def without_garbage_collection() -> Generator[None]:
    """Pause the garbage collector: compiling a workflow creates many objects and hardly any garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def compile_loaded(load_root: Callable[[], tuple[Loaded, WorkflowMistakes]], file: str) -> Compiled:
    """Compile the tree that `load_root` reads, and add to its mistakes; `file` is its path."""
    with without_garbage_collection():
        # The tree is freed before the collector runs again, which then has half as much to look at.
        plan, files, log = _read(load_root, file)
    if (plan is None or log.errors) and not log.mistakes:
        # A part that was not read and not reported must never pass as valid.
        log.add(
            "the file cannot be compiled, and no reason was noted",
            None,
            kind="internal.bug",
            hint="report it",
        )
    mistakes = log.finish({path: text for path, (_, text) in files.items()}) if log.mistakes else ()
    if plan is None or not log.errors:
        return Compiled(plan=plan, mistakes=mistakes, files=files)
    partial = PartialPlan(
        plan=plan,
        unknown_topics=frozenset(log.unknown_topics),
        incomplete=frozenset(log.incomplete),
        unreadable=frozenset(log.unreadable),
    )
    return Compiled(plan=None, mistakes=mistakes, files=files, partial=partial)


def _read(
    load_root: Callable[[], tuple[Loaded, WorkflowMistakes]], file: str
) -> tuple[Plan | None, Mapping[str, tuple[str, str]], WorkflowMistakes]:
    loaded, log = load_root()
    root = loaded.root
    if root is None:
        if not log.mistakes:
            start = Place(file=file, line=1, column=1)
            log.add("the file is empty", start, hint="begin with `workflow:` and `agents:`")
        return None, loaded.files, log
    plan = _plan(loaded, as_workflow(root) if is_agent_file(root) else root, file, log)
    log.steps.clear()
    return plan, loaded.files, log


def _plan(loaded: Loaded, root: Item, file: str, log: WorkflowMistakes) -> Plan | None:
    if root.keys is not None:
        log.index(root)
    values = FILE.read(root, (), log)
    if isinstance(values, Invalid):
        values = values.partial
        if values is None:
            return None
    nodes = _nodes(values, root, log)
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
        files=tuple(loaded.files),
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
        tools=tuple(values.get("tools") or ()),
        tool_definitions=_definitions(values.get("tools")),
        instructions=head.get("instructions", ()),
        children=_children(nodes, file),
    )


def _definitions(tools: object) -> dict[str, Any]:
    return cast("dict[str, Any]", tools) if isinstance(tools, dict) else {}


def _notifications(head: Mapping[str, Any]) -> Notifications | None:
    """The declared notifications. Their default namespace is the name of the workflow."""
    declared: Notifications | None = head.get("notifications")
    if declared is None or declared.namespace:
        return declared
    words = "".join(char if char.isalnum() else " " for char in head["name"].lower()).split()
    return Notifications(namespace="_".join(words), correlation=declared.correlation, types=declared.types)


def _nodes(values: dict[str, Any], root: Item, log: WorkflowMistakes) -> dict[str, Node]:
    """Every step and group by name. Two with the same name are a mistake."""
    nodes: dict[str, Node] = {}
    originals: dict[str, Item] = {}
    for section, index, _, name in named_steps(root):
        if name.value in originals:
            quoted = "" if name.from_env else f" `{name.value[:100]}`"
            original = originals[name.value].place
            log.unknown_topics.add(FLOW)
            log.add_at(
                name,
                ((((), section), index), "id" if section == "stages" else "name"),
                f"the name{quoted} is used twice",
                hint=f"steps and groups share their names; the other is in line {original.line}",
                also=(original,),
            )
        originals.setdefault(name.value, name)
    for section in SECTIONS:
        entries = values.get(section, ())
        if section == "stages":
            # Each with the groups that run its successors side by side.
            entries = [node for stage in entries for node in stage]
        nodes |= {node.name: node for node in entries}
    if not originals and not log.errors:
        log.add_at(root, (), "the workflow has no steps", hint="add them under `agents` or `stages`")
    return nodes


def _children(nodes: Mapping[str, Node], file: str) -> tuple[str, ...]:
    """Files of sub-workflows whose path has no template."""
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


def load_python(file: str) -> Loaded:
    """Import the module at `file`, and return the tree of its state machine.

    Raises:
        OSError: it cannot be read.
        Validation: it has no state machine, or cannot be imported.
    """
    content = read(file, file)
    try:
        machine, module = machine_in(Path(file))
        document = machine.document(module)
    except Fault:
        raise
    except Exception as error:
        # Whatever the author's module raises, its file is not usable.
        raise Validation(
            kind="validation.config_invalid",
            message=f"cannot import {Path(file).name}: {type(error).__name__}",
            caller_facing=True,
        ) from error
    root = _item_python_file(document, 0, file)
    stages: list[Item] = root.value["stages"].value
    for index, stage in enumerate(machine.stages):
        stages[index] = _item_python_file(document["stages"][index], stage.line - 1, file)
    return Loaded(root=root, files={file: (content.digest, content.text)}, digest=content.digest)


def _item_python_file(value: Any, line: int, file: str) -> Item:
    """A value with one place for all of it."""
    if isinstance(value, Mapping):
        values = {
            key: _item_python_file(inner, line, file)
            for key, inner in cast("Mapping[str, Any]", value).items()
        }
        item = Item(values, line, 0, file)
        item.keys = dict.fromkeys(values, (line, 0))
        return item
    if isinstance(value, list):
        return Item(
            [_item_python_file(inner, line, file) for inner in cast("list[Any]", value)], line, 0, file
        )
    return Item(value, line, 0, file)
