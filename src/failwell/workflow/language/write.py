"""Turns statements into functions that write.

A statement that fails says on which line of its template; the innermost one knows best.
"""

from collections.abc import Callable, Sequence
from typing import Any

from failwell.workflow.language.evaluate import arguments, defined, evaluator
from failwell.workflow.language.frame import Evaluate, Frame, Write, joined
from failwell.workflow.language.macros import macro_maker
from failwell.workflow.language.mistakes import Mistake, Sort, located
from failwell.workflow.language.things import Builtin, Loop, Namespace
from failwell.workflow.language.tree import (
    BODY,
    Attr,
    Block,
    CallBlock,
    Do,
    FilterBlock,
    For,
    If,
    Macro,
    NamespaceTarget,
    Out,
    Set,
    SetBlock,
    Stmt,
    Target,
    Text,
    With,
)
from failwell.workflow.language.values import UNDEFINED, Function, attribute, listed, text_of, truth


def writer(body: Sequence[Stmt]) -> Write:
    """The function that writes `body`."""
    steps = [one_writer(stmt) for stmt in body]
    if len(steps) == 1:
        return steps[0]

    def run(frame: Frame, out: list[str]) -> None:
        for step in steps:
            step(frame, out)

    return run


def one_writer(stmt: Stmt) -> Write:
    """The function that writes one statement."""
    if type(stmt) is Text:
        return _text(stmt)
    line: int = stmt[-1]  # the last field of every other statement
    try:
        run = _MAKERS[type(stmt)](stmt)
    except Mistake as mistake:
        raise located(mistake, line) from None

    def at_line(frame: Frame, out: list[str]) -> None:
        try:
            run(frame, out)
        # Python's own errors quote the data, so each becomes a mistake that does not.
        except Exception as error:  # noqa: BLE001
            raise located(error, line) from None

    return at_line


def size(body: object) -> int:
    """How many parts a piece of the tree has: the steps that going through it once takes."""
    if not isinstance(body, tuple):
        return 0
    count, left = 0, [body]
    while left:
        for part in left.pop():
            if isinstance(part, tuple):
                count += 1
                left.append(part)
    return count + 1


def assigner(target: Target) -> Callable[[Frame, Any], None]:
    """The function that gives a value to a name, to a field of a namespace, or to several names."""
    if isinstance(target, str):

        def set_name(frame: Frame, value: Any) -> None:
            frame.variables[target] = value

        return set_name
    if isinstance(target, NamespaceTarget):

        def set_field(frame: Frame, value: Any) -> None:
            space = frame.variables.get(target.name)
            if not isinstance(space, Namespace):
                raise Mistake(Sort.OPERATION)
            space.fields[target.field] = value

        return set_field
    each = [assigner(part) for part in target]

    def set_all(frame: Frame, value: Any) -> None:
        values = listed(value, frame.budget)
        if len(values) != len(each):
            raise Mistake(Sort.OPERATION)
        for assign, part in zip(each, values, strict=True):
            assign(frame, part)

    return set_all


def _text(stmt: Text) -> Write:
    text, room = stmt.text, len(stmt.text)

    def run(frame: Frame, out: list[str]) -> None:
        frame.budget.take(room)
        out.append(text)

    return run


def _out(stmt: Out) -> Write:
    value = evaluator(stmt.value)

    def run(frame: Frame, out: list[str]) -> None:
        made = value(frame)
        budget = frame.budget
        if type(made) is not str:
            made = text_of(made, budget)
        budget.take(len(made))
        out.append(made)

    return run


def _if(stmt: If) -> Write:
    branches = [(evaluator(test), writer(body)) for test, body in stmt.branches]
    other = writer(stmt.other)

    def run(frame: Frame, out: list[str]) -> None:
        for test, body in branches:
            if truth(test(frame)):
                body(frame, out)
                return
        other(frame, out)

    return run


