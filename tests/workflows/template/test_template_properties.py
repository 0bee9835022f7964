"""Whatever a template says and whatever the data are."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from failwell.errors.fault import Fault
from failwell.workflows.plan import Template
from failwell.workflows.template.references import references
from failwell.workflows.template.render import holds, render, syntax_mistake
from tests.workflows.template.rendering import NamesFrom

CANARY = "kanarienvogel"
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.just(CANARY),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "items", CANARY]), inner)
    ),
    max_leaves=12,
)
PIECES = st.sampled_from(
    [
        "{{ ", " }}", "{% ", " %}", "{# ", " #}", "d", ".a", ".b", ".items", "['a']", "[0]", "[1:]", "()", "(d)", " | ",
        "json", "tojson", "default('x')", "length", "sort", "join(',')", "map(attribute='a')", "list", "int", "first",
        "replace('a', d)", "format(d)", "batch(2)", " + ", " ~ ", " * ", " == ", " < ", " in ", " and ", " not ",
        " is defined", " is mapping", "1", "'t'", "none", "for x in d", "endfor", "if d", "else", "endif", "set x = ",
        "macro m(x)", "endmacro", "m(d)", "range(3)", "namespace(x=1)", ".clear()", ".pop('a')", ".append(1)",
        ".__class__", "|attr('clear')", "x", "loop.index", "-", "[", "]", "{", "}", "(", ")", "\n", "text ", "\\", "'",
    ]
)  # fmt: skip
SOURCES = st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=30)
WRAPPED = st.lists(PIECES, min_size=1, max_size=7).map(lambda pieces: "{{ d" + "".join(pieces) + " }}")


@given(source=SOURCES | WRAPPED, data=JSON)
def test_a_template_gives_text_or_a_fault_that_quotes_nothing_and_changes_nothing(
    source: str, data: Any
) -> None:
    names = {"d": data, CANARY: data}
    before = copy.deepcopy(names)

    try:
        made: object = render(Template(text=source), NamesFrom(names))
    except Fault as fault:
        made = f"{fault} {fault!r} {fault.__context__} {fault.__cause__}"
        assert CANARY not in made

    assert isinstance(made, str)
    assert names == before


@given(source=SOURCES, data=JSON)
def test_a_condition_is_true_or_false_or_a_fault_that_quotes_nothing(source: str, data: Any) -> None:
    names = {"d": data, "output": data}
    before = copy.deepcopy(names)
    said = ""

    try:
        held: object = holds(Template(text=source), NamesFrom(names))
    except Fault as fault:
        held = False
        said = f"{fault} {fault!r} {fault.__context__}"

    assert CANARY not in said
    assert held is True or held is False
    assert names == before


@given(source=SOURCES)
def test_looking_at_a_template_never_fails(source: str) -> None:
    template = Template(text=source)

    found = [references(template), references(template, condition=True)]
    mistakes = [syntax_mistake(template), syntax_mistake(template, condition=True)]

    assert all(one.path for some in found for one in some)
    assert all(one is None or one.line >= 1 for one in mistakes)
