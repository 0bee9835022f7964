"""Parses the expressions in the tags of a template, with the grammar of Jinja2.

The engine parses templates itself. This tree is for what has to be known before: which operators compare, which path a
`default` guards, what a tag refers to. A tag that cannot be parsed here is a syntax mistake.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from failwell.workflows.template.syntax.tokenizer import Token
from failwell.workflows.template.syntax.tree import Expression, Step
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

MAX_NESTING = 60
"""Levels of brackets and of `not`, `-` and `if`."""
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_CONSTANTS = frozenset({"true", "True", "false", "False", "none", "None"})
_LEVELS = (frozenset({"+", "-"}), frozenset({"~"}), frozenset({"*", "/", "//", "%"}), frozenset({"**"}))
_ARITHMETIC = frozenset[str]().union(*_LEVELS)
_MEMBERSHIP = frozenset({("name", "in"), ("name", "not")})
_AFTER_TEST = frozenset({"else", "or", "and", "is", "not", "in", "if"})
_END: Token = ("end", None, 0, 0, 0)


def parse_expression(tokens: list[Token]) -> Expression:
    """The expression that these tokens are, whole. Raises `TemplateMistake`."""
    parser = Parser(tokens)
    expression = parser.read_tuple()
    parser.finish()
    return expression


class Parser:
    """Reads the tokens of one tag of a template."""

    def __init__(self, tokens: list[Token], before: Token = _END) -> None:
        last = tokens[-1] if tokens else before
        self._tokens = [*tokens, ("end", None, last[2], last[4], last[4])]
        self._index = 0
        self._token = self._tokens[0]
        """The next token."""
        self._before = before
        self._nesting = 0

    # ------------------------------------------------------------ tokens

    @property
    def _last(self) -> Token:
        return self._tokens[self._index - 1] if self._index else self._before

    def is_op(self, *operators: str) -> bool:
        """Whether the next token is one of these operators."""
        token = self._token
        return token[0] == "op" and token[1] in operators

    def is_word(self, *words: str) -> bool:
        """Whether the next token is one of these words."""
        token = self._token
        return token[0] == "name" and token[1] in words

    def _is_word_at(self, offset: int, word: str) -> bool:
        index = self._index + offset
        return index < len(self._tokens) and self._tokens[index][:2] == ("name", word)

    def take(self) -> Token:
        """The next token, which is passed."""
        token = self._token
        if token[0] != "end":
            self._index += 1
            self._token = self._tokens[self._index]
        return token

    def expect(self, operator: str) -> Token:
        """Pass this operator."""
        if not self.is_op(operator):
            self.fail()
        return self.take()

    def name(self) -> str:
        """Pass a name."""
        if self._token[0] != "name":
            self.fail()
        return str(self.take()[1])

    def is_done(self) -> bool:
        """Whether all tokens are passed."""
        return self._token[0] == "end"

    def finish(self) -> None:
        """Refuse what is left."""
        if not self.is_done():
            self.fail()

    def fail(self) -> NoReturn:
        """Raise a syntax mistake at the next token."""
        self._fail_at(self._token)

    def _fail_at(self, token: Token) -> NoReturn:
        kind, value, line, *_ = token
        word = {"end": "the end of the tag", "str": "a text"}.get(kind, f"`{value}`")
        raise TemplateMistake(
            MistakeType.SYNTAX, line or self._last[2] or None, detail=f"{word} is not expected"
        )

    # ------------------------------------------------------------ expressions

    def read_tuple(self, *, has_if: bool = True) -> Expression:
        """An expression, or several with commas between them."""
        first = self.expression() if has_if else self._or()
        if not self.is_op(","):
            return first
        parts = [first]
        while self.is_op(","):
            self.take()
            if self.is_done() or self.is_word("if", "recursive"):
                break
            parts.append(self.expression() if has_if else self._or())
        return Expression("tuple", first.start, parts[-1].end, first.line, [*parts])

    def expression(self) -> Expression:
        """An expression, with an `if` after it perhaps."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise TemplateMistake(MistakeType.DEPTH, self._token[2])
        left = self._or()
        while self.is_word("if"):
            self.take()
            parts = [left, self._or()]
            if self.is_word("else"):
                self.take()
                parts.append(self.expression())
            left = Expression("if", left.start, parts[-1].end, left.line, [*parts])
        self._nesting -= 1
        return left

    def _or(self) -> Expression:
        return self._joined("or", self._and)

    def _and(self) -> Expression:
        return self._joined("and", self._not)

    def _joined(self, word: str, read: Any) -> Expression:
        first: Expression = read()
        if not self.is_word(word):
            return first
        parts = [first]
        while self.is_word(word):
            self.take()
            parts.append(read())
        return Expression(word, first.start, parts[-1].end, first.line, [*parts])

    def _not(self) -> Expression:
        if not self.is_word("not"):
            return self._compare()
        token = self.take()
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise TemplateMistake(MistakeType.DEPTH, token[2])
        operand = self._not()
        self._nesting -= 1
        return Expression("not", token[3], operand.end, token[2], [operand])

    def _compare(self) -> Expression:
        first = self._operand()
        token = self._token
        if token[1] not in _COMPARISONS and token[:2] not in _MEMBERSHIP:
            return first
        parts, operators = [first], list[tuple[str, int, int]]()
        while True:
            token = self._token
            if token[0] == "op" and token[1] in _COMPARISONS:
                self.take()
                operators.append((str(token[1]), token[3], token[4]))
            elif self.is_word("in"):
                self.take()
                operators.append(("in", token[3], token[4]))
            elif self.is_word("not") and self._is_word_at(1, "in"):
                self.take()
                operators.append(("not in", token[3], self.take()[4]))
            else:
                break
            parts.append(self._operand())
        return self._operation("compare", parts, operators)

    def _operand(self) -> Expression:
        first = self._unary()
        token = self._token
        return self._arithmetic(0, first) if token[0] == "op" and token[1] in _ARITHMETIC else first

    def _arithmetic(self, level: int, operand: Expression | None = None) -> Expression:
        """Operators of one level and the levels below it; `operand` is the first one, if it is parsed already."""
        if level == len(_LEVELS):
            return self._unary() if operand is None else operand
        first = self._arithmetic(level + 1, operand)
        parts, operators = [first], list[tuple[str, int, int]]()
        while (token := self._token)[0] == "op" and token[1] in _LEVELS[level]:
            self.take()
            operators.append((str(token[1]), token[3], token[4]))
            parts.append(self._arithmetic(level + 1))
        return self._operation("arithmetic", parts, operators)

    def _operation(
        self, kind: str, parts: list[Expression], operators: list[tuple[str, int, int]]
    ) -> Expression:
        if not operators:
            return parts[0]
        expression = Expression(kind, parts[0].start, parts[-1].end, parts[0].line, [*parts])
        expression.operators = operators
        return expression

    def _unary(self, *, has_filters: bool = True) -> Expression:
        if self.is_op("-", "+"):
            token = self.take()
            self._nesting += 1
            if self._nesting > MAX_NESTING:
                raise TemplateMistake(MistakeType.DEPTH, token[2])
            operand = self._unary(has_filters=False)
            self._nesting -= 1
            if token[1] == "+":
                raise TemplateMistake(MistakeType.SYNTAX, token[2])
            expression = Expression("negate", token[3], operand.end, token[2], [operand])
        else:
            expression = self._chain(self._primary())
        return self._filters(expression) if has_filters else expression

    def _primary(self) -> Expression:
        token = self.take()
        kind, value, line, start, end = token
        if kind == "str":
            while self._token[0] == "str":
                end = self.take()[4]
            return Expression("const", start, end, line, [], value)
        if kind in {"int", "float"}:
            return Expression("const", start, end, line, [], value)
        if kind == "name":
            if value in _CONSTANTS:
                return Expression("const", start, end, line, [], _WORDS[str(value).lower()])
            if value in _AFTER_TEST:
                self._fail_at(token)
            return Expression("name", start, end, line, [], value)
        if kind == "op" and value in _CLOSING:
            return self._bracket(str(value), start, line)
        return self._fail_at(token)

    def _bracket(self, opening: str, start: int, line: int) -> Expression:
        closing = _CLOSING[opening]
        items: list[Expression] = []
        commas = 0
        while not self.is_op(closing):
            items.append(self.expression())
            if opening == "{":
                self.expect(":")
                items.append(self.expression())
            if not self.is_op(","):
                break
            self.take()
            commas += 1
        end = self.expect(closing)[4]
        if opening == "(":
            return Expression("tuple" if commas or not items else "group", start, end, line, [*items])
        return Expression("list" if opening == "[" else "dict", start, end, line, [*items])

    def _chain(self, base: Expression) -> Expression:
        steps: list[Step] = []
        while True:
            if self.is_op("."):
                dot = self.take()
                token = self.take()
                if token[0] not in {"name", "int", "float"}:
                    self._fail_at(token)
                steps.append(Step("attribute", dot[3], token[4], [], str(token[1]), token[3]))
            elif self.is_op("["):
                steps.append(self._item())
            elif self.is_op("("):
                steps.append(self._call())
            else:
                break
        if not steps:
            return base
        return Expression("chain", base.start, steps[-1].end, base.line, [base, *steps])

    def _item(self) -> Step:
        opening = self.take()
        bounds: list[Expression] = []
        is_slice = False
        while not self.is_op("]"):
            if self.is_op(":"):
                self.take()
                is_slice = True
            else:
                bounds.append(self.read_tuple())
                if not self.is_op(":", "]"):
                    self.fail()
        closing = self.expect("]")
        if not bounds and not is_slice:
            self.fail()
        step = Step("slice" if is_slice else "item", opening[3], closing[4], bounds)
        step.opens = opening[4]
        return step

    def _call(self) -> Step:
        opening = self.expect("(")
        arguments: list[Expression] = []
        keywords: set[int] = set()
        while not self.is_op(")"):
            if self.is_op("*", "**"):
                self.take()
            elif self._token[0] == "name" and self._is_argument_name():
                keywords.add(len(arguments))
                self.take()
                self.take()
            arguments.append(self.expression())
            if not self.is_op(","):
                break
            self.take()
        step = Step("call", opening[3], self.expect(")")[4], arguments)
        step.opens, step.keywords = opening[4], frozenset(keywords)
        return step

    def _is_argument_name(self) -> bool:
        index = self._index + 1
        return index < len(self._tokens) and self._tokens[index][:2] == ("op", "=")

    def _filters(self, base: Expression) -> Expression:
        while True:
            if self.is_op("|"):
                steps = list(self.filter_steps())
                base = Expression("filters", base.start, steps[-1].end, base.line, [base, *steps])
            elif self.is_word("is"):
                base = self._test(base)
            elif self.is_op("(") and base.kind == "filters":
                step = self._call()
                base = Expression("chain", base.start, step.end, base.line, [base, step])
            else:
                return base

    def filtered(self, steps: Iterator[Step]) -> Expression:
        """A block of text with its filters."""
        token = self._token
        block = Expression("const", token[3], token[3], token[2], [])
        parts = [block, *steps]
        self.finish()
        return Expression("filters", token[3], self._last[4], token[2], parts)

    def filter_steps(self) -> Iterator[Step]:
        """Pass `| name(arguments)`, as often as it occurs."""
        while self.is_op("|"):
            bar = self.take()
            token = self._token
            name = self.name()
            step = Step("filter", bar[3], token[4], [], name, token[3])
            if self.is_op("("):
                call = self._call()
                step.arguments, step.end = call.arguments, call.end
                step.opens, step.keywords = call.opens, call.keywords
            yield step

    def filter_block(self) -> Iterator[Step]:
        """Pass the filters of a `{% filter %}` tag, the first of which has no bar."""
        token = self._token
        name = self.name()
        step = Step("filter", token[3], token[4], [], name, token[3])
        if self.is_op("("):
            call = self._call()
            step.arguments, step.end = call.arguments, call.end
            step.opens, step.keywords = call.opens, call.keywords
        yield step
        yield from self.filter_steps()

    def _test(self, base: Expression) -> Expression:
        self.take()
        is_negated = self.is_word("not")
        if is_negated:
            self.take()
        token = self._token
        name = self.name()
        arguments: list[Expression] = []
        end = token[4]
        following = self._token
        if self.is_op("("):
            call = self._call()
            arguments, end = call.arguments, call.end
        elif following[0] in {"str", "int", "float"} or (
            following[0] == "name" and following[1] not in _AFTER_TEST
        ) or self.is_op("[", "{"):  # fmt: skip
            argument = self._chain(self._primary())
            arguments, end = [argument], argument.end
        test = Expression("test", base.start, end, base.line, [base, *arguments], name)
        test.operators = [(name, token[3], token[4])]
        test.is_negated = is_negated
        return test


_WORDS = {"true": True, "false": False, "none": None}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
