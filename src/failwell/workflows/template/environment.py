"""Jinja2's immutable sandbox, set up for workflows: lookups as in conductor, strict undefined values, counted work."""

import re
from collections.abc import Callable
from functools import lru_cache
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, cast

from jinja2 import FunctionLoader, StrictUndefined, Template, Undefined, nodes, pass_context
from jinja2.exceptions import TemplateNotFound
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import missing
from markupsafe import EscapeFormatter, Markup

from failwell.workflows.template import limits
from failwell.workflows.template.filters import (
    ALL_FILTERS,
    ALL_TESTS,
    FAILURES,
    FUNCTION_NAMES,
    FUNCTIONS,
    dumps,
)
from failwell.workflows.template.mistakes import MistakeType, TemplateMistake, failed_call, type_name
from failwell.workflows.template.names import MISSING, NEVER_RAN, Names
from failwell.workflows.template.rewriting import CHANGES, METHODS, Rewriter, dotted_names

ReadPart = Callable[[str, str], tuple[str, str] | None]
"""Returns the text of a part and its folder, by its name and the folder of the including template."""
_CACHE_SIZE = 512
_NAMES = "\0names"
"""Where a context has what looks up names. No template can write it."""
_HIDDEN = frozenset({"to_bytes", "from_bytes", "encode", "mro"})
"""Methods whose results are no JSON values, and whose size nothing limits."""
_WIDE = re.compile(r"\d{5}")


class Missing(StrictUndefined):
    """An undefined value. What is read from it is undefined too, so a `default` covers its whole path."""

    __slots__ = ()


class NeverRan(Missing):
    """A step that has not run. As a condition it is false."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


class LookupDefect(BaseException):
    """The lookup of a name failed, which is no mistake of a template. What catches those lets it pass."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class NamesContext(Context):
    """Looks up names when they are used: those of the template, then the data, then functions."""

    def resolve_or_missing(self, key: str) -> Any:
        """The value of a name."""
        for own in (self.vars, self.parent):
            if key in own:
                return own[key]
        names: Names | None = self.parent.get(_NAMES)
        try:
            value = MISSING if names is None else names.get(key)
        except Exception as error:  # noqa: BLE001  (whatever failed is raised again as it was, outside the template)
            raise LookupDefect(error) from None
        if value is NEVER_RAN:
            return NeverRan(name=key)
        return self.environment.globals.get(key, missing) if value is MISSING else value


class _Template(Template):
    """A template that keeps nothing from one rendering to the next."""

    def _get_default_module(self, ctx: Context | None = None) -> Any:  # noqa: ARG002
        return self.make_module()


