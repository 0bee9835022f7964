"""Finds what templates and conditions refer to, before anything runs.

Templates are parsed and never rendered. A path ends at its first computed part (`node[key]`).
Names that a template assigns itself are not references.
"""

from typing import cast

from jinja2 import TemplateError, nodes

from failwell.workflows.plan import Template
from failwell.workflows.template.environment import Environment
from failwell.workflows.template.names import Reference, is_expression
from failwell.workflows.template.rewriting import local_names

_ENVIRONMENT = Environment()
_NOTHING = frozenset[str]()
_GUARDS = frozenset({"defined", "undefined"})
_DEFAULTS = frozenset({"default", "d"})


def tree_of(text: str, *, condition: bool) -> nodes.Node | None:
    """The tree of a template or a condition without braces; `None` if it cannot be parsed."""
    try:
        return _ENVIRONMENT.expression(text) if condition else _ENVIRONMENT.parse(text)
    except (TemplateError, ValueError, RecursionError):
        return None


def references(template: Template, *, condition: bool = False) -> frozenset[Reference]:
    """Every path that `template` reads. One that cannot be parsed has none.

    With `condition`, a text without `{{ }}` is an expression.
    """
    is_bare = condition and is_expression(template)
    tree = None if template.is_plain and not is_bare else tree_of(template.text, condition=is_bare)
    if tree is None:
        return frozenset()
    reader = _read(tree)
    return frozenset(
        Reference(path, guarded or any(path[:n] in reader.tested for n in range(1, len(path) + 1)), absent)
        for path, guarded, absent, _ in reader.paths
    )


def line_of(template: Template, path: tuple[str, ...], *, condition: bool = False) -> int | None:
    """The first line of a template's text that reads `path`, counted from 1."""
    lines = [
        line
        for found, _, line in lines_of(template.text, condition=condition and is_expression(template))
        if found[: len(path)] == path
    ]
    return min(lines, default=None)


def lines_of(text: str, *, condition: bool) -> list[tuple[tuple[str, ...], bool, int]]:
    """Every path of a text, whether it is guarded where it is read, and its line."""
    tree = tree_of(text, condition=condition)
    paths = [] if tree is None else _read(tree).paths
    return [(path, guarded, line) for path, guarded, _, line in paths]


def _read(tree: nodes.Node) -> "_Reader":
    reader = _Reader()
    try:
        reader.read(tree, _NOTHING)
    except RecursionError:
        return _Reader()
    local = local_names(tree)
    reader.paths = [found for found in reader.paths if found[0][0] not in local]
    return reader


def path_of(node: nodes.Node) -> tuple[str, ...]:
    """The path that an expression begins with, up to its first computed part; empty if it is none."""
    if isinstance(node, nodes.Name):
        return (node.name,)
    if isinstance(node, nodes.Call):
        callee = node.node
        # The last step of what is called is a method.
        return path_of(callee.node) if isinstance(callee, nodes.Getattr | nodes.Getitem) else ()
    if not isinstance(node, nodes.Getattr | nodes.Getitem):
        return ()
    path = path_of(node.node)
    if not path or not _is_whole(node.node):
        return path
    if isinstance(node, nodes.Getattr):
        return (*path, node.attr)
    return (*path, str(node.arg.value)) if isinstance(node.arg, nodes.Const) else path


def _is_whole(node: nodes.Node) -> bool:
    """Whether `path_of` has every step of an expression."""
    if isinstance(node, nodes.Name):
        return True
    is_step = isinstance(node, nodes.Getattr) or (
        isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const)
    )
    return is_step and _is_whole(cast("nodes.Getattr", node).node)


