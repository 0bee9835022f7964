"""`check_file`: compiles and checks a workflow file with all of its sub-workflows."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from failwell.errors.frozen import frozen
from failwell.files.disk import is_inside, project_of
from failwell.files.mistakes import Mistake, MistakeLog
from failwell.workflows.check.control_flow import Flow
from failwell.workflows.check.findings import error
from failwell.workflows.check.rules import RULES, check
from failwell.workflows.check.step_rules import BUILT_IN, child_path, executors
from failwell.workflows.compile.compiler import Compiled, PartialPlan, compile_file
from failwell.workflows.compile.names import REGISTRY_HINT, registry_refusal
from failwell.workflows.compile.step_index import INPUTS
from failwell.workflows.plan import ForEachSpec, Node, Plan, WorkflowSpec

MAX_DEPTH = 10
"""Levels of sub-workflows."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")


@frozen
class Checked:
    """A workflow file, its sub-workflows, and their mistakes."""

    plan: Plan | None
    """`None` if the file itself has errors of shape."""
    raw_mistakes: tuple[Mistake, ...] = field(repr=False)
    """The mistakes as the rules report them, which may quote values of the environment."""
    children: Mapping[str, Plan]
    """Every sub-workflow by its path, resolved against the file that names it."""
    files: Mapping[str, tuple[str, str]]
    """Every file that was read: path → digest and text."""
    environ: Mapping[str, str] = field(repr=False)
    """The variables that the files may use."""

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """All mistakes in order, with source lines. If there are too many, warnings are left out first."""
        return _ordered_mistakes(self) if self.raw_mistakes else ()

    @property
    def plans(self) -> dict[str, Plan]:
        """Every plan by its path."""
        root = {} if self.plan is None else {self.plan.file: self.plan}
        return {**self.children, **root}

    @property
    def is_usable(self) -> bool:
        """Whether a run may begin."""
        return self.plan is not None and all(mistake.severity != "error" for mistake in self.raw_mistakes)


@dataclass
class _Tree:
    """The workflow files that have been read so far."""

    path: str
    environ: Mapping[str, str]
    allow_outside: bool
    mistakes: list[Mistake] = field(default_factory=list[Mistake])
    files: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    plans: dict[str, Plan] = field(default_factory=dict[str, Plan])
    partial: dict[str, PartialPlan] = field(default_factory=dict[str, PartialPlan])
    """File with mistakes of shape → the part that could be read."""
    first_paths: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    """Device and inode of a file → the first path that led to it."""
    children: dict[str, list[tuple[str, Node]]] = field(default_factory=dict[str, list[tuple[str, Node]]])
    """Path → the files of its sub-workflows, each with the step that names it."""

    @cached_property
    def project(self) -> str:
        """The folder that sub-workflows must lie in."""
        return project_of(self.path)


def check_file(
    path: str,
    *,
    environ: Mapping[str, str],
    allow_outside: bool = False,
    available: Collection[str] = BUILT_IN,
    as_root: bool = True,
    validated: Mapping[str, str] | None = None,
) -> Checked:
    """Compile and check the file at `path` and its sub-workflows, and list every mistake.

    `validated` (path → text, as a run records it) are texts that have passed the rules before. The rules are applied
    again only if a text differs or uses environment variables.

    Raises:
        Validation: there is no such file, or it may not be read.
    """
    tree = _Tree(path, environ, allow_outside)
    plan = _add_file(tree, path, compile_file(path, environ=environ, allow_outside=allow_outside))
    waiting = [path]
    while waiting:
        waiting += _follow(tree, waiting.pop())
    tree.mistakes += _cycles(tree, path)
    children = dict(tree.plans)
    parts: list[tuple[str, Plan, PartialPlan | None]] = [
        (file, checked, None) for file, checked in tree.plans.items()
    ]
    for file, partial in tree.partial.items():
        parts.append((file, partial.plan, partial))
        if INPUTS not in partial.unknown_topics:
            children[file] = partial.plan
    rules = RULES if validated is None or _has_changed(tree, validated) else (executors,)
    for file, checked, partial in parts:
        if tree.first_paths.get(_identity(file), file) == file:
            is_root = as_root and file == path
            tree.mistakes += check(
                checked, as_root=is_root, children=children, available=available, partial=partial, rules=rules
            )
    return Checked(
        plan=plan,
        raw_mistakes=tuple(tree.mistakes),
        children={file: child for file, child in tree.plans.items() if file != path},
        files=tree.files,
        environ=environ,
    )


def _has_changed(tree: _Tree, validated: Mapping[str, str]) -> bool:
    """Whether the files may differ from those that were validated."""
    texts = {path: text for path, (_, text) in tree.files.items()}
    return texts != validated or any("${" in text for text in texts.values())


def _add_file(tree: _Tree, path: str, compiled: Compiled) -> Plan | None:
    tree.files.update(compiled.files)
    tree.mistakes += compiled.mistakes
    tree.first_paths[_identity(path)] = path
    if compiled.plan is not None:
        tree.plans[path] = compiled.plan
    if compiled.partial is not None:
        tree.partial[path] = compiled.partial
    return compiled.plan


def _follow(tree: _Tree, path: str) -> Iterator[str]:
    """Read the sub-workflows of one file, and yield those that are new."""
    partial = tree.partial.get(path)
    plan = tree.plans.get(path) if partial is None else partial.plan
    steps = [] if plan is None else list(_steps(plan))
    for node, spec in steps:
        assert plan is not None
        child = child_path(plan, spec)
        if child is None:
            continue
        problem = _refusal(tree, child, spec)
        if problem is not None:
            message, hint = problem
            place = spec.path.place or node.place
            tree.mistakes.append(error(place, message, path=f"{node.name}.workflow", hint=hint))
            continue
        known_path = tree.first_paths.get(_identity(child))
        tree.children.setdefault(path, []).append((known_path or child, node))
        if known_path is None:
            compiled = compile_file(child, environ=tree.environ, allow_outside=tree.allow_outside)
            _add_file(tree, child, compiled)
            yield child
        elif known_path in tree.plans:
            tree.plans.setdefault(child, tree.plans[known_path])


