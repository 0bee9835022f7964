"""Macros: pieces of a template with parameters."""

from collections.abc import Callable
from typing import Any

from failwell.workflow.language.budget import Budget
from failwell.workflow.language.evaluate import evaluator
from failwell.workflow.language.frame import Evaluate, Frame, Write, joined
from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.tree import Macro
from failwell.workflow.language.values import UNDEFINED, Function


class MacroFunction(Function):
    """A macro together with the scope that it was defined in."""

    __slots__ = ("_body", "_cost", "_defaults", "_frame", "_params")

    def __init__(
        self,
        params: tuple[str, ...],
        defaults: tuple[Evaluate | None, ...],
        body: Write,
        cost: int,
        frame: Frame,
    ) -> None:
        self._params = params
        self._defaults = defaults
        self._body = body
        self._cost = cost
        self._frame = frame

    def call(self, budget: Budget, args: list[Any], named: dict[str, Any]) -> Any:
        budget.deeper()
        budget.step(self._cost + 1)
        inner = self._frame.inner()
        if "caller" in named and "caller" not in self._params:
            inner.variables["caller"] = named["caller"]
            named = {name: value for name, value in named.items() if name != "caller"}
        self._bind(inner, args, named)
        out: list[str] = []
        self._body(inner, out)
        budget.depth -= 1
        return joined(out, budget)

    def _bind(self, inner: Frame, args: list[Any], named: dict[str, Any]) -> None:
        params = self._params
        if len(args) > len(params) or not set(named) <= set(params[len(args) :]):
            raise Mistake(Sort.ARGUMENTS)
        for at, param in enumerate(params):
            value: Any = UNDEFINED
            default = self._defaults[at]
            if at < len(args):
                value = args[at]
            elif param in named:
                value = named[param]
            elif default is not None:
                value = default(inner)
            inner.variables[param] = value


def macro_maker(stmt: Macro, body: Write, cost: int) -> Callable[[Frame], MacroFunction]:
    """The function that makes the macro in the scope where its definition is met."""
    defaults = tuple(None if default is None else evaluator(default) for default in stmt.defaults)
    return lambda frame: MacroFunction(stmt.params, defaults, body, cost, frame)
