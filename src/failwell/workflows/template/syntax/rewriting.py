"""Rewrites expressions where the engine's meaning is not the documented one, without moving a line.

- Comparisons and `in` call `_compare`, because the engine orders values of any two types.
- A path before `default` or `is defined` is read by `_path`, so that each of its steps may be missing.
- Methods of texts, lists and mappings call `_method`, which has those of Python with a size limit.
- Undefined values are marked before a filter in Python, which could not distinguish them from null.
- Whole numbers beyond 64 bits become `_big`, which the engine cannot round.

Arithmetic is left to the engine, which knows fractions from whole numbers. What it cannot calculate is rendered once more with
`exact`, in Python.
"""

from failwell.workflows.template.data_views import LARGEST_NATIVE
from failwell.workflows.template.functions.methods import METHOD_NAMES
from failwell.workflows.template.syntax.tree import Expression, Step

Edit = tuple[int, str, int]
"""Offset, new text, and the number of characters that it replaces."""

_MARK = "|default(_missing)"
_ALWAYS_DEFINED = frozenset(
    {"const", "list", "tuple", "dict", "compare", "test", "not", "arithmetic", "negate"}
)
_EQUALITIES = frozenset({"==", "!="})
_EXACT_FILTERS = frozenset({"sum", "abs"})
_DEFAULTS = frozenset({"default", "d"})


