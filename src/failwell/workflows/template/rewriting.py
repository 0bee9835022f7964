"""Checks the tree of a template, and rewrites what the sandbox of Jinja2 has no hook for.

Comparisons, `~` and slices become filters, and every block counts its steps before it is rendered. Filters, tests,
functions and methods that do not exist are mistakes here, with a suggestion.
"""

from typing import TYPE_CHECKING, Any, cast

from jinja2 import nodes
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from failwell.files.suggestions import nearest
from failwell.workflows.template.mistakes import MistakeType, TemplateMistake

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_DEPTH = 100
"""Levels of the tree, so that no visit exhausts the stack."""
MAX_BRANCHES = 300
CHANGES = {
    "append": "`LIST + [ITEM]`",
    "extend": "`LIST + OTHER`",
    "insert": "`LIST[:N] + [ITEM] + LIST[N:]`",
    "remove": "`LIST | reject('eq', ITEM) | list`",
    "sort": "`LIST | sort`",
    "reverse": "`LIST | reverse`",
    "clear": "`[]` or `{}`",
    "pop": "`LIST | last` and `LIST[:-1]`, or `MAP.get(KEY)`",
    "popitem": "`MAP | items | last`",
    "update": "a `set` step, or `dict(MAP, KEY=VALUE)`",
    "setdefault": "`MAP.get(KEY, VALUE)`",
    "add": "`LIST + [ITEM]`",
    "discard": "`LIST | reject('eq', ITEM) | list`",
}
"""Methods that change a list or a mapping, and what to write instead."""
METHODS = frozenset(
    name for owner in (Markup, list, dict, int, float) for name in dir(owner) if not name.startswith("_")
)
_SPECIAL = frozenset({"loop", "self", "super", "caller", "varargs", "kwargs"})
"""Names of objects that Jinja2 provides."""
_INSTEAD = {"random": "a run must give the same result again; draw the number in a script"}
"""Filters of Jinja2 that do not exist here, and why."""
_NAMED_BY_TEXT = {"map": 0, "select": 0, "reject": 0, "selectattr": 1, "rejectattr": 1}
_BLOCKS = (nodes.Template, nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)


def local_names(tree: nodes.Node) -> frozenset[str]:
    """The names that a template assigns itself."""
    names: set[str] = set(_SPECIAL)
    for node in tree.find_all((nodes.Name, nodes.Macro, nodes.Import, nodes.FromImport)):
        if isinstance(node, nodes.Name):
            names |= {node.name} if node.ctx != "load" else set()
        elif isinstance(node, nodes.FromImport):
            names |= {name if isinstance(name, str) else name[1] for name in node.names}
        else:
            names.add(node.target if isinstance(node, nodes.Import) else node.name)
    return frozenset(names)


def dotted_names(expression: nodes.Expr) -> frozenset[str]:
    """The names of an expression that are followed by a dot or a bracket."""
    found = [expression, *expression.find_all(nodes.Node)]
    steps = [node for node in found if isinstance(node, nodes.Getattr | nodes.Getitem)]
    return frozenset(step.node.name for step in steps if isinstance(step.node, nodes.Name))