def _refusal(tree: _Tree, child: str, spec: WorkflowSpec) -> tuple[str, str] | None:
    """Why a sub-workflow is not read: message and hint."""
    name = spec.path.text
    if not tree.allow_outside and not is_inside(child, tree.project):
        return (
            f"`{name}` lies outside the project",
            "keep it in the project, or allow it with --allow-outside",
        )
    if not os.path.exists(child):  # noqa: PTH110
        refusal = registry_refusal(name)
        if refusal is not None:
            return refusal, REGISTRY_HINT
        folder = os.path.dirname(child)  # noqa: PTH120
        near = _near_file(folder, os.path.basename(child))  # noqa: PTH119
        hint = (
            f"did you mean `{near}`?"
            if near
            else "paths are relative to the folder of the file that names them"
        )
        return f"there is no file `{name}`", hint
    if not os.path.isfile(child):  # noqa: PTH113
        return f"`{name}` is not a file", "name a workflow file"
    try:
        with open(child, "rb"):  # noqa: PTH123
            return None
    except OSError:
        return f"`{name}` may not be read", "change its permissions"


def _near_file(folder: str, name: str) -> str | None:
    from difflib import get_close_matches

    try:
        names = sorted(os.listdir(folder or "."))[:1000]  # noqa: PTH208
    except OSError:
        return None
    return next(iter(get_close_matches(name, names, n=1)), None)


def _steps(plan: Plan) -> Iterator[tuple[Node, WorkflowSpec]]:
    for node in plan.nodes.values():
        inner = node
        while isinstance(inner.spec, ForEachSpec):
            inner = inner.spec.body
        if isinstance(inner.spec, WorkflowSpec):
            yield inner, inner.spec


def _identity(path: str) -> tuple[int, int]:
    """Device and inode of a file, so that links to it are recognized."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return (-1, hash(path))
    return status.st_dev, status.st_ino


def _cycles(tree: _Tree, root: str) -> Iterator[Mistake]:
    """Workflows that run themselves without end, and workflows that are nested too deep."""
    depth: dict[str, int] = {}
    order: list[str] = []
    state = {root: 1}
    waiting = [(root, iter(tree.children.get(root, ())))]
    while waiting:
        path, children = waiting[-1]
        for child, node in children:
            if state.get(child) == 1:
                trail = [file for file, _ in waiting]
                cycle = [*trail[trail.index(child) :], child]
                if _is_endless(tree, cycle):
                    yield error(
                        node.place,
                        f"`{child}` would run itself without end: {' → '.join(f'`{file}`' for file in cycle)}",
                        path=f"{node.name}.workflow",
                        hint="let a route of one of them end before this step; `max_depth` limits the levels",
                    )
            elif child not in state:
                state[child] = 1
                waiting.append((child, iter(tree.children.get(child, ()))))
                break
        else:
            state[path] = 2
            order.append(path)
            waiting.pop()
    place = {path: number for number, path in enumerate(order)}
    for path in reversed(order):
        for child, node in tree.children.get(path, ()):
            deeper = depth.get(path, 0) + 1
            if place[child] < place[path] and deeper > depth.get(child, 0):
                depth[child] = deeper
                if deeper == MAX_DEPTH + 1:
                    yield error(
                        node.place,
                        f"`{child}` is nested {deeper} levels deep; the limit is {MAX_DEPTH}",
                        path=f"{node.name}.workflow",
                        hint="use fewer levels of sub-workflows",
                    )


def _is_endless(tree: _Tree, cycle: list[str]) -> bool:
    """Whether every workflow of a circle can only end after it has run the next one."""
    for path, following in pairwise(cycle):
        plan = tree.plans.get(path)
        steps = [node for child, node in tree.children.get(path, ()) if child == following]
        if plan is None or not any(
            plan.nodes.get(step.name) is step and Flow(plan).must_succeed(step.name) for step in steps
        ):
            return False
    return True


def _ordered_mistakes(checked: Checked) -> tuple[Mistake, ...]:
    values = _variables(checked)
    ordered = sorted(checked.raw_mistakes, key=lambda mistake: mistake.severity)
    texts = [
        tuple(_without_values(text, values) for text in (mistake.message, mistake.path, mistake.hint))
        for mistake in ordered
    ]
    log = MistakeLog()
    for mistake, (message, path, hint) in zip(ordered, texts, strict=True):
        log.add(
            message,
            mistake.place,
            path,
            hint=hint,
            kind=mistake.kind,
            severity=mistake.severity,
            also=mistake.also,
            missing=mistake.missing,
        )
    return log.finish({path: text for path, (_, text) in checked.files.items()})


def _variables(checked: Checked) -> dict[str, str]:
    """Value of an environment variable → its `${NAME}` in the files."""
    names = {name for _, text in checked.files.values() if "${" in text for name in _VARIABLE.findall(text)}
    references = {value: f"${{{name}}}" for name in names if len(value := checked.environ.get(name, "")) > 2}
    return dict(sorted(references.items(), key=lambda pair: -len(pair[0])))


def _without_values(text: str, references: Mapping[str, str]) -> str:
    """`text` without values of the environment, which may be secrets."""
    for value, reference in references.items():
        text = text.replace(value, reference)
    return text