class _Reader:
    """Collects the paths of a tree."""

    def __init__(self) -> None:
        self.paths: list[tuple[tuple[str, ...], bool, frozenset[str], int]] = []
        """Each path, whether it is guarded, the absent steps, and the line."""
        self.tested: set[tuple[str, ...]] = set()
        """Paths that a condition asks for."""

    def read(self, node: nodes.Node, absent: frozenset[str], *, guarded: bool = False) -> None:
        """Collect the paths of a node. `absent` are the steps that have no output where it is read."""
        match node:
            case nodes.Name(ctx="load") | nodes.Getattr() | nodes.Getitem() | nodes.Call():
                self._chain(node, absent, guarded=guarded)
            case nodes.Filter():
                self._filter(node, absent, guarded=guarded)
            case nodes.Test():
                self._test_of(node, absent, guarded=guarded)
            case nodes.CondExpr():
                self._branches(node.test, [(node.expr1, True), (node.expr2, False)], absent, guarded=guarded)
            case nodes.If():
                self._if(node, absent)
            case nodes.And() | nodes.Or() | nodes.Not():
                self._test(node)
                self._operands(node, absent)
            case _:
                if isinstance(node, nodes.Compare):
                    self._membership(node)
                for part in node.iter_child_nodes():
                    self.read(part, absent)

    def _chain(self, node: nodes.Node, absent: frozenset[str], *, guarded: bool) -> None:
        path = path_of(node)
        if path:
            self.paths.append((path, guarded, absent, node.lineno))
        while isinstance(node, nodes.Getattr | nodes.Getitem | nodes.Call):
            for part in node.iter_child_nodes(exclude=("node",)):
                self.read(part, absent)
            node = node.node
        if not path and not isinstance(node, nodes.Name):
            self.read(node, absent, guarded=guarded)

    def _filter(self, node: nodes.Filter, absent: frozenset[str], *, guarded: bool) -> None:
        is_default = node.name in _DEFAULTS
        if node.node is not None:
            self.read(node.node, absent, guarded=is_default)
        path = path_of(node.node) if is_default and node.node is not None else ()
        for part in node.iter_child_nodes(exclude=("node",)):
            self.read(part, absent | {path[0]} if path else absent, guarded=is_default and guarded)

    def _test_of(self, node: nodes.Test, absent: frozenset[str], *, guarded: bool) -> None:
        is_guard = node.name in _GUARDS
        self.read(node.node, absent, guarded=guarded or is_guard)
        if is_guard and (path := path_of(node.node)):
            self.tested.add(path)
        for part in node.iter_child_nodes(exclude=("node",)):
            self.read(part, absent)

    def _if(self, node: nodes.If, absent: frozenset[str]) -> None:
        for branch in (node, *node.elif_):
            self._test(branch.test)
            self.read(branch.test, absent)
            if_true, if_false = _absent_steps(branch.test)
            for part in branch.body:
                self.read(part, absent | if_true)
            absent |= if_false
        for part in node.else_:
            self.read(part, absent)

    def _branches(
        self,
        test: nodes.Node,
        values: list[tuple[nodes.Node | None, bool]],
        absent: frozenset[str],
        *,
        guarded: bool,
    ) -> None:
        self._test(test)
        self.read(test, absent)
        if_true, if_false = _absent_steps(test)
        for value, is_true in values:
            if value is not None:
                self.read(value, absent | (if_true if is_true else if_false), guarded=guarded)

    def _operands(self, node: nodes.Node, absent: frozenset[str]) -> None:
        for part in node.iter_child_nodes():
            self.read(part, absent)
            if_true, if_false = _absent_steps(part)
            absent |= if_true if isinstance(node, nodes.And) else if_false

    def _test(self, condition: nodes.Node) -> None:
        """Note the steps that a condition asks for by their names."""
        if isinstance(condition, nodes.Name):
            self.tested.add((condition.name,))
        elif isinstance(condition, nodes.And | nodes.Or | nodes.Not):
            for part in condition.iter_child_nodes():
                self._test(part)

    def _membership(self, node: nodes.Compare) -> None:
        """`'x' in group.outputs` asks for `group.outputs.x`."""
        operand = node.ops[0]
        if (
            operand.op in {"in", "notin"}
            and isinstance(node.expr, nodes.Const)
            and (path := path_of(operand.expr))
        ):
            self.tested.add((*path, str(node.expr.value)))


def _absent_steps(condition: nodes.Node) -> tuple[frozenset[str], frozenset[str]]:
    """The steps that have no output if a condition is true, and if it is false."""
    match condition:
        case nodes.Not():
            if_true, if_false = _absent_steps(condition.node)
            return if_false, if_true
        case nodes.Name():
            return _NOTHING, frozenset({condition.name})
        case nodes.Test() if condition.name in _GUARDS and (path := path_of(condition.node)):
            root = frozenset({path[0]})
            return (root, _NOTHING) if condition.name == "undefined" else (_NOTHING, root)
        case nodes.And() | nodes.Or():
            pairs = [_absent_steps(part) for part in (condition.left, condition.right)]
            index = 0 if isinstance(condition, nodes.And) else 1
            known = _NOTHING.union(*(pair[index] for pair in pairs))
            return (known, _NOTHING) if index == 0 else (_NOTHING, known)
        case _:
            return _NOTHING, _NOTHING