class Rewriter:
    """Collects the edits of a template."""

    def __init__(
        self, python_filters: frozenset[str], objects: frozenset[str], *, exact: bool, has_places: bool
    ) -> None:
        self.edits: list[Edit] = []
        self._filters = python_filters
        self._objects = objects
        """Names of objects that only templates have, such as imported parts, with methods of their own."""
        self._exact = exact
        self._has_places = has_places

    def add(self, expression: Expression) -> None:
        """Collect the edits of an expression."""
        match expression.kind:
            case "compare" if self._is_ordered(expression):
                self._operation(expression, "_compare")
            case "arithmetic" if self._exact:
                self._operation(expression, "_arithmetic")
            case "negate" if self._exact:
                self._negate(expression)
            case "filters":
                self._filter(expression)
            case "test" if expression.value in {"defined", "undefined"}:
                self._defined(expression)
            case "chain":
                self._chain(expression)
            case "and" | "or":
                self._truths(expression)
            case "const" if type(expression.value) is int and expression.value > LARGEST_NATIVE:
                self._replace(expression.start, expression.end, f'_big("{expression.value}")')
            case _:
                for part in expression.inner():
                    self.add(part)

    # ------------------------------------------------------------ edits

    def _insert(self, offset: int, text: str) -> None:
        self.edits.append((offset, text, 0))

    def _replace(self, start: int, end: int, text: str) -> None:
        self.edits.append((start, text, end - start))

    def _place(self, expression: Expression) -> str:
        return f"{expression.start},{expression.end}" if self._has_places else "0,0"

    # ------------------------------------------------------------ operators

    def _is_ordered(self, expression: Expression) -> bool:
        return any(name not in _EQUALITIES for name, *_ in expression.operators) or any(
            _is_calculated(part) for part in expression.parts
        )

    def _operation(self, expression: Expression, function: str) -> None:
        """`a < b` as `((a)|_compare(PLACE,"<",(b)))`."""
        first, *rest = expression.parts
        self._insert(first.start, "((")
        self.add(first)
        previous = first
        head = f"|{function}({self._place(expression)},"
        for (name, start, end), operand in zip(expression.operators, rest, strict=True):
            self._replace(start, end, f'){_mark(previous)}{head}"{name}",(')
            self.add(operand)
            previous, head = operand, ","
        self._insert(expression.end, f"){_mark(previous)}))")

    def _truths(self, expression: Expression) -> None:
        """A step that has not run is false in `step and …`, where the engine would pass it on as a value."""
        for part in expression.parts:
            if part.kind == "name":
                self._insert(part.end, f" if ({part.value}{_MARK}) is _ran else false)")
                self._insert(part.start, "(")
            else:
                self.add(part)

    def _negate(self, expression: Expression) -> None:
        (operand,) = expression.parts
        self._replace(expression.start, expression.start + 1, "((")
        self.add(operand)
        self._insert(expression.end, f"){_mark(operand)}|_negate({self._place(expression)}))")

    # ------------------------------------------------------------ filters and tests

    def _filter(self, expression: Expression) -> None:
        base, *steps = expression.parts
        if steps[0].name in _DEFAULTS:
            self._safe(base)
        else:
            self.add(base)
        for step in steps:
            self._filter_step(step)

    def _filter_step(self, step: Step) -> None:
        if step.name in _DEFAULTS:
            self._insert(step.name_start, "_")
            for index, argument in enumerate(step.arguments):
                if index == 0:
                    self._safe(argument)
                else:
                    self.add(argument)
            return
        has_bar = step.start != step.name_start  # the first filter of a `filter` tag has none
        if has_bar and (step.name in self._filters or (self._exact and step.name in _EXACT_FILTERS)):
            self._insert(step.start, _MARK)
        if self._exact and step.name in _EXACT_FILTERS:
            self._insert(step.name_start, "_")
        for argument in step.arguments:
            self.add(argument)

    def _defined(self, expression: Expression) -> None:
        base = expression.parts[0]
        self._safe(base)
        (_, start, _), *_ = expression.operators
        self._insert(start, "_")

    def _safe(self, expression: Expression) -> None:
        """Make a missing value a marked one, also if it is missing at an earlier step of its path."""
        if expression.kind in _ALWAYS_DEFINED:
            self.add(expression)
            return
        self._insert(expression.start, "(")
        if expression.kind == "group":
            self._safe(expression.parts[0])
        elif expression.kind == "chain" and self._is_path(expression):
            self._safe_chain(expression)
        else:
            self.add(expression)
        self._insert(expression.end, f"{_MARK})")

    def _is_path(self, expression: Expression) -> bool:
        """Whether every step is an attribute, an item, or a method that `_method` has."""
        base, *steps = expression.parts
        if base.kind == "name" and base.value in self._objects:
            return False
        for index, step in enumerate(steps):
            if step.kind == "slice":
                return False
            if step.kind == "call" and (
                not index or steps[index - 1].kind != "attribute" or steps[index - 1].name not in METHOD_NAMES
            ):
                return False
        return True

    def _safe_chain(self, expression: Expression) -> None:
        base, *steps = expression.parts
        self._safe(base)
        is_open = False
        for index, step in enumerate(steps):
            following = steps[index + 1] if index + 1 < len(steps) else None
            if step.kind == "call":
                for argument in step.arguments:
                    self.add(argument)
                continue
            if following is not None and following.kind == "call":
                comma = "," if following.arguments else ""
                closing = ")" if is_open else ""
                self._replace(
                    step.start, following.opens, f'{closing}{_MARK}|_safe_method("{step.name}"{comma}'
                )
                is_open = False
                continue
            opening = "" if is_open else "|_path("
            is_open = True
            if step.kind == "attribute":
                self._replace(step.start, step.end, f'{opening}"{step.name}",')
            else:
                self._replace(step.start, step.opens, f"{opening}(")
                self.add(step.arguments[0])
                self._replace(step.end - 1, step.end, f"){_mark(step.arguments[0])},")
        if is_open:
            self._insert(expression.end, ")")

    # ------------------------------------------------------------ methods

    def _chain(self, expression: Expression) -> None:
        base, *steps = expression.parts
        self.add(base)
        is_object = base.kind == "name" and base.value in self._objects
        for index, step in enumerate(steps):
            following = steps[index + 1] if index + 1 < len(steps) else None
            if (
                step.kind == "attribute"
                and following is not None
                and following.kind == "call"
                and step.name in METHOD_NAMES
                and not (is_object and index == 0)
            ):
                comma = "," if following.arguments else ""
                self._insert(expression.start, "(")
                self._replace(step.start, following.opens, f'{_MARK}|_method("{step.name}"{comma}')
                for argument in following.arguments:
                    self.add(argument)
                self._insert(following.end, ")")
            elif step.kind != "call" or index == 0 or not _is_method(steps[index - 1], is_object, index - 1):
                for argument in step.arguments:
                    self.add(argument)


def _is_method(step: Step, is_object: bool, index: int) -> bool:
    return step.kind == "attribute" and step.name in METHOD_NAMES and not (is_object and index == 0)


def _is_calculated(expression: Expression) -> bool:
    while expression.kind == "group":
        expression = expression.parts[0]
    return expression.kind in {"arithmetic", "negate"}


def _mark(expression: Expression) -> str:
    return "" if expression.kind in _ALWAYS_DEFINED else _MARK


def edited(text: str, edits: list[Edit]) -> str:
    """The text with its edits. Of those at one offset, insertions come first, in their order."""
    pieces: list[str] = []
    index = 0
    for offset, replacement, length in sorted(edits, key=lambda edit: (edit[0], edit[2] > 0)):
        pieces += (text[index:offset], replacement)
        if length:
            pieces.append("\n" * text.count("\n", offset, offset + length))
        index = offset + length
    return "".join((*pieces, text[index:]))
