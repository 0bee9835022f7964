"""Parses whole templates: the statements of Jinja around the expressions."""

from collections.abc import Callable

from failwell.workflow.language.mistakes import Mistake, Sort
from failwell.workflow.language.phrases import Phrases
from failwell.workflow.language.tokens import expression_tokens, template_tokens
from failwell.workflow.language.tree import (
    BODY,
    Block,
    Call,
    CallBlock,
    Do,
    Expr,
    Extends,
    FilterBlock,
    For,
    If,
    Import,
    Include,
    Macro,
    Name,
    NamespaceTarget,
    Out,
    Set,
    SetBlock,
    Stmt,
    Target,
    Text,
    With,
)

DEEPEST = 30
"""Blocks inside one another."""


def parse_template(text: str) -> tuple[Stmt, ...]:
    """The statements of a template."""
    parser = _Statements(Phrases(template_tokens(text)))
    body = parser.body(frozenset())
    parser.phrases.need("end")
    return body


def parse_expression(text: str) -> Expr:
    """The tree of a condition that stands by itself."""
    phrases = Phrases(expression_tokens(text))
    value = phrases.expression()
    phrases.need("end")
    return value


class _Statements:
    def __init__(self, phrases: Phrases) -> None:
        self.phrases = phrases
        self._depth = 0
        self._blocks: set[str] = set()
        self._readers: dict[str, Callable[[int], Stmt]] = {
            "if": self._if,
            "for": self._for,
            "set": self._set,
            "macro": self._macro,
            "call": self._call,
            "filter": self._filter,
            "with": self._with,
            "include": self._include,
            "import": self._import,
            "from": self._from,
            "extends": self._extends,
            "block": self._block,
            "do": self._do,
        }

    def body(self, ends: frozenset[str]) -> tuple[Stmt, ...]:
        """Statements up to a tag that opens with one of `ends`, of which the name comes next."""
        phrases = self.phrases
        self._depth += 1
        if self._depth > DEEPEST:
            raise phrases.wrong(Sort.DEPTH)
        found: list[Stmt] = []
        while True:
            kind, value, line = phrases.tokens[phrases.at]
            if kind == "text":
                phrases.at += 1
                found.append(Text(value))
            elif kind == "out":
                phrases.at += 1
                found.append(Out(phrases.tuple_or_expression(), line))
                phrases.need("/out")
            elif kind == "block":
                phrases.at += 1
                if phrases.sees("name") and phrases.tokens[phrases.at][1] in ends:
                    break
                found.append(self._statement(line))
            elif ends:
                raise phrases.wrong()
            else:
                break
        self._depth -= 1
        return tuple(found)

    def _statement(self, line: int) -> Stmt:
        name = str(self.phrases.need("name")[1])
        reader = self._readers.get(name)
        if reader is None:
            raise Mistake(Sort.SYNTAX, line)
        return reader(line)

    def _close(self) -> None:
        self.phrases.need("/block")

    def _until(self, end: str) -> tuple[Stmt, ...]:
        self._close()
        body = self.body(frozenset({end}))
        self.phrases.need("name", end)
        return body

    # ------------------------------------------------------------ control

    def _if(self, line: int) -> Stmt:
        phrases = self.phrases
        branches: list[tuple[Expr, tuple[Stmt, ...]]] = []
        other: tuple[Stmt, ...] = ()
        while True:
            test = phrases.tuple_or_expression()
            self._close()
            branches.append((test, self.body(frozenset({"elif", "else", "endif"}))))
            if phrases.takes("name", "elif"):
                continue
            if phrases.takes("name", "else"):
                other = self._until("endif")
            else:
                phrases.need("name", "endif")
            self._close()
            return If(tuple(branches), other, line)

    def _for(self, line: int) -> Stmt:
        phrases = self.phrases
        target = self._target()
        phrases.need("name", "in")
        source = phrases.tuple_or_expression(choices=False)
        test = phrases.expression() if phrases.takes("name", "if") else None
        recursive = phrases.takes("name", "recursive")
        self._close()
        body = self.body(frozenset({"else", "endfor"}))
        other: tuple[Stmt, ...] = ()
        if phrases.takes("name", "else"):
            other = self._until("endfor")
        else:
            phrases.need("name", "endfor")
        self._close()
        return For(target, source, test, recursive, body, other, line)

    # ------------------------------------------------------------ names

    def _target(self, *, namespaces: bool = False) -> Target:
        phrases = self.phrases
        targets: list[Target] = []
        while True:
            if phrases.takes("op", "("):
                targets.append(self._target())
                phrases.need("op", ")")
            else:
                name = phrases.need_name()
                if namespaces and phrases.takes("op", "."):
                    targets.append(NamespaceTarget(name, str(phrases.need("name")[1])))
                else:
                    targets.append(name)
            if not phrases.takes("op", ","):
                return targets[0] if len(targets) == 1 else tuple(targets)

    def _set(self, line: int) -> Stmt:
        phrases = self.phrases
        target = self._target(namespaces=True)
        if phrases.takes("op", "="):
            value = phrases.tuple_or_expression()
            self._close()
            return Set(target, value, line)
        value = Name(BODY)
        while phrases.sees("op", "|"):
            value = phrases.one_filter(value)
        body = self._until("endset")
        self._close()
        return SetBlock(target, value, body, line)

    def _with(self, line: int) -> Stmt:
        phrases = self.phrases
        pairs: list[tuple[Target, Expr]] = []
        while not phrases.sees("/block"):
            if pairs:
                phrases.need("op", ",")
            name = phrases.need_name()
            phrases.need("op", "=")
            pairs.append((name, phrases.expression()))
        body = self._until("endwith")
        self._close()
        return With(tuple(pairs), body, line)

    def _do(self, line: int) -> Stmt:
        value = self.phrases.tuple_or_expression()
        self._close()
        return Do(value, line)

    # ------------------------------------------------------------ macros and filters

    def _macro(self, line: int) -> Stmt:
        name = self.phrases.need_name()
        return self._macro_body(name, "endmacro", line)

    def _macro_body(self, name: str, end: str, line: int) -> Macro:
        params, defaults = self._parameters()
        body = self._until(end)
        if self.phrases.sees("name"):
            self.phrases.need("name")
        self._close()
        return Macro(name, params, defaults, body, line)

    def _parameters(self) -> tuple[tuple[str, ...], tuple[Expr | None, ...]]:
        phrases = self.phrases
        params: list[str] = []
        defaults: list[Expr | None] = []
        phrases.need("op", "(")
        while not phrases.takes("op", ")"):
            if params:
                phrases.need("op", ",")
            params.append(phrases.need_name())
            if phrases.takes("op", "="):
                defaults.append(phrases.expression())
            elif defaults and defaults[-1] is not None:
                raise phrases.wrong()
            else:
                defaults.append(None)
        return tuple(params), tuple(defaults)

    def _call(self, line: int) -> Stmt:
        phrases = self.phrases
        params: tuple[str, ...] = ()
        defaults: tuple[Expr | None, ...] = ()
        if phrases.sees("op", "("):
            params, defaults = self._parameters()
        call = phrases.expression()
        if not isinstance(call, Call):
            raise phrases.wrong()
        body = self._until("endcall")
        self._close()
        return CallBlock(call, Macro("caller", params, defaults, body, line), line)

    def _filter(self, line: int) -> Stmt:
        phrases = self.phrases
        value = phrases.one_filter(Name(BODY), bar=False)
        while phrases.sees("op", "|"):
            value = phrases.one_filter(value)
        body = self._until("endfilter")
        self._close()
        return FilterBlock(value, body, line)

    # ------------------------------------------------------------ parts

    def _include(self, line: int) -> Stmt:
        phrases = self.phrases
        part = phrases.expression()
        ignore = phrases.takes("name", "ignore")
        if ignore:
            phrases.need("name", "missing")
        with_context = self._context(otherwise=True)
        self._close()
        return Include(part, ignore, with_context, line)

    def _context(self, *, otherwise: bool) -> bool:
        phrases = self.phrases
        for word in ("with", "without"):
            if phrases.sees("name", word) and phrases.tokens[phrases.at + 1][1] == "context":
                phrases.at += 2
                return word == "with"
        return otherwise

    def _import(self, line: int) -> Stmt:
        part = self.phrases.expression()
        self.phrases.need("name", "as")
        alias = self.phrases.need_name()
        with_context = self._context(otherwise=False)
        self._close()
        return Import(part, alias, (), with_context, line)

    def _from(self, line: int) -> Stmt:
        phrases = self.phrases
        part = phrases.expression()
        phrases.need("name", "import")
        names: list[tuple[str, str]] = []
        with_context = False
        while not phrases.sees("/block"):
            if names:
                if not phrases.takes("op", ","):
                    with_context = self._context(otherwise=False)
                    break
                if phrases.sees("/block"):
                    break
            name = phrases.need_name()
            names.append((name, phrases.need_name() if phrases.takes("name", "as") else name))
        self._close()
        return Import(part, None, tuple(names), with_context, line)

    def _extends(self, line: int) -> Stmt:
        part = self.phrases.expression()
        self._close()
        return Extends(part, line)

    def _block(self, line: int) -> Stmt:
        phrases = self.phrases
        name = phrases.need_name()
        if name in self._blocks:
            raise Mistake(Sort.SYNTAX, line)
        self._blocks.add(name)
        phrases.takes("name", "scoped")
        phrases.takes("name", "required")
        body = self._until("endblock")
        if phrases.sees("name"):
            phrases.need("name", name)
        self._close()
        return Block(name, body, line)
