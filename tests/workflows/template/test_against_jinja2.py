"""Random expressions of the documented language mean what they mean in Jinja2, with conductor's `default` and `json`."""

import json
import random
from typing import Any

import pytest
from jinja2 import Environment, StrictUndefined, Undefined

from failwell.workflows.template.render import TemplateFailed
from tests.workflows.template.rendering import rendered

DATA: dict[str, Any] = {
    "n": 7, "f": 2.5, "w": 3.0, "neg": -4, "s": "Hello World", "t": "a,b,c", "z": "", "e": [], "l": [3, 1, 2], "no": None, "y": True,
    "m": {"b": 1, "a": "x"}, "r": [{"k": "x", "v": 2}, {"k": "y", "v": 1}, {"k": "x", "v": 3}], "words": ["b", "A", "c"],
}  # fmt: skip
NUMBERS = (
    "n", "f", "w", "neg", "1", "2", "0", "2.5", "-3", "m.b", "l[0]", "r[1].v", "l|length", "neg|abs", "f|round", "f|int",
    "'42'|int", "l|sum", "l|max", "l|min", "r|map(attribute='v')|sum", "s.count('l')", "s|length", "s.find('o')", "s|wordcount",
    "l.index(2)", "m|length", "t.split(',')|length", "'a\\nb'.splitlines()|length", "s|list|length",
)  # fmt: skip
TEXTS = (
    "s", "t", "z", "'x'", "m.a", "r[0].k", "s|upper", "s|lower", "s|title", "s|capitalize", "s|trim", "s|replace('o','0')", "s|first",
    "t.split(',')[1]", "s.strip('H')", "s.replace('l','L')", "s|truncate(8)", "s|wordwrap(5)", "s|center(20)", "s[1:4]", "s[::-1]",
    "l|join(',')", "f|string", "y|string", "no|string", "s|indent(2)", "s.zfill(15)", "s.ljust(15)", "s.rjust(15)", "s|last",
    "s.partition(' ')[2]", "s.removeprefix('He')", "s|reverse", "words|join", "'%s!' % s", "'%05d' % n", "'{}-{}'.format(n,s)",
    "s|urlencode", "'<a>'|escape", "'<a>'|forceescape", "1024|filesizeformat", "s.swapcase()", "'<b>x</b>'|striptags", "l|tojson",
    "m|tojson", "s|tojson", "l|json", "s.center(20)", "words|sort|join", "words|sort(case_sensitive=true)|join", "words|max",
    "words|sort(reverse=true)|join(',')", "m|dictsort(by='key')|map('first')|join", "r|groupby('k')|map('first')|join", "words|min",
    "r|map(attribute='k')|unique|join", "words|map('upper')|join", "l|select('gt',1)|join", "l|reject('odd')|join", "m.get('a')",
    "r|selectattr('v','ge',2)|map(attribute='k')|join", "r|rejectattr('k','eq','x')|map(attribute='v')|join", "m.keys()|join",
    "m.get('zz','d')", "l|batch(2)|map('join')|join('/')", "l|slice(2)|map('join')|join('/')", "z|default('d',true)", "l|reverse|join",
    "no|default('q')", "m.q|default('q')", "{'a':'b','n':none}|xmlattr", "'see https://a.example/.'|urlize", "r|sort(attribute='v')|map(attribute='k')|join",
)  # fmt: skip
TESTS = (
    "s is string", "n is number", "l is sequence", "m is mapping", "no is none", "n is odd", "n is even", "n is divisibleby 7", "s is lower",
    "y is true", "l is iterable", "q is defined", "n is integer", "f is float", "w is float", "'Hello' in s", "1 not in l", "'a' in m",
    "s.startswith('H')", "s.endswith(('x','d'))", "n is ge 7", "q is undefined", "n is in l",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "//", "%")
COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")