class _Formatter(SandboxedFormatter):
    """`str.format` with limits on the width of a field and the size of its value."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        limits.create(limits.weigh(value))
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        if _WIDE.search(format_spec):
            raise TemplateMistake(MistakeType.MEMORY)
        return limits.counted(super().format_field(value, format_spec))


class _EscapeFormatter(_Formatter, EscapeFormatter):
    """The same for markup, which escapes values."""


@pass_context
def _finalized(_: Context, value: Any) -> Any:
    """What a tag writes, after it was counted. The context is asked for so that constants are not computed when compiled."""
    limits.step()
    if isinstance(value, str):
        limits.create(limits.size_of(value))
    elif not isinstance(value, int | float | Undefined | None):
        limits.create(limits.weigh(value))
    return value


class Environment(ImmutableSandboxedEnvironment):
    """Compiles and renders templates. `read_part` allows includes; their names contain the folder."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    intercepted_unops = frozenset({"+", "-"})
    context_class = NamesContext
    template_class = _Template
    concat = staticmethod(limits.joined)

    def __init__(self, read_part: ReadPart | None = None) -> None:
        super().__init__(
            undefined=Missing, finalize=_finalized, keep_trailing_newline=True, optimized=False, auto_reload=False,
            cache_size=_CACHE_SIZE, loader=FunctionLoader(self._load),
        )  # fmt: skip
        self._read_part = read_part
        self.filters = dict(ALL_FILTERS)
        self.tests = dict(ALL_TESTS)
        self.policies["json.dumps_function"] = dumps
        del self.globals["lipsum"]
        self.globals.update(FUNCTIONS)
        self.template = lru_cache(maxsize=_CACHE_SIZE)(self._template)
        self.condition = lru_cache(maxsize=_CACHE_SIZE)(self._condition)

    # ------------------------------------------------------------ compiling

    def _template(self, text: str, folder: str | None) -> Template:
        code = self.compile(text, name=f"{folder or ''}\0")
        return self.template_class.from_code(self, code, self.make_globals(None))

    def _condition(self, text: str) -> tuple[Template, frozenset[str]]:
        expression = self.expression(text)
        dotted = dotted_names(expression)
        target = nodes.Name("_value", "store", lineno=1)
        tree = nodes.Template([nodes.Assign(target, expression, lineno=1)], lineno=1)
        code = self.compile(tree, name="\0")
        return self.template_class.from_code(self, code, self.make_globals(None)), dotted

    def expression(self, text: str) -> nodes.Expr:
        """The tree of a condition without braces."""
        parser = Parser(self, text, state="variable")
        expression = parser.parse_expression()
        if not parser.stream.eos:
            parser.fail(
                f"unexpected {parser.stream.current.value!r}"
                if parser.stream.current.type == "name"
                else "unexpected text"
            )
        expression.set_environment(self)
        return expression

    def check(self, text: str) -> None:
        """Find the mistakes of a template without running it."""
        tree = self._parse(text, None, None)
        if "{%" in text:
            self.compile(tree, raw=True)
        else:
            Rewriter(self).visit(tree)

    def _generate(self, source: nodes.Template, *arguments: Any, **keywords: Any) -> str:
        return super()._generate(Rewriter(self).visit(source), *arguments, **keywords)

    # ------------------------------------------------------------ parts

    def join_path(self, template: str, parent: str) -> str:
        """The name of a part: the folder of the including template, and the included name."""
        if "\0" in parent:
            return f"{parent.partition(chr(0))[0]}\1{template}"
        folder, _, part = parent.rpartition("\1")
        head, _, _ = part.rpartition("/")
        return f"{folder}/{head}\1{template}" if head else f"{folder}\1{template}"

    def _load(self, name: str) -> str | None:
        folder, _, part = name.rpartition("\1")
        if self._read_part is None or not folder:
            return None
        try:
            found = self._read_part(part, folder)
        except (OSError, ValueError):
            raise TemplateNotFound(part) from None
        return None if found is None else found[0]

    # ------------------------------------------------------------ running

    def render(self, template: Template, names: Names) -> str:
        """The text of a template."""
        limits.start()
        pieces: list[str] = []
        size = 0
        for piece in template.root_render_func(template.new_context({_NAMES: names}, shared=True)):
            pieces.append(piece)
            size += len(piece)
            if size > limits.LARGEST:
                raise TemplateMistake(MistakeType.MEMORY)
        return "".join(pieces)

    def truth(self, template: Template, names: Names) -> bool:
        """Whether a condition holds."""
        limits.start()
        context = template.new_context({_NAMES: names}, shared=True)
        for _ in template.root_render_func(context):
            pass
        value = context.vars["_value"]
        if callable(value):
            limits.weigh(value)
        return bool(value)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """`obj.attribute`: a key of a mapping wins over a method."""
        if isinstance(obj, dict) and attribute in obj:
            return cast("dict[str, Any]", obj)[attribute]
        return obj if isinstance(obj, Missing) else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """`obj[argument]`."""
        if isinstance(obj, Missing):
            return obj
        if isinstance(argument, tuple | list | dict):
            return self.undefined(obj=obj)
        return super().getitem(obj, argument)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may read an attribute."""
        return (
            attr not in _HIDDEN and not isinstance(obj, bytes) and super().is_safe_attribute(obj, attr, value)
        )

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Refuse an attribute that the sandbox hides."""
        if attribute in CHANGES:
            detail = f"`{attribute}` would change a {type_name(obj)}, and data are read-only here; write {CHANGES[attribute]}"
            raise TemplateMistake(MistakeType.UNKNOWN_FUNCTION, detail=detail)
        raise TemplateMistake(MistakeType.UNDEFINED, detail="a part of Python that templates do not reach")

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format` with limits."""
        if not isinstance(value, MethodType | BuiltinMethodType) or value.__name__ not in {
            "format",
            "format_map",
        }:
            return None
        text: object = value.__self__
        if not isinstance(text, str):
            return None
        formatter = (
            _EscapeFormatter(self, escape=text.escape) if isinstance(text, Markup) else _Formatter(self)
        )
        is_map = value.__name__ == "format_map"

        def formatted(*arguments: Any, **keywords: Any) -> str:
            result = (
                formatter.vformat(text, (), arguments[0])
                if is_map
                else formatter.vformat(text, arguments, keywords)
            )
            return type(text)(result)

        return formatted

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operator between two values."""
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            return super().call_binop(context, operator, left, right)
        return limits.calculated(operator, left, right)

    def call_unop(self, context: Context, operator: str, arg: Any) -> Any:
        """A sign before a value."""
        try:
            return super().call_unop(context, operator, arg)
        except TypeError:
            problem = TemplateMistake(MistakeType.OPERATION, detail=f"`{operator}` before {type_name(arg)}")
        raise problem

    def call(self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: PYI063 - as in Jinja2
        """Call a function, a method or a macro."""
        limits.step()
        if isinstance(__obj, NeverRan):
            # A `default` covers the whole path, calls too.
            return __obj
        if isinstance(__obj, Undefined):
            raise _unknown(__obj)
        if isinstance(__obj, Macro | type) or not isinstance(
            __obj, FunctionType | MethodType | BuiltinMethodType
        ):
            if isinstance(__obj, LoopContext | type):
                args = (*limits.check_method("", __obj, list(args), {}),)
            return limits.counted(super().call(__context, __obj, *args, **kwargs))
        owner: Any = getattr(__obj, "__self__", None)
        name = FUNCTION_NAMES.get(cast("Any", __obj), __obj.__name__)
        keywords = {key: value for key, value in kwargs.items() if key not in {"_loop_vars", "_block_vars"}}
        arguments = limits.check_method(name, owner, list(args), keywords)
        problem: TemplateMistake
        try:
            return limits.counted(super().call(__context, __obj, *arguments, **kwargs))
        except FAILURES as error:
            problem = failed_call(name, owner if owner is not None or not args else args[0], error)
        if owner is not None:
            problem.type = MistakeType.ARGUMENTS
        raise problem


def _unknown(value: Undefined) -> TemplateMistake:
    """The mistake for a call of something that does not exist."""
    owner, name = cast("Any", value)._undefined_obj, cast("Any", value)._undefined_name  # noqa: SLF001
    if owner is missing or name not in METHODS:
        return TemplateMistake(MistakeType.UNDEFINED)
    return TemplateMistake(MistakeType.UNKNOWN_FUNCTION, detail=f"{type_name(owner)} has no method `{name}`")
