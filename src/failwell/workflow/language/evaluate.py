"""Turns expressions into functions of a frame.

Each kind of expression becomes one small closure, made once per template. What can be settled when it
is made is settled then, so that rendering does little more than look things up.
"""

from collections.abc import Callable
from typing import Any

from failwell.workflow.language import gatherings
from failwell.workflow.language.checks import TESTS
from failwell.workflow.language.filters import FILTERS
from failwell.workflow.language.frame import Evaluate, Frame
from failwell.workflow.language.methods import call_method
from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.tree import (
    Attr,
    Binary,
    Call,
    Choice,
    Compare,
    Concat,
    Const,
    DictOf,
    Expr,
    Filter,
    Item,
    ListOf,
    Logic,
    Name,
    Span,
    Test,
    TupleOf,
    Unary,
)
from failwell.workflow.language.values import (
    UNDEFINED,
    Function,
    attribute,
    calculate,
    compare,
    item,
    negative,
    positive,
    span,
    text_of,
    truth,
)

assert gatherings.FILTERS is FILTERS  # importing it is what fills the table

_TAKES_UNDEFINED = frozenset({"default", "d"})
_TESTS_UNDEFINED = frozenset({"defined", "undefined"})


def evaluator(expr: Expr) -> Evaluate:
    """The function that gives the value of `expr`."""
    return _MAKERS[type(expr)](expr)


def defined(evaluate: Evaluate) -> Evaluate:
    """`evaluate`, where an undefined value is a mistake at once."""

    def run(frame: Frame) -> Any:
        value = evaluate(frame)
        if value is UNDEFINED:
            raise Mistake(Sort.UNDEFINED)
        return value

    return run


def _const(expr: Const) -> Evaluate:
    value = expr.value
    return lambda _: value


def _name(expr: Name) -> Evaluate:
    name = expr.name

    def run(frame: Frame) -> Any:
        variables = frame.variables
        return variables[name] if name in variables else frame.rendering.look_up(name)

    return run


def _attr(expr: Attr) -> Evaluate:
    target, name = evaluator(expr.target), expr.name

    def run(frame: Frame) -> Any:
        value = target(frame)
        return value.get(name, UNDEFINED) if type(value) is dict else attribute(value, name)

    return run


def _item(expr: Item) -> Evaluate:
    target, key = evaluator(expr.target), evaluator(expr.key)
    return lambda frame: item(target(frame), key(frame))


def _span(expr: Span) -> Evaluate:
    target = evaluator(expr.target)
    start, stop, step = (None if part is None else defined(evaluator(part)) for part in expr[1:])

    def run(frame: Frame) -> Any:
        bounds = (None if part is None else part(frame) for part in (start, stop, step))
        return span(target(frame), *bounds, frame.budget)

    return run


Arguments = Callable[[Frame], tuple[list[Any], dict[str, Any]]]


def arguments(args: tuple[Expr, ...], named: tuple[tuple[str, Expr], ...], *, strict: bool) -> Arguments:
    """The function that gives the arguments of a call; if `strict`, none of them may be undefined."""
    wrap: Callable[[Evaluate], Evaluate] = defined if strict else lambda evaluate: evaluate
    ready = [wrap(evaluator(arg)) for arg in args]
    ready_named = [(name, wrap(evaluator(arg))) for name, arg in named]
    if not ready and not ready_named:
        return lambda _: ([], {})
    return lambda frame: ([arg(frame) for arg in ready], {name: arg(frame) for name, arg in ready_named})


def _call(expr: Call) -> Evaluate:
    given = arguments(expr.args, expr.named, strict=False)
    if isinstance(expr.target, Attr):
        owner, name = evaluator(expr.target.target), expr.target.name

        def run_method(frame: Frame) -> Any:
            value = owner(frame)
            args, named = given(frame)
            frame.budget.step(1)
            return call_method(frame.budget, value, name, args, named)

        return run_method
    target = evaluator(expr.target)

    def run(frame: Frame) -> Any:
        function = target(frame)
        if not isinstance(function, Function):
            raise Mistake(Sort.UNDEFINED if function is UNDEFINED else Sort.UNKNOWN_FUNCTION)
        args, named = given(frame)
        frame.budget.step(1)
        return function.call(frame.budget, args, named)

    return run


