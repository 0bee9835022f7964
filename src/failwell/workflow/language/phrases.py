"""Parses expressions, with the precedence that Jinja gives them.

The depth of what is parsed is bounded, since whoever walks the tree later goes as deep.
"""

from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.tokens import Token
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

DEEPEST = 30
"""Brackets, signs and choices inside one another."""
LONGEST_CHAIN = 200
"""Links of one chain such as `a + b + c` or `a.b.c`."""

_WORDS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_ENDS_TEST = frozenset({"else", "or", "and", "if", "is", "in", "not"})
_TEST_WORDS = {"None": "none", "True": "true", "False": "false"}

Named = tuple[tuple[str, Expr], ...]


class Phrases:
    """Reads expressions from a list of tokens, one after another."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self._depth = 0

    # ------------------------------------------------------------ tokens

    @property
    def line(self) -> int:
        """The line of the token that comes next."""
        return self.tokens[self.at][2]

    def wrong(self, sort: Sort = Sort.SYNTAX) -> Mistake:
        """A mistake at the token that comes next."""
        return Mistake(sort, self.line)

    def sees(self, kind: str, value: object = None) -> bool:
        """Whether the next token is of `kind`, and is `value` if one is given."""
        token = self.tokens[self.at]
        return token[0] == kind and (value is None or token[1] == value)

    def takes(self, kind: str, value: object = None) -> bool:
        """Go past the next token if it is what `sees` would see."""
        if self.sees(kind, value):
            self.at += 1
            return True
        return False

    def need(self, kind: str, value: object = None) -> Token:
        """The next token, which must be this one."""
        if not self.sees(kind, value):
            raise self.wrong()
        self.at += 1
        return self.tokens[self.at - 1]

    def need_name(self) -> str:
        """The next token, which must be a name that is free to be given."""
        name = str(self.need("name")[1])
        if name in _WORDS or name.startswith("_body"):
            raise Mistake(Sort.SYNTAX, self.tokens[self.at - 1][2])
        return name

    # ------------------------------------------------------------ from loose to tight

    def expression(self, *, choices: bool = True) -> Expr:
        """One expression; without `choices` an `if` ends it."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.wrong(Sort.DEPTH)
        value = self._logic("or")
        links = 0
        while choices and self.takes("name", "if"):
            test = self._logic("or")
            no = self.expression() if self.takes("name", "else") else None
            value = Choice(test, value, no)
            links = self._link(links)
        self._depth -= 1
        return value

    def tuple_or_expression(self, *, choices: bool = True) -> Expr:
        """An expression, or several with commas between: a tuple without its brackets."""
        first = self.expression(choices=choices)
        if not self.sees("op", ","):
            return first
        items = [first]
        while self.takes("op", ","):
            if self.tokens[self.at][0].startswith("/") or self.sees("op", "=") or self.sees("op", ")"):
                break
            items.append(self.expression(choices=choices))
        return TupleOf(tuple(items))

    def _link(self, links: int) -> int:
        if links >= LONGEST_CHAIN:
            raise self.wrong(Sort.DEPTH)
        return links + 1

    def _logic(self, sign: str) -> Expr:
        parts = [self._logic("and") if sign == "or" else self._negation()]
        while self.takes("name", sign):
            parts.append(self._logic("and") if sign == "or" else self._negation())
        return parts[0] if len(parts) == 1 else Logic(sign, tuple(parts))

    def _negation(self) -> Expr:
        nots = 0
        while self.takes("name", "not"):
            nots = self._link(nots)
        value = self._comparison()
        if nots == 0:
            return value
        value = Unary("not", value)
        return value if nots % 2 else Unary("not", value)

    def _comparison(self) -> Expr:
        first = self._sum()
        rest: list[tuple[str, Expr]] = []
        while True:
            kind, value, _ = self.tokens[self.at]
            if kind == "op" and value in _COMPARISONS:
                self.at += 1
                rest.append((value, self._sum()))
            elif self.takes("name", "in"):
                rest.append(("in", self._sum()))
            elif self.sees("name", "not") and self.tokens[self.at + 1][:2] == ("name", "in"):
                self.at += 2
                rest.append(("not in", self._sum()))
            else:
                return Compare(first, tuple(rest)) if rest else first

    def _sum(self) -> Expr:
        value = self._joined()
        links = 0
        while self.sees("op", "+") or self.sees("op", "-"):
            sign = self.need("op")[1]
            value = Binary(sign, value, self._joined())
            links = self._link(links)
        return value

    def _joined(self) -> Expr:
        parts = [self._product()]
        while self.takes("op", "~"):
            parts.append(self._product())
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))

    def _product(self) -> Expr:
        value = self._power()
        links = 0
        while self.tokens[self.at][0] == "op" and self.tokens[self.at][1] in {"*", "/", "//", "%"}:
            sign = self.need("op")[1]
            value = Binary(sign, value, self._power())
            links = self._link(links)
        return value

    def _power(self) -> Expr:
        value = self._signed()
        links = 0
        while self.takes("op", "**"):
            value = Binary("**", value, self._signed())
            links = self._link(links)
        return value

    def _signed(self, *, filtered: bool = True) -> Expr:
        kind, sign, _ = self.tokens[self.at]
        if kind == "op" and sign in {"-", "+"}:
            self.at += 1
            self._depth += 1
            if self._depth > DEEPEST:
                raise self.wrong(Sort.DEPTH)
            value: Expr = Unary(sign, self._signed(filtered=False))
            self._depth -= 1
        else:
            value = self._primary()
        value = self._postfix(value)
        return self._filtered(value) if filtered else value

    # ------------------------------------------------------------ what stands by itself

    def _primary(self) -> Expr:
        kind, value, _ = self.tokens[self.at]
        if kind == "name":
            self.at += 1
            if value in _WORDS:
                return Const(_WORDS[value])
            if value in _ENDS_TEST or value.startswith("_body"):
                self.at -= 1
                raise self.wrong()
            return Name(value)
        if kind == "str":
            pieces: list[str] = []
            while self.sees("str"):
                pieces.append(self.need("str")[1])
            return Const("".join(pieces))
        if kind in {"int", "float"}:
            self.at += 1
            return Const(value)
        if self.takes("op", "("):
            return self._bracketed()
        if self.takes("op", "["):
            return ListOf(self._items("]"))
        if self.takes("op", "{"):
            return self._mapping()
        raise self.wrong()

    def _bracketed(self) -> Expr:
        if self.takes("op", ")"):
            return TupleOf(())
        value = self.tuple_or_expression()
        self.need("op", ")")
        return value

    def _items(self, close: str) -> tuple[Expr, ...]:
        items: list[Expr] = []
        while not self.takes("op", close):
            if items:
                self.need("op", ",")
                if self.takes("op", close):
                    break
            items.append(self.expression())
        return tuple(items)

    def _mapping(self) -> Expr:
        pairs: list[tuple[Expr, Expr]] = []
        while not self.takes("op", "}"):
            if pairs:
                self.need("op", ",")
                if self.takes("op", "}"):
                    break
            key = self.expression()
            self.need("op", ":")
            pairs.append((key, self.expression()))
        return DictOf(tuple(pairs))

    # ------------------------------------------------------------ what follows it

    def _postfix(self, value: Expr) -> Expr:
        links = 0
        while True:
            if self.takes("op", "."):
                value = self._attribute(value)
            elif self.takes("op", "["):
                value = self._subscript(value)
            elif self.sees("op", "("):
                args, named = self.arguments()
                value = Call(value, args, named)
            else:
                return value
            links = self._link(links)

    def _attribute(self, value: Expr) -> Expr:
        kind, name, _ = self.tokens[self.at]
        if kind not in {"name", "int"}:
            raise self.wrong()
        self.at += 1
        return Attr(value, name) if kind == "name" else Item(value, Const(name))

    def _subscript(self, value: Expr) -> Expr:
        parts: list[Expr | None] = [None]
        while not self.takes("op", "]"):
            if self.takes("op", ":"):
                parts.append(None)
                if len(parts) > 3:
                    raise self.wrong()
            elif parts[-1] is None:
                parts[-1] = self.expression()
            else:
                raise self.wrong()
        if len(parts) == 1:
            if parts[0] is None:
                raise self.wrong()
            return Item(value, parts[0])
        return Span(value, parts[0], parts[1], parts[2] if len(parts) == 3 else None)

    def arguments(self) -> tuple[tuple[Expr, ...], Named]:
        """The arguments of a call, in their brackets."""
        self.need("op", "(")
        args: list[Expr] = []
        named: list[tuple[str, Expr]] = []
        while not self.takes("op", ")"):
            if args or named:
                self.need("op", ",")
                if self.takes("op", ")"):
                    break
            if self.sees("name") and self.tokens[self.at + 1][:2] == ("op", "="):
                name = str(self.need("name")[1])
                self.at += 1
                named.append((name, self.expression()))
            elif named:
                raise self.wrong()
            else:
                args.append(self.expression())
        return tuple(args), tuple(named)

    def _filtered(self, value: Expr) -> Expr:
        links = 0
        while True:
            if self.sees("op", "|"):
                value = self.one_filter(value)
            elif self.takes("name", "is"):
                value = self._test(value)
            elif self.sees("op", "("):
                args, named = self.arguments()
                value = Call(value, args, named)
            else:
                return value
            links = self._link(links)

    def one_filter(self, value: Expr, *, bar: bool = True) -> Expr:
        """`| name(args)`; without the bar at the start of a filter block."""
        if bar:
            self.need("op", "|")
        name = str(self.need("name")[1])
        args, named = self.arguments() if self.sees("op", "(") else ((), ())
        return Filter(value, name, args, named)

    def _test(self, value: Expr) -> Expr:
        negated = self.takes("name", "not")
        name = str(self.need("name")[1])
        name = _TEST_WORDS.get(name, name)
        args: tuple[Expr, ...] = ()
        named: Named = ()
        if self.sees("op", "("):
            args, named = self.arguments()
        elif self._starts_argument():
            args = (self._postfix(self._primary()),)
        test = Test(value, name, args, named)
        return Unary("not", test) if negated else test

    def _starts_argument(self) -> bool:
        kind, value, _ = self.tokens[self.at]
        if kind == "name":
            return value not in _ENDS_TEST
        return kind in {"str", "int", "float"} or (kind == "op" and value in {"[", "{"})
