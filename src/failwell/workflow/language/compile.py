"""Compiles templates, and what they are made of: parts that are included, imported or extended."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.workflow.language.budget import Budget
from failwell.workflow.language.evaluate import defined, evaluator
from failwell.workflow.language.frame import Blocks, Evaluate, Frame, Rendering, Write, joined
from failwell.workflow.language.mistakes import Mistake, Sort, located
from failwell.workflow.language.parse import parse_expression, parse_template
from failwell.workflow.language.things import CONDITION_FUNCTIONS, FUNCTIONS, Namespace
from failwell.workflow.language.tree import Attr, Block, Expr, Extends, Import, Include, Item, Name, Out, Stmt, Text
from failwell.workflow.language.values import UNDEFINED
from failwell.workflow.language.write import add_maker, writer
from failwell.workflow.names import MISSING, Names

PartReader = Callable[[Any, str | None], "Compiled | None"]
"""Gives a compiled part by its name and the folder of who asks for it, or nothing."""


class Compiled:
    """A template that is ready to be rendered any number of times."""

    __slots__ = ("_elder", "_write", "_write_after", "blocks", "folder", "statements")

    def __init__(self, statements: tuple[Stmt, ...], folder: str | None = None) -> None:
        self.statements = statements
        self.folder = folder
        self._elder: tuple[Evaluate, int] | None = None
        before, after = list(statements), list[Stmt]()
        for at, stmt in enumerate(statements):
            if isinstance(stmt, Extends):
                before = list(statements[:at])
                # Below an `extends`, what would write writes nothing; names are still given.
                after = [s for s in statements[at + 1 :] if not isinstance(s, Text | Out | Block)]
                self._elder = (defined(evaluator(stmt.part)), stmt.line)
                break
        self._write: Write = writer(before)
        self._write_after: Write = writer(after)
        self.blocks: Mapping[str, Write] = {block.name: writer(block.body) for block in _blocks(statements)}

    def render(self, names: Names, part: PartReader) -> str:
        """The text that this template gives."""
        rendering = Rendering(names, Budget(), FUNCTIONS, part)
        out: list[str] = []
        self.write(Frame(rendering, {}, self.folder), out)
        return out[0] if len(out) == 1 else joined(out, rendering.budget)

    @property
    def is_whole(self) -> bool:
        """Whether the template is one `{{ }}` with nothing around it."""
        return len(self.statements) == 1 and isinstance(self.statements[0], Out)

    def value(self, names: Names) -> Any:
        """The value of the one `{{ }}`, as JSON; `UNDEFINED` if only its text can be given."""
        stmt = self.statements[0]
        assert isinstance(stmt, Out)
        budget = Budget()
        try:
            value = defined(evaluator(stmt.value))(Frame(Rendering(names, budget, FUNCTIONS, _no_part), {}, None))
            budget.weigh(value)
        # Python's own errors quote the data, so each becomes a mistake that does not.
        except Exception as error:  # noqa: BLE001
            raise located(error, stmt.line) from None
        return value if type(value) in _JSON else UNDEFINED

    def write(self, frame: Frame, out: list[str]) -> None:
        """Write into `out`, in a scope that is there already."""
        if self.blocks:
            frame.rendering.blocks.add(self.blocks)
        self._write(frame, out)
        if self._elder is None:
            return
        self._write_after(frame, [])
        evaluate, line = self._elder
        frame.budget.deeper()
        elder = frame.rendering.part(evaluate(frame), frame.folder)
        if elder is None:
            raise Mistake(Sort.PART, line)
        frame.folder = elder.folder
        elder.write(frame, out)
        frame.budget.depth -= 1


_JSON = frozenset({str, int, float, bool, type(None), list, dict})


def compile_template(text: str, folder: str | None = None) -> Compiled:
    """`text`, parsed and ready. Raises `Mistake`."""
    try:
        return Compiled(parse_template(text), folder)
    except RecursionError:
        raise Mistake(Sort.DEPTH) from None


class Condition:
    """An expression that stands by itself, ready to be asked."""

    __slots__ = ("_evaluate", "dotted", "tree")

    def __init__(self, tree: Expr) -> None:
        self.tree = tree
        self._evaluate = defined(evaluator(tree))
        self.dotted = frozenset(_dotted(tree))
        """Names that are followed by a dot or a bracket somewhere in it."""

    def value(self, names: Names) -> Any:
        """What the expression gives."""
        rendering = Rendering(names, Budget(), _IN_CONDITIONS, _no_part)
        try:
            return self._evaluate(Frame(rendering, {}, None))
        # Python's own errors quote the data, so each becomes a mistake that does not.
        except Exception as error:  # noqa: BLE001
            raise located(error, 1) from None


_IN_CONDITIONS = {**FUNCTIONS, **CONDITION_FUNCTIONS}


def compile_condition(text: str) -> Condition:
    """`text`, parsed and ready. Raises `Mistake`."""
    try:
        return Condition(parse_expression(text))
    except RecursionError:
        raise Mistake(Sort.DEPTH) from None
    except Mistake as mistake:
        raise located(mistake, 1) from None


def _dotted(tree: Any) -> list[str]:
    found: list[str] = []
    left = [tree]
    while left:
        part = left.pop()
        if isinstance(part, Attr | Item) and isinstance(part.target, Name):
            found.append(part.target.name)
        if isinstance(part, tuple):
            left.extend(part)
    return found


def _no_part(_name: Any, _folder: str | None) -> Compiled | None:
    return None


def _blocks(tree: Any) -> list[Block]:
    found: list[Block] = []
    left = [tree]
    while left:
        part = left.pop()
        if isinstance(part, Block):
            found.append(part)
        if isinstance(part, tuple):
            left.extend(part)
    return found


# ---------------------------------------------------------------- parts


class _NoNames:
    def get(self, name: str, /) -> object:  # noqa: ARG002 - there is none, whatever it is called
        return MISSING


def _include(stmt: Include) -> Write:
    wanted = defined(evaluator(stmt.part))

    def run(frame: Frame, out: list[str]) -> None:
        value = wanted(frame)
        for name in value if isinstance(value, list | tuple) else (value,):
            part = frame.rendering.part(name, frame.folder)
            if part is not None:
                _run_part(part, frame, out, with_context=stmt.with_context)
                return
        if not stmt.ignore_missing:
            raise Mistake(Sort.PART)

    return run


def _run_part(part: Compiled, frame: Frame, out: list[str], *, with_context: bool) -> Frame:
    frame.budget.deeper()
    rendering = frame.rendering
    if not with_context:
        rendering = Rendering(_NoNames(), frame.budget, rendering.functions, rendering.part)
    # A part has blocks of its own: what the outer template calls by the same name is another.
    kept, rendering.blocks = rendering.blocks, Blocks()
    inner = Frame(rendering, dict(frame.variables) if with_context else {}, part.folder)
    part.write(inner, out)
    rendering.blocks = kept
    frame.budget.depth -= 1
    return inner


def _import(stmt: Import) -> Write:
    wanted = defined(evaluator(stmt.part))

    def run(frame: Frame, _: list[str]) -> None:
        part = frame.rendering.part(wanted(frame), frame.folder)
        if part is None:
            raise Mistake(Sort.PART)
        inner = _run_part(part, frame, [], with_context=stmt.with_context)
        fields = {name: value for name, value in inner.variables.items() if not name.startswith("_")}
        if stmt.alias is not None:
            frame.variables[stmt.alias] = Namespace(fields)
        for name, alias in stmt.names:
            frame.variables[alias] = fields.get(name, UNDEFINED)

    return run


def _misplaced_extends(stmt: Extends) -> Write:
    raise Mistake(Sort.SYNTAX, stmt.line)


add_maker(Include, _include)
add_maker(Import, _import)
add_maker(Extends, _misplaced_extends)