def _for(stmt: For) -> Write:
    source, body, other = evaluator(stmt.source), writer(stmt.body), writer(stmt.other)
    assign = assigner(stmt.target)
    test = None if stmt.test is None else evaluator(stmt.test)
    cost = size(stmt.body) + size(stmt.test) + 1

    def chosen(frame: Frame, items: Sequence[Any], test: Evaluate) -> list[Any]:
        frame.budget.step(len(items) * cost)
        inner = frame.inner()
        kept: list[Any] = []
        for one in items:
            assign(inner, one)
            if truth(test(inner)):
                kept.append(one)
        return frame.budget.items(kept)

    def go(frame: Frame, values: Any, out: list[str], depth: int) -> None:
        items: Sequence[Any] = listed(values, frame.budget)
        if test is not None:
            items = chosen(frame, items, test)
        if not items:
            other(frame, out)
            return

        def again(values: Any, depth: int) -> str:
            frame.budget.deeper()
            inner_out: list[str] = []
            go(frame, values, inner_out, depth)
            frame.budget.depth -= 1
            return joined(inner_out, frame.budget)

        loop = Loop(items, depth, again if stmt.recursive else None)
        inner, base, budget = frame.inner(), frame.variables, frame.budget
        for at, one in enumerate(items):
            budget.step(cost)
            loop.at = at
            inner.variables = {**base, "loop": loop}
            assign(inner, one)
            body(inner, out)

    return lambda frame, out: go(frame, source(frame), out, 0)


def _set(stmt: Set) -> Write:
    assign, value = assigner(stmt.target), evaluator(stmt.value)
    return lambda frame, _: assign(frame, value(frame))


def _captured(body: Write, value: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        out: list[str] = []
        inner = frame.inner()
        body(inner, out)
        inner.variables[BODY] = joined(out, frame.budget)
        return value(inner)

    return run


def _set_block(stmt: SetBlock) -> Write:
    assign, value = assigner(stmt.target), _captured(writer(stmt.body), evaluator(stmt.value))
    return lambda frame, _: assign(frame, value(frame))


def _filter_block(stmt: FilterBlock) -> Write:
    value = _captured(writer(stmt.body), evaluator(stmt.value))
    return lambda frame, out: out.append(text_of(value(frame), frame.budget))


def _with(stmt: With) -> Write:
    pairs = [(assigner(target), evaluator(value)) for target, value in stmt.pairs]
    body = writer(stmt.body)

    def run(frame: Frame, out: list[str]) -> None:
        inner = frame.inner()
        for assign, value in pairs:
            assign(inner, value(frame))
        body(inner, out)

    return run


def _do(stmt: Do) -> Write:
    value = evaluator(stmt.value)

    def run(frame: Frame, _: list[str]) -> None:
        value(frame)

    return run


def _macro(stmt: Macro) -> Write:
    make = macro_maker(stmt, writer(stmt.body), size(stmt.body))

    def run(frame: Frame, _: list[str]) -> None:
        frame.variables[stmt.name] = make(frame)

    return run


def _call_block(stmt: CallBlock) -> Write:
    make = macro_maker(stmt.caller, writer(stmt.caller.body), size(stmt.caller.body))
    given = arguments(stmt.call.args, stmt.call.named, strict=False)
    target = _called(stmt.call.target)

    def run(frame: Frame, out: list[str]) -> None:
        function = target(frame)
        if not isinstance(function, Function):
            raise Mistake(Sort.UNDEFINED if function is UNDEFINED else Sort.UNKNOWN_FUNCTION)
        args, named = given(frame)
        made = function.call(frame.budget, args, {**named, "caller": make(frame)})
        out.append(text_of(made, frame.budget))

    return run


def _called(target: Any) -> Evaluate:
    if isinstance(target, Attr):
        owner, name = evaluator(target.target), target.name
        return lambda frame: attribute(owner(frame), name)
    return defined(evaluator(target))


def _block(stmt: Block) -> Write:
    name = stmt.name

    def run(frame: Frame, out: list[str]) -> None:
        _write_block(frame, out, name, 0)

    return run


def _write_block(frame: Frame, out: list[str], name: str, at: int) -> None:
    bodies = frame.rendering.blocks.bodies[name]
    inner = frame.inner()

    def elder(budget: Any) -> str:
        if at + 1 >= len(bodies):
            raise Mistake(Sort.UNDEFINED)
        text: list[str] = []
        _write_block(frame, text, name, at + 1)
        return joined(text, budget)

    inner.variables["super"] = Builtin(elder)
    bodies[at](inner, out)


_MAKERS: dict[type, Callable[[Any], Write]] = {
    Out: _out,
    If: _if,
    For: _for,
    Set: _set,
    SetBlock: _set_block,
    FilterBlock: _filter_block,
    With: _with,
    Do: _do,
    Macro: _macro,
    CallBlock: _call_block,
    Block: _block,
}


def add_maker(kind: type, make: Callable[[Any], Write]) -> None:
    """Let another file write a kind of statement."""
    _MAKERS[kind] = make
