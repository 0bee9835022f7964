"""What templates give, as authors who know Jinja2 expect it."""

import subprocess
import sys
from typing import Any

import pytest

from failwell.workflows.template.render import TemplateFailed
from tests.specimens import each
from tests.workflows.template.rendering import rendered

DATA: dict[str, Any] = {
    "n": {
        "output": {
            "v": 5,
            "name": "Ada",
            "list": [3, 1, 2],
            "none": None,
            "items": "mine",
            "deep": {"a": [1]},
        }
    },
    "rows": [{"k": "b", "n": 2}, {"k": "a", "n": 1}],
    "half": 0.5,
}


@each(
    ("text", "expected"),
    [
        ("{{ n.output.v + 1 }}", "6"),
        ("{{ n.output.v / 2 }} {{ n.output.v // 2 }} {{ 4 / 2 }} {{ 2 ** 3 }} {{ 7 % 4 }}", "2.5 2 2.0 8 3"),
        ("{{ true }} {{ false }} {{ none }}", "True False None"),
        ("{{ n.output.list }} {{ n.output.deep }}", "[3, 1, 2] {'a': [1]}"),
        ("{{ 1e300 }} {{ 1e-7 }} {{ half }} {{ 1.0 }}", "1e+300 1e-07 0.5 1.0"),
        ("{{ 'a' ~ 1 ~ none ~ true }}", "a1NoneTrue"),
        ("{{ 3 in n.output.list }} {{ 'd' in n.output.name }} {{ 'v' in n.output }}", "True True True"),
        ("{{ n.output.list[1:] }} {{ n.output.name[:2] }} {{ n.output.name[::-1] }}", "[1, 2] Ad adA"),
        ("{{ n.output.list[1:] }}", "[1, 2]"),
        ("{% filter replace(n.output.name, half) %}Ada{% endfilter %}", "0.5"),
        ("{{ n['output']['v'] }} {{ n.output.list[-1] }}", "5 2"),
        ("{{ n.output.items }}", "mine"),
        ("{{ n.output.name.upper() }} {{ ' x '.strip() }} {{ 'a,b'.split(',') }}", "ADA x ['a', 'b']"),
        ("{{ n.output.name.startswith('A') }} {{ n.output.name.replace('A', 'a') }}", "True ada"),
        ("{{ '-'.join(['a', 'b']).replace('-', '+').upper() }}", "A+B"),
        ("{{ not n.output.name.replace('Ada', '') }}", "True"),
        ("{{ '{:.2f} {} {x}'.format(1.234, 'b', x=3) }}", "1.23 b 3"),
        ("{{ '%.1f %s'|format(2.25, 'z') }}", "2.2 z"),
        ("{{ n.output.gone|default('d') }} {{ gone|default }} {{ n.output.none|default('d') }}", "d  d"),
        ("{{ ''|default('d') }}|{{ ''|default('d', true) }}", "|d"),
        ("{{ n.output.deep|tojson }}", '{"a": [1]}'),
        ("{{ {'b': '<é>', 'a': 1}|tojson }}", '{"a": 1, "b": "\\u003c\\u00e9\\u003e"}'),
        ("{{ n.output.deep|json }}", '{\n  "a": [\n    1\n  ]\n}'),
        ("{{ n.output.none|json }} {{ n.output.none|tojson }}", "null null"),
        ("{{ n.output.list|sort|join(', ') }} {{ n.output.list|sum }}", "1, 2, 3 6"),
        ("{{ rows|map(attribute='k')|list }}", "['b', 'a']"),
        ("{{ rows|selectattr('n', 'gt', 1)|map(attribute='k')|join }}", "b"),
        ("{{ rows|sort(attribute='k')|map(attribute='n')|list }}", "[1, 2]"),
        ("{% for key, value in n.output.deep.items() %}{{ key }}={{ value }}{% endfor %}", "a=[1]"),
        ("{% for row in rows %}{{ loop.index }}{{ row.k }}{% endfor %}", "1b2a"),
        ("{% set x = n.output.v * 2 %}{{ x }}", "10"),
        ("{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "12"),
        ("{{ n is mapping }} {{ rows is sequence }} {{ gone is defined }} {{ n.output.none is none }}", "True True False True"),
        ("{{ '<b>' }}", "<b>"),
        ("{# nothing #}a{{ 1 }}\n", "a1\n"),
        ("{{ 'a b c'|wordcount }} {{ 'abc'|center(7) }}|{{ 'A'|lower }}", "3   abc  |a"),
        ("{{ int('5') + 1 }} {{ len(rows) }} {{ str(5) ~ '' }} {{ float('1.5') }}", "6 2 5 1.5"),
        ("{{ 'yes' if n.output.v > 3 else 'no' }}", "yes"),
    ],
)  # fmt: skip
def test_a_template_gives_what_jinja2_would(text: str, expected: str) -> None:
    assert rendered(text, **DATA) == expected


def test_a_text_without_braces_is_given_as_it_is() -> None:
    assert rendered("100 % { plain }\r\n") == "100 % { plain }\r\n"


def test_the_same_template_gives_the_same_each_time_it_is_met() -> None:
    given = [rendered("{{ n.a }}-{{ n.b }}", n={"a": number, "b": 1}) for number in range(4)]

    assert given == ["0-1", "1-1", "2-1", "3-1"]


def test_a_text_with_dotted_names_alone_does_not_load_jinja2() -> None:
    program = (
        "import sys\n"
        "from tests.workflows.template.rendering import rendered\n"
        "print(rendered('{{ a.b }}-{{c}}\\r\\n', a={'b': [1, None]}, c='x') == '[1, None]-x\\n', 'jinja2' in sys.modules)\n"
    )

    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert told == "True False\n"


def test_a_number_that_python_does_not_print_is_a_fault() -> None:
    with pytest.raises(TemplateFailed):
        rendered("{{ n }}", n=10**5000)


def test_only_names_that_a_template_uses_are_asked_for() -> None:
    from failwell.workflows.plan import Template
    from failwell.workflows.template.names import MISSING
    from failwell.workflows.template.render import render

    class LabRequest:
        def __init__(self) -> None:
            self.names: set[str] = set()

        def get(self, name: str, /) -> object:
            self.names.add(name)
            return {"output": 1} if name == "a" else MISSING

    names = LabRequest()

    assert (
        render(Template(text="{{ a.output }} {{ (b.output is defined) if b is defined else 0 }}"), names)
        == "1 0"
    )
    assert names.names <= {"a", "b"}
