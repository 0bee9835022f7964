"""The glance at simple templates sees what the parser sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell.workflows.template.names import simple_references
from failwell.workflows.template.references import references
from failwell.workflows.template.render import syntax_mistake
from tests.workflows.plans import a_text


@pytest.mark.parametrize(
    "text",
    [
        "{{ build.output.version }}",
        "{{build.output}}-{{- workflow.input.name -}} and text",
        "{{ build.output.x | default('none yet') }}",
        "{{ build.output.x | default() }}{{ a.b|json }}",
        "a # b $ c % d",
    ],
)
def test_a_simple_template_refers_to_what_the_parser_finds(text: str) -> None:
    assert syntax_mistake(a_text(text)) is None
    assert simple_references(text) == references(a_text(text))


@pytest.mark.parametrize(
    "text",
    [
        "{% if a %}x{% endif %}",
        "{# no #}",
        "{{ a",
        "a }}",
        "{{ a + b }}",
        "{{ a[0] }}",
        "{{ a() }}",
        "{{ a.1 }}",
        "{{ true }}",
        "{{ not a }}",
        "{{ a | upper }}",
        "{{ a | default(b) }}",
        "{{ loop.index }}",
        "{ a }",
    ],
)
def test_anything_else_is_left_to_the_parser(text: str) -> None:
    assert simple_references(text) is None


@given(st.text(alphabet="{}ab.|-% #'() \n", max_size=24))
def test_what_is_taken_at_a_glance_is_never_a_mistake(text: str) -> None:
    found = simple_references(text)

    if found is not None:
        assert syntax_mistake(a_text(text)) is None
        assert references(a_text(text)) == found
