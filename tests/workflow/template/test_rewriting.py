"""Expressions are parsed as Jinja2 parses them, and rewritten where the engine means something else."""

import pytest

from failwell.workflows.template.lookup import NEVER_RAN
from failwell.workflows.template.render import SandboxLimit, TemplateFailed
from failwell.workflows.template.syntax.expressions import MAX_NESTING, parse_expression
from failwell.workflows.template.syntax.source_guard import guarded, guarded_expression
from failwell.workflows.template.syntax.tokenizer import expression_tokens
from failwell.workflows.template.syntax.tree import Expression
from failwell.workflows.template.template_errors import MistakeType, TemplateMistake
from tests.specimens import each
from tests.workflow.template.rendering import rendered, true

FILTERS = frozenset({"json", "sort"})


def shape(expression: Expression) -> str:
    """The tree as text: kinds with their parts."""
    inner = " ".join(shape(part) for part in expression.inner())
    word = expression.value if expression.kind in {"name", "const", "test"} else ""
    return f"{expression.kind}{':' if word != '' else ''}{word}{f'({inner})' if inner else ''}"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a < b and c", "and(compare(name:a name:b) name:c)"),
        ("not a in b", "not(compare(name:a name:b))"),
        ("a not in b or c", "or(compare(name:a name:b) name:c)"),
        ("a + b * c ~ d", "arithmetic(name:a arithmetic(arithmetic(name:b name:c) name:d))"),
        ("-a ** 2", "arithmetic(negate(name:a) const:2)"),
        ("-a|abs", "filters(negate(name:a))"),
        ("a if b else c if d else e", "if(name:a name:b if(name:c name:d name:e))"),
        ("a is divisibleby 3 and b", "and(test:divisibleby(name:a const:3) name:b)"),
        ("a.b[c].d(e, f=g)|h(i)", "filters(chain(name:a name:c name:e name:g) name:i)"),
        ("[a, {'k': b}, (c,), ()]", "list(name:a dict(const:k name:b) tuple(name:c) tuple)"),
        ("1 < 2 < 3 == x", "compare(const:1 const:2 const:3 name:x)"),
        ("1, 2", "tuple(const:1 const:2)"),
        ("x[1:2]", "chain(name:x const:1 const:2)"),
    ],
)
def test_an_expression_is_parsed_as_jinja2_parses_it(text: str, tree: str) -> None:
    assert shape(parse_expression(expression_tokens(text)[:-1])) == tree


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "a +",
        "a.",
        "a..b",
        "f(a",
        "[a",
        "a |",
        "a is",
        "and",
        "x[]",
        "a if",
        "{1}",
        "+ +1",
        "a ! b",
    ],
)
def test_what_is_no_expression_is_a_syntax_mistake(text: str) -> None:
    with pytest.raises(TemplateMistake) as caught:
        guarded_expression(text, FILTERS)

    assert caught.value.type is MistakeType.SYNTAX


@pytest.mark.parametrize(
    "text", ["(" * 100 + "1" + ")" * 100, "not " * 100 + "1", "-" * 100 + "1", "[" * 99 + "]" * 99]
)
def test_a_nesting_that_is_too_deep_is_refused(text: str) -> None:
    assert len(text) > MAX_NESTING
    with pytest.raises(TemplateMistake) as caught:
        guarded_expression(text, FILTERS)

    assert caught.value.type is MistakeType.DEPTH


