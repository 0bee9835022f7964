"""The tree of a parsed template.

Expressions and statements are named tuples: cheap to make, and nothing can change them.
"""

from typing import Any, NamedTuple

# ---------------------------------------------------------------- expressions


class Const(NamedTuple):
    """A literal."""

    value: Any


class Name(NamedTuple):
    """A name of the context or of the template."""

    name: str


class Attr(NamedTuple):
    """`target.name`."""

    target: "Expr"
    name: str


class Item(NamedTuple):
    """`target[key]`."""

    target: "Expr"
    key: "Expr"


class Span(NamedTuple):
    """`target[start:stop:step]`."""

    target: "Expr"
    start: "Expr | None"
    stop: "Expr | None"
    step: "Expr | None"


class Call(NamedTuple):
    """`target(args, name=value)`."""

    target: "Expr"
    args: "tuple[Expr, ...]"
    named: "tuple[tuple[str, Expr], ...]"


class Filter(NamedTuple):
    """`value | name(args)`."""

    value: "Expr"
    name: str
    args: "tuple[Expr, ...]"
    named: "tuple[tuple[str, Expr], ...]"


class Test(NamedTuple):
    """`value is name(args)`."""

    value: "Expr"
    name: str
    args: "tuple[Expr, ...]"
    named: "tuple[tuple[str, Expr], ...]"


class Unary(NamedTuple):
    """`-x`, `+x` or `not x`."""

    sign: str
    value: "Expr"


class Binary(NamedTuple):
    """An operation of arithmetic."""

    sign: str
    left: "Expr"
    right: "Expr"


class Concat(NamedTuple):
    """`a ~ b ~ c`."""

    parts: "tuple[Expr, ...]"


class Logic(NamedTuple):
    """`a and b and c`, or the same with `or`."""

    sign: str
    parts: "tuple[Expr, ...]"


class Compare(NamedTuple):
    """`a < b <= c`, `a in b`."""

    first: "Expr"
    rest: "tuple[tuple[str, Expr], ...]"


class Choice(NamedTuple):
    """`a if test else b`."""

    test: "Expr"
    yes: "Expr"
    no: "Expr | None"


class ListOf(NamedTuple):
    """`[a, b]`."""

    items: "tuple[Expr, ...]"


class TupleOf(NamedTuple):
    """`(a, b)`."""

    items: "tuple[Expr, ...]"


class DictOf(NamedTuple):
    """`{a: b}`."""

    pairs: "tuple[tuple[Expr, Expr], ...]"


Expr = (
    Const | Name | Attr | Item | Span | Call | Filter | Test | Unary | Binary | Concat | Logic | Compare
    | Choice | ListOf | TupleOf | DictOf
)  # fmt: skip

# ---------------------------------------------------------------- statements


class Text(NamedTuple):
    """Text outside of tags."""

    text: str


class Out(NamedTuple):
    """`{{ value }}`."""

    value: Expr
    line: int


class If(NamedTuple):
    """`{% if %}` with its `elif`s; `other` is the `else`."""

    branches: "tuple[tuple[Expr, tuple[Stmt, ...]], ...]"
    other: "tuple[Stmt, ...]"
    line: int


class For(NamedTuple):
    """`{% for target in source if test %}`."""

    target: "Target"
    source: Expr
    test: Expr | None
    recursive: bool
    body: "tuple[Stmt, ...]"
    other: "tuple[Stmt, ...]"
    line: int


class Set(NamedTuple):
    """`{% set target = value %}`."""

    target: "Target"
    value: Expr
    line: int


class SetBlock(NamedTuple):
    """`{% set target %}…{% endset %}`. `value` is the filtered body, named `_body` in it."""

    target: "Target"
    value: Expr
    body: "tuple[Stmt, ...]"
    line: int


class Macro(NamedTuple):
    """`{% macro name(params) %}`."""

    name: str
    params: tuple[str, ...]
    defaults: tuple[Expr | None, ...]
    body: "tuple[Stmt, ...]"
    line: int


class CallBlock(NamedTuple):
    """`{% call(params) target() %}`: the body becomes `caller`."""

    call: Call
    caller: Macro
    line: int


class FilterBlock(NamedTuple):
    """`{% filter name %}`; `value` filters `_body`."""

    value: Expr
    body: "tuple[Stmt, ...]"
    line: int


class With(NamedTuple):
    """`{% with a = b %}`."""

    pairs: "tuple[tuple[Target, Expr], ...]"
    body: "tuple[Stmt, ...]"
    line: int


class Include(NamedTuple):
    """`{% include part %}`."""

    part: Expr
    ignore_missing: bool
    with_context: bool
    line: int


class Import(NamedTuple):
    """`{% import part as alias %}`, or `{% from part import … %}` with `names`."""

    part: Expr
    alias: str | None
    names: tuple[tuple[str, str], ...]
    with_context: bool
    line: int


class Extends(NamedTuple):
    """`{% extends part %}`."""

    part: Expr
    line: int


class Block(NamedTuple):
    """`{% block name %}`."""

    name: str
    body: "tuple[Stmt, ...]"
    line: int


class Do(NamedTuple):
    """`{% do value %}`."""

    value: Expr
    line: int


class NamespaceTarget(NamedTuple):
    """`ns.field` on the left of a `set`."""

    name: str
    field: str


Target = str | NamespaceTarget | tuple[Any, ...]
"""A name, a field of a namespace, or a tuple of targets."""

Stmt = (
    Text | Out | If | For | Set | SetBlock | Macro | CallBlock | FilterBlock | With | Include | Import
    | Extends | Block | Do
)  # fmt: skip

BODY = "_body"
"""The name under which the filters of a block find its text. No template can write it: see the parser."""
