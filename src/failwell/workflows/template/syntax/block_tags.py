"""Finds the expressions in a `{% %}` tag."""

from typing import Any

from failwell.workflows.template.syntax.expressions import Parser
from failwell.workflows.template.syntax.tokenizer import Token
from failwell.workflows.template.syntax.tree import Expression
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

_BARE = frozenset({"else", "raw", "endraw", "continue", "break", "block"})
"""Tags without an expression."""


def parse_block(tokens: list[Token]) -> list[Expression]:
    """The expressions of a `{% %}` tag. Raises `TemplateMistake`."""
    if not tokens or tokens[0][0] != "name":
        raise TemplateMistake(MistakeType.SYNTAX, tokens[0][2] if tokens else None)
    word = str(tokens[0][1])
    if word in _BARE or word.startswith("end"):
        return []
    read = _BLOCKS.get(word)
    if read is None:
        raise TemplateMistake(MistakeType.SYNTAX, tokens[0][2], detail=f"there is no tag `{word}`")
    parser = Parser(tokens[1:], tokens[0])
    return read(parser)


def _whole(parser: Parser) -> list[Expression]:
    expression = parser.read_tuple()
    parser.finish()
    return [expression]


def _first(parser: Parser) -> list[Expression]:
    """Of `include x with context`, `x`."""
    return [parser.read_tuple()]


def _for(parser: Parser) -> list[Expression]:
    while not parser.is_word("in"):
        if parser.is_done():
            parser.fail()
        parser.take()
    parser.take()
    expressions = [parser.read_tuple(has_if=False)]
    if parser.is_word("if"):
        parser.take()
        expressions.append(parser.expression())
    if parser.is_word("recursive"):
        parser.take()
    parser.finish()
    return expressions


def _set(parser: Parser) -> list[Expression]:
    while not parser.is_op("=", "|") and not parser.is_done():
        parser.take()
    if parser.is_op("|"):
        return [parser.filtered(parser.filter_steps())]
    if parser.is_done():
        return []
    parser.take()
    return _whole(parser)


def _with(parser: Parser) -> list[Expression]:
    expressions: list[Expression] = []
    while not parser.is_done():
        parser.name()
        parser.expect("=")
        expressions.append(parser.expression())
        if not parser.is_done():
            parser.expect(",")
    return expressions


def _parameters(parser: Parser) -> list[Expression]:
    expressions: list[Expression] = []
    parser.expect("(")
    while not parser.is_op(")"):
        parser.name()
        if parser.is_op("="):
            parser.take()
            expressions.append(parser.expression())
        if not parser.is_op(","):
            break
        parser.take()
    parser.expect(")")
    return expressions


def _macro(parser: Parser) -> list[Expression]:
    parser.name()
    return _parameters(parser)


def _call_block(parser: Parser) -> list[Expression]:
    defaults = _parameters(parser) if parser.is_op("(") else []
    return [*defaults, *_whole(parser)]


def _filter_block(parser: Parser) -> list[Expression]:
    return [parser.filtered(parser.filter_block())]


_BLOCKS: dict[str, Any] = {
    "if": _whole, "elif": _whole, "do": _whole, "autoescape": _whole, "for": _for, "set": _set, "with": _with,
    "macro": _macro, "call": _call_block, "filter": _filter_block, "include": _first, "import": _first,
    "from": _first, "extends": _first,
}  # fmt: skip