def _filter(expr: Filter) -> Evaluate:
    function = FILTERS.get(expr.name)
    if function is None:
        raise Mistake(Sort.UNKNOWN_FILTER)
    value = evaluator(expr.value)
    if expr.name not in _TAKES_UNDEFINED:
        value = defined(value)
    given = arguments(expr.args, expr.named, strict=expr.name not in _TAKES_UNDEFINED)
    if not expr.args and not expr.named:
        return lambda frame: function(frame.budget, value(frame))

    def run(frame: Frame) -> Any:
        subject = value(frame)
        args, named = given(frame)
        return function(frame.budget, subject, *args, **named)

    return run


def _test(expr: Test) -> Evaluate:
    check = TESTS.get(expr.name)
    if check is None:
        raise Mistake(Sort.UNKNOWN_TEST)
    value = evaluator(expr.value)
    if expr.name not in _TESTS_UNDEFINED:
        value = defined(value)
    given = arguments(expr.args, expr.named, strict=True)

    def run(frame: Frame) -> Any:
        subject = value(frame)
        args, named = given(frame)
        return check(frame.budget, subject, *args, **named)

    return run


def _unary(expr: Unary) -> Evaluate:
    value = evaluator(expr.value)
    if expr.sign == "not":
        return lambda frame: not truth(value(frame))
    apply = negative if expr.sign == "-" else positive
    return lambda frame: apply(value(frame))


def _binary(expr: Binary) -> Evaluate:
    sign, left, right = expr.sign, evaluator(expr.left), evaluator(expr.right)
    return lambda frame: calculate(sign, left(frame), right(frame), frame.budget)


def _concat(expr: Concat) -> Evaluate:
    parts = [evaluator(part) for part in expr.parts]

    def run(frame: Frame) -> str:
        budget = frame.budget
        texts = [text_of(part(frame), budget) for part in parts]
        budget.take(sum(map(len, texts)))
        return "".join(texts)

    return run


def _logic(expr: Logic) -> Evaluate:
    parts = [evaluator(part) for part in expr.parts]
    last = parts.pop()
    stops_at = expr.sign == "or"

    def run(frame: Frame) -> Any:
        for part in parts:
            value = part(frame)
            if truth(value) is stops_at:
                return value
        return last(frame)

    return run


def _compare(expr: Compare) -> Evaluate:
    first = evaluator(expr.first)
    rest = [(sign, evaluator(part)) for sign, part in expr.rest]

    def run(frame: Frame) -> bool:
        left = first(frame)
        for sign, part in rest:
            right = part(frame)
            if not compare(sign, left, right, frame.budget):
                return False
            left = right
        return True

    return run


def _choice(expr: Choice) -> Evaluate:
    test, yes = evaluator(expr.test), evaluator(expr.yes)
    no: Evaluate = (lambda _: UNDEFINED) if expr.no is None else evaluator(expr.no)
    return lambda frame: yes(frame) if truth(test(frame)) else no(frame)


def _list(expr: ListOf) -> Evaluate:
    items = [defined(evaluator(one)) for one in expr.items]
    return lambda frame: frame.budget.items([one(frame) for one in items])


def _tuple(expr: TupleOf) -> Evaluate:
    items = [defined(evaluator(one)) for one in expr.items]
    return lambda frame: frame.budget.items(tuple([one(frame) for one in items]))


def _dict(expr: DictOf) -> Evaluate:
    pairs = [(defined(evaluator(key)), defined(evaluator(value))) for key, value in expr.pairs]

    def run(frame: Frame) -> Any:
        made: dict[Any, Any] = {}
        for key, value in pairs:
            at = key(frame)
            if type(at) not in _KEYS:
                raise Mistake(Sort.OPERATION)
            made[at] = value(frame)
        return frame.budget.items(made)

    return run


_KEYS = frozenset({str, int, float, bool, type(None)})

_MAKERS: dict[type, Callable[[Any], Evaluate]] = {
    Const: _const,
    Name: _name,
    Attr: _attr,
    Item: _item,
    Span: _span,
    Call: _call,
    Filter: _filter,
    Test: _test,
    Unary: _unary,
    Binary: _binary,
    Concat: _concat,
    Logic: _logic,
    Compare: _compare,
    Choice: _choice,
    ListOf: _list,
    TupleOf: _tuple,
    DictOf: _dict,
}