class Rewriter(NodeTransformer):
    """Rewrites one tree. Raises `TemplateMistake`."""

    def __init__(self, environment: "Environment") -> None:
        self._environment = environment
        self._local: frozenset[str] = frozenset()
        self._depth = 0

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """Check and rewrite a node."""
        if not self._depth:
            self._local = local_names(node)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TemplateMistake(MistakeType.DEPTH, node.lineno)
        result = super().visit(node, *args, **kwargs)
        self._depth -= 1
        return result

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        """Rewrite what is inside; a block counts its steps."""
        weight = 1 + sum(1 for _ in node.find_all(nodes.Node)) // 8 if isinstance(node, _BLOCKS) else 0
        super().generic_visit(node, *args, **kwargs)
        if weight:
            spend = self._filter(nodes.Const(weight), "_spend", [], node)
            cast("Any", node).body.insert(0, nodes.ExprStmt(spend, lineno=node.lineno))
            if isinstance(node, nodes.For) and node.test is not None:
                node.test = nodes.And(spend, node.test, lineno=node.lineno)
        return node

    def _filter(self, value: Any, name: str, arguments: list[Any], at: nodes.Node) -> nodes.Filter:
        return nodes.Filter(
            value, name, arguments, [], None, None, lineno=at.lineno, environment=self._environment
        )

    # ------------------------------------------------------------ rewriting

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        """`a < b <= c` as `a | _compared("<", b, "<=", c)`."""
        self.generic_visit(node)
        words = {
            "eq": "==",
            "ne": "!=",
            "lt": "<",
            "lteq": "<=",
            "gt": ">",
            "gteq": ">=",
            "in": "in",
            "notin": "not in",
        }
        arguments = [part for operand in node.ops for part in (nodes.Const(words[operand.op]), operand.expr)]
        return self._filter(node.expr, "_compared", arguments, node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """`a ~ b` as `a | _concatenated(b)`."""
        self.generic_visit(node)
        return self._filter(node.nodes[0], "_concatenated", node.nodes[1:], node)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        """`a[b:c]` as `a | _cut(b, c, none)`."""
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = [part or nodes.Const(None) for part in (node.arg.start, node.arg.stop, node.arg.step)]
        return self._filter(node.node, "_cut", bounds, node)

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        """Check the key of a mapping when it is computed."""
        self.generic_visit(node)
        if not isinstance(node.key, nodes.Const):
            node.key = self._filter(node.key, "_key", [], node)
        return node

    # ------------------------------------------------------------ checks

    def visit_If(self, node: nodes.If) -> nodes.Node:
        """Refuse a chain of `elif` that Python cannot compile."""
        if len(node.elif_) > MAX_BRANCHES:
            raise TemplateMistake(MistakeType.DEPTH, node.lineno)
        return self.generic_visit(node)

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:
        """Refuse an unknown filter."""
        self._check_name(node.name, node.lineno, is_test=False)
        index = _NAMED_BY_TEXT.get(node.name, len(node.args))
        if index < len(node.args) and isinstance(name := node.args[index], nodes.Const):
            self._check_name(str(name.value), node.lineno, is_test=node.name != "map")
        return self.generic_visit(node)

    def visit_Test(self, node: nodes.Test) -> nodes.Node:
        """Refuse an unknown test."""
        self._check_name(node.name, node.lineno, is_test=True)
        return self.generic_visit(node)

    def _check_name(self, name: str, line: int, *, is_test: bool) -> None:
        known: dict[str, Any] = self._environment.tests if is_test else self._environment.filters
        if name in known and not name.startswith("_"):
            return
        mistake_type = MistakeType.UNKNOWN_TEST if is_test else MistakeType.UNKNOWN_FILTER
        instead = None if is_test else _INSTEAD.get(name)
        detail = _suggested(
            name, (word for word in known if word.isidentifier() and not word.startswith("_"))
        )
        raise TemplateMistake(mistake_type, line, detail=f"`{name}`; {instead}" if instead else detail)

    def visit_Call(self, node: nodes.Call) -> nodes.Node:
        """Refuse an unknown function or method. What templates define is called as they say."""
        callee = node.node
        if isinstance(callee, nodes.Name):
            known = self._environment.globals
            if callee.name not in self._local and callee.name not in known:
                raise _unknown(node, _suggested(callee.name, known))
        elif isinstance(callee, nodes.Getattr) and not self._is_local(callee):
            name = callee.attr
            if name in CHANGES:
                words = (
                    f"`{name}` would change data, which are read-only in a template; write {CHANGES[name]}"
                )
                raise _unknown(node, words)
            if name not in METHODS:
                raise _unknown(node, _suggested(name, METHODS.difference(CHANGES)))
        return self.generic_visit(node)

    def _is_local(self, node: nodes.Node) -> bool:
        while (
            isinstance(node, nodes.Getattr | nodes.Getitem | nodes.Call | nodes.Filter)
            and node.node is not None
        ):
            node = node.node
        return isinstance(node, nodes.Name) and (
            node.name in self._local or node.name in self._environment.globals
        )


def _unknown(node: nodes.Node, words: str) -> TemplateMistake:
    return TemplateMistake(MistakeType.UNKNOWN_FUNCTION, node.lineno, detail=words)


def _suggested(name: str, known: Any) -> str:
    near = nearest(name, known)
    return f"`{name}`; did you mean `{near}`?" if near else f"`{name}`"