def test_a_template_keeps_its_lines_and_what_needs_no_rewriting() -> None:
    text = "a {{ x.y == 'z' }}\n{% for i in l %}\n{{ i\n < \n 3 }}{% endfor %}\n{{ x.items }}"

    source = guarded(text, FILTERS).text

    assert source.count("\n") == text.count("\n")
    assert source.startswith("a {{ x.y == 'z' }}\n{% for i in l %}")
    assert source.endswith("{{ x.items }}")
    assert "_compare" in source


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ x + 1 }}", 2**130 + 1), ("{{ -x }}", -(2**130)), ("{{ x // 3 * 3 + x % 3 }}", 2**130), ("{{ [x, x] | sum }}", 2**131),
        ("{{ d.n - x }}", 1), ("{{ x | string | int }}", 2**130), ("{{ [x, 1, d.n] | sort | last }}", 2**130 + 1), ("{{ 2 ** 130 }}", 2**130),
        ("{{ [1, x] | max }}", 2**130), ("{{ x | abs }}", 2**130), ("{{ d.l | first }}", 2**70), ("{{ x | default(1) }}", 2**130),
        ("{{ 9223372036854775807 + 1 }}", 2**63), ("{{ 18446744073709551616 }}", 2**64), ("{{ x if x > 5 else 0 }}", 2**130),
    ],
)  # fmt: skip
def test_whole_numbers_are_exact_at_any_size(text: str, value: int) -> None:
    assert rendered(text, x=2**130, d={"n": 2**130 + 1, "l": [2**70]}) == str(value)


def test_large_numbers_are_compared_exactly_in_conditions() -> None:
    x = 2**130
    for text in (
        "x > 5",
        "x == y",
        "x + 1 > y",
        "x in [y]",
        "x != 5",
        "x",
        "not x < y",
        f"x == {x}",
        f"x < {x + 1}",
        "x is number",
    ):
        assert true(text, x=x, y=x), text
    for text in ("x < 5", "x == y + 1", "x > y", f"x == {x + 1}", "x in [1, 2]"):
        assert not true(text, x=x, y=x), text


def test_powers_and_repetitions_are_bounded() -> None:
    squares = (
        "{% set n = namespace(x=x) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}{{ n.x }}"
    )
    for text in ("{{ x ** 99999 }}", "{{ 10 ** 99999 }}", "{{ 'ab' * x }}", squares):
        with pytest.raises(SandboxLimit):
            rendered(text, x=2**130)


@each(
    ("text", "value"),
    [
        ("{{ b.output.x.y | default('d') }}", "d"), ("{{ b.output[0].y | default('d') }}", "d"), ("{{ b | default('d') }}", "d"),
        ("{{ d.l[9] | default('d') }}", "d"), ("{{ d.l[-1] | default('d') }}", "2"), ("{{ d['n'] | default('d') }}", "d"),
        ("{{ d.s.x | default('d') }}", "d"), ("{{ b.output.get('x') | default('d') }}", "d"), ("{{ (b.output).x | default('d') }}", "d"),
        ("{{ b.x | default(c.y) | default('e') }}", "e"), ("{{ b.x | d(d.s) }}", "t"), ("{{ b.x is defined }}{{ d.n is defined }}", "FalseTrue"),
        ("{{ b.x is not defined }}{{ b.x is undefined }}", "TrueTrue"), ("{{ 'y' if b else 'n' }}{{ not b }}", "nTrue"),
        ("{% if b %}y{% else %}n{% endif %}", "n"), ("{{ b or 'n' }}", "n"), ("{{ (b and b.x) or 'n' }}", "n"), ("{{ [] | max | default(0) }}", "0"),
        ("{{ w or 1 }}", "3.0"), ("{{ zero | default(5, true) }}", "5"),
    ],
)  # fmt: skip
def test_a_default_covers_every_step_of_its_path(text: str, value: str) -> None:
    names = {"b": NEVER_RAN, "d": {"l": [1, 2], "n": None, "s": "t"}, "w": 3.0, "zero": 0}

    assert rendered(text, **names) == value


@pytest.mark.parametrize(
    "text",
    [
        "{{ b }}", "{{ b.output }}", "{{ b ~ 'x' }}", "{{ b | upper }}", "{{ b.x | default(c.y) }}", "{{ b.x | default(c.y) | upper }}",
        "{{ b.x == 1 }}", "{{ b | tojson }}", "{{ [] | max }}", "{{ 'y' if c else 'n' }}", "{{ c and 1 }}", "{{ b.x | trim | default('d') }}",
        "{% for x in b %}{% endfor %}", "{{ b | length }}", "{% if b.x %}{% endif %}", "{{ 'a' in b.output }}", "{{ b.x > 3 }}",
    ],
)  # fmt: skip
def test_whatever_else_uses_a_missing_value_fails(text: str) -> None:
    with pytest.raises(TemplateFailed):
        rendered(text, b=NEVER_RAN)
