"""What templates give, and what they cannot reach."""

import copy
from typing import Any

import pytest

from failwell.errors.fault import Fault
from failwell.files.item_tree import Place
from failwell.workflows.plan import Template
from failwell.workflows.template.names import MISSING
from failwell.workflows.template.render import TemplateFailed, render, render_value, syntax_mistake
from tests.workflows.template.rendering import NamesFrom


def a_template(text: str) -> Template:
    return Template(text=text, place=Place(file="flow.yaml", line=12, column=9))


def some_names(**more: Any) -> NamesFrom:
    finder = {"output": {"files": ["b", "a"], "items": "the key", "count": 3, "none": None, "ratio": 1e-7}}
    return NamesFrom({"finder": finder, "workflow": {"input": {"x": "y"}}, **more})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no braces", "no braces"),
        ("{{ workflow.input.x }}\n", "y\n"),
        ("{{ finder.output.files }}", "['b', 'a']"),
        ("{{ finder.output.items }}", "the key"),
        ("{{ finder.output.none }} {{ true }} {{ false }}", "None True False"),
        ("{{ finder.output.ratio }} {{ 1e20 }}", "1e-07 1e+20"),
        ("{{ 7 / 2 }} {{ 7 // 2 }} {{ 4 / 2 }} {{ 2 ** 3 }}", "3.5 3 2.0 8"),
        ("{{ 1 ~ 'a' ~ none }}", "1aNone"),
        ("{{ 'b' in finder.output.files }} {{ 3 not in [1, 2] }}", "True True"),
        ("{{ finder.output.files[1:] }} {{ finder.output.files[-1] }}", "['a'] a"),
        ("{{ finder.output.files | sort | join(',') }}", "a,b"),
        ("{% for f in finder.output.files %}{{ loop.index }}{{ f }}{% endfor %}", "1b2a"),
        (
            "{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
            "3",
        ),
        ("{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }}", "1-2"),
        ("{{ '<b>' }}", "<b>"),
        ("{{ 'a b c' | wordcount }} {{ '3.7' | int }} {{ 'x' | int(5) }} {{ 'x' | float }}", "3 3 5 0.0"),
        ("{{ finder.output.files | length }} {{ 2.567 | round(1) }}", "2 2.6"),
        ("{{ finder.output.get('count') }} {{ finder.output.get('absent', 'z') }}", "3 z"),
    ],
)
def test_a_template_gives_what_jinja_gives(text: str, expected: str) -> None:
    assert render(a_template(text), some_names()) == expected


def test_json_is_indented_by_two_and_tojson_is_sorted_and_safe_in_html() -> None:
    names = some_names(d={"b": "<é", "a": 1})

    pretty, compact = (
        render(a_template("{{ d | json }}"), names),
        render(a_template("{{ d | tojson }}"), names),
    )

    assert pretty == '{\n  "b": "<é",\n  "a": 1\n}'
    assert compact == '{"a": 1, "b": "\\u003c\\u00e9"}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ finder.output.absent | default('z') }}", "z"),
        ("{{ finder.output.none | default('z') }}", "z"),
        ("{{ '' | default('z') }}", ""),
        ("{{ '' | default('z', true) }}", "z"),
        ("{{ absent | d('z') }}", "z"),
        ("{{ absent is defined }} {{ finder is defined }}", "False True"),
    ],
)
def test_default_replaces_what_is_missing_and_what_is_null(text: str, expected: str) -> None:
    assert render(a_template(text), some_names()) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{{ absent }}",
        "{{ finder.absent }}",
        "{{ absent.x }}",
        "{% if absent %}{% endif %}",
        "{{ absent | json }}",
    ],
)
def test_what_is_undefined_is_a_mistake_also_for_a_filter(text: str) -> None:
    with pytest.raises(TemplateFailed) as caught:
        render(a_template(text), some_names())

    assert caught.value.sort.startswith("undefined value: `")
    assert "absent`" in caught.value.sort


MUTATIONS = [
    "{{ finder.output.clear() }}",
    "{{ finder.output.pop('count') }}",
    "{{ finder.output.update({'z': 1}) }}",
    "{{ finder.output.setdefault('z', 1) }}",
    "{{ finder.output.files.append('c') }}",
    "{{ finder.output.files.sort() }}",
    "{{ finder.output['cle' ~ 'ar']() }}",
    "{% set m = finder.output.clear %}{{ m() }}",
    "{{ (finder.output | attr('clear'))() }}",
    "{% set finder.output = 1 %}",
    "{% for k, v in finder.output.items() %}{{ v.clear() }}{% endfor %}",
    "{{ (finder.output.values() | list)[0].append(1) }}",
]


@pytest.mark.parametrize("text", MUTATIONS)
def test_no_template_changes_the_data(text: str) -> None:
    data: dict[str, Any] = {"finder": {"output": {"files": ["b", "a"], "count": 3}}}
    before = copy.deepcopy(data)

    with pytest.raises(Fault):
        render(a_template(text), NamesFrom(data))

    assert data == before


@pytest.mark.parametrize(
    "text",
    [
        "{{ finder.__class__ }}",
        "{{ finder.output['__class__'] }}",
        "{{ finder.output._of }}",
        "{{ finder.output['_of'] }}",
        "{{ finder | attr('_of') }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ finder.output.files.__len__() }}",
        "{{ debug() }}",
        "{{ '{0.__class__}'.format(finder) }}",
        "{{ (1).__class__ }}",
    ],
)
def test_no_attribute_of_a_python_object_is_reached(text: str) -> None:
    with pytest.raises(Fault):
        render(a_template(text), some_names())


def test_only_the_names_that_a_template_uses_are_looked_up() -> None:
    asked: list[str] = []

    class Watched:
        def get(self, name: str, /) -> object:
            asked.append(name)
            return {"output": "v"} if name == "used" else MISSING

    text = render(a_template("{{ used.output }}{% for x in [1] %}{{ x }}{% endfor %}"), Watched())

    assert text == "v1"
    assert set(asked) == {"used"}


def test_a_failure_says_where_and_what_with_names_and_types_and_no_text_or_data() -> None:
    names = some_names(name={"key": "CANARY"})

    with pytest.raises(TemplateFailed) as caught:
        render(a_template("one\n{{ name.key + 1 if name.key != 'LITERAL' else 'LITERAL' }}"), names)

    said = f"{caught.value} {caught.value!r}"
    assert "flow.yaml:12:9" in said
    assert "`+` between text and number, in `name.key + 1 if name.key != '…' else '…'`" in said
    assert not any(word in said for word in ("CANARY", "LITERAL"))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_every_template_of_a_value_is_rendered_and_everything_else_is_kept() -> None:
    value = {
        "a": a_template("{{ finder.output.count }}"),
        "b": [a_template("x"), 1, None, True],
        "c": {"d": 1.5},
    }

    rendered = render_value(value, some_names())

    assert rendered == {"a": "3", "b": ["x", 1, None, True], "c": {"d": 1.5}}


@pytest.mark.parametrize(
    ("text", "line"), [("{{ 1 + }}", 1), ("a\n{{ x | nofilter }}", 2), ("{% if x %}", 1), ("a\nb\n{{", 3)]
)
def test_a_syntax_error_is_found_before_the_run_with_its_line(text: str, line: int) -> None:
    found = syntax_mistake(a_template(text))

    assert found is not None
    assert found.line == line


def test_a_template_that_can_be_read_has_no_syntax_mistake() -> None:
    assert syntax_mistake(a_template("{% if x %}{{ x.y | default('') }}{% endif %}")) is None