class _Environment(Environment):
    """A key of a mapping wins over a method, as in conductor."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        return (
            obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)
        )  # pyright: ignore[reportUnknownVariableType]


def _default(value: Any, default: Any = "", boolean: bool = False) -> Any:
    is_missing = isinstance(value, Undefined) or value is None or (boolean and not value)
    return default if is_missing else value


def _json(value: Any, indent: int = 2) -> str:
    return json.dumps(value, indent=indent)


JINJA2 = _Environment(undefined=StrictUndefined, keep_trailing_newline=True)
JINJA2.filters |= {"default": _default, "d": _default, "json": _json}


class Expressions:
    """Writes random expressions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def any(self) -> str:
        pick = self._random.random()
        if pick < 0.3:
            return self.number(2)
        if pick < 0.6:
            return self.text(2)
        return (
            self.condition(2)
            if pick < 0.9
            else f"({self.text(1)} if {self.condition(1)} else {self.number(1)})"
        )

    def number(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.4:
            return self._random.choice(NUMBERS)
        operator = self._random.choice(OPERATORS)
        return f"({self.number(depth - 1)} {operator} {self.number(depth - 1)})"

    def text(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.6:
            return self._random.choice(TEXTS)
        return f"({self.text(depth - 1)} ~ {self.text(depth - 1)})"

    def condition(self, depth: int) -> str:
        pick = self._random.random()
        if depth <= 0 or pick < 0.5:
            sides = [self._random.choice((*NUMBERS, *TEXTS)) for _ in range(2)]
            return f"{sides[0]} {self._random.choice(COMPARISONS)} {sides[1]}"
        if pick < 0.65:
            return self._random.choice(TESTS)
        if pick < 0.85:
            word = self._random.choice(("and", "or"))
            return f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})"
        return f"not ({self.condition(depth - 1)})"


def jinja2(text: str) -> str | None:
    try:
        return JINJA2.from_string(text).render(**DATA)
    except Exception:
        return None


def ours(text: str) -> str | None:
    try:
        return rendered(text, **DATA)
    except TemplateFailed:
        return None


@pytest.mark.slow
def test_random_expressions_render_as_in_jinja2_or_fail_in_both() -> None:
    expressions = Expressions(14)
    texts = {f"{{{{ {expressions.any()} }}}}" for _ in range(1200)}

    differences = {text: (ours(text), jinja2(text)) for text in texts if ours(text) != jinja2(text)}

    assert differences == {}


@pytest.mark.parametrize(
    "text",
    [
        "{% for x in r if x.v > 1 %}{{ loop.index }}{{ x.k }}{{ ',' if not loop.last }}{% else %}none{% endfor %}",
        "{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}{% for x in e %}{% else %}none{% endfor %}",
        "{% set total = namespace(n=0) %}{% for x in l %}{% set total.n = total.n + x %}{% endfor %}{{ total.n }}",
        "{% macro tag(name, open=n > 3) %}<{{ name }}{{ open }}>{% endmacro %}{{ tag('a') }}{{ tag('b', open=n < 3) }}",
        "{% if n < 3 %}a{% elif n < 8 and s > 'A' %}b{% else %}c{% endif %}{{ 'x' if q is defined }}",
        "{% with a = n >= 7, b = n + 1 %}{{ a }}{{ b }}{% endwith %}{% filter upper %}x{{ m.a }}{% endfilter %}",
        "a  {%- if y -%}  b  {%- endif -%}  c {#- gone -#} d\n{% raw %}{{ n < 'x' }}{% endraw %}\n",
        "{% set block %}{{ n }}{% endset %}{{ block }}{% set a, b = 1, 2 %}{{ a < b }}",
        "{% for g in r | groupby('k') %}{{ g.grouper }}:{{ g.list | map(attribute='v') | join('+') }} {% endfor %}",
        "{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ -n ** 2 }} {{ 2 ** 3 ** 2 }} {{ not n == 7 }} {{ n is number and not y }}",
    ],
)
def test_a_template_with_blocks_renders_as_in_jinja2(text: str) -> None:
    assert ours(text) == jinja2(text) is not None
