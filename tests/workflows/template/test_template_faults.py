"""What goes wrong in a template is one of three faults, which name names and types and never data."""

import copy
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwell import describe
from failwell.workflows.template.render import (
    SandboxLimit,
    SandboxTimeout,
    TemplateFailed,
    holds,
    syntax_mistake,
)
from tests.specimens import each
from tests.workflows.template.rendering import NamesFrom, a_template, rendered, true

CANARY = "k4n4ry"
OPERATION = "operation that these values do not allow"


@pytest.mark.acceptance("relavium 67")
@each(
    ("text", "fault", "sort"),
    [
        ("{{ name + }}", TemplateFailed, "syntax error: the end of the tag is not expected"),
        ("{% if name %}", TemplateFailed, "syntax error: `if` is never closed by `endif`"),
        ("{{ gone }}", TemplateFailed, "undefined value: `gone`"),
        ("{{ d.gone.x }}", TemplateFailed, "undefined value: `d.gone`"),
        ("{{ d.gone|json }}", TemplateFailed, "undefined value: `d.gone`"),
        ("{{ s + 1 }}", TemplateFailed, f"{OPERATION}: `+` between text and number, in `s + 1`"),
        ("{{ 1 // 0 }}", TemplateFailed, f"{OPERATION}: division by zero, in `1 // 0`"),
        ("{{ int(s) }}", TemplateFailed, f"{OPERATION}: `int` of text, in `int(s)`"),
        ("{{ n | first }}", TemplateFailed, f"{OPERATION}: `first` of null, in `n | first`"),
        ("{{ 5 | reverse }}", TemplateFailed, f"{OPERATION}: `reverse` of number, in `5 | reverse`"),
        ("{{ true | length }}", TemplateFailed, f"{OPERATION}: `length` of boolean, in `true | length`"),
        ("{{ s|uper }}", TemplateFailed, "unknown filter: `uper`; did you mean `upper`?"),
        ("{{ s is strng }}", TemplateFailed, "unknown test: `strng`; did you mean `string`?"),
        ("{{ lenn(s) }}", TemplateFailed, "unknown function or method: `lenn`; did you mean `len`?"),
        ("{{ s.strp() }}", TemplateFailed, "unknown function or method: `strp`; did you mean `strip`?"),
        ("{{ s >= 90 }}", TemplateFailed, "comparison of different types: `>=` between text and number, in `s >= 90`"),
        ("{{ '{0.__class__}'.format(s) }}", TemplateFailed, "undefined value: a part of Python that templates do not reach, in `'…'.format(s)`"),
        ("{{ none.replace('k4n4ry', s) }}", TemplateFailed, "unknown function or method: null has no method `replace`"),
        ("{% include 'k4n4ry' %}", TemplateFailed, "included part that cannot be read"),
        ("{{ s * 1000000000 }}", SandboxLimit, "too much text or too many items"),
        ("{% macro f(x) %}{{ f(s) }}{% endmacro %}{{ f(s) }}", SandboxLimit, "too deep a nesting"),
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", SandboxTimeout, "too many steps"),
    ],
)  # fmt: skip
def test_a_fault_says_the_place_and_names_the_culprit_and_nothing_of_the_data(
    text: str, fault: type[Exception], sort: str
) -> None:
    with pytest.raises(fault) as caught:
        rendered(text, s=CANARY, d={CANARY: CANARY}, n=None)

    assert str(caught.value) == f"template at flow.yaml:3:7 failed: {sort}"
    told = "".join(traceback.format_exception(caught.value)[-1:]) + repr(caught.value)
    assert CANARY not in told + describe(caught.value).to_json()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.acceptance("relavium 67")
@pytest.mark.parametrize("text", ["s ==", "gone == 'k4n4ry'", "s + 1 > 2", "d.gone", "s > 1", "s in d.x"])
def test_a_condition_tells_no_more_than_a_template(text: str) -> None:
    with pytest.raises(TemplateFailed) as caught:
        true(text, s=CANARY, d={CANARY: CANARY})

    assert CANARY not in str(caught.value) + describe(caught.value).to_json()


def test_the_line_inside_of_a_template_is_told() -> None:
    with pytest.raises(TemplateFailed, match="on line 3 of its text: undefined value"):
        rendered("a\nb\n{{ gone }}")


@pytest.mark.parametrize("text", ["{{ a }", "{{ a b }}", "{% for %}", "{% endif %}", "{{ 'a }}"])
def test_what_cannot_be_read_is_found_without_rendering(text: str) -> None:
    mistake = syntax_mistake(a_template(text))

    assert mistake is not None
    assert (mistake.type, mistake.line) == ("syntax error", 1)


@pytest.mark.parametrize(
    "text",
    [
        "{{ d.clear() }}", "{{ d.pop('a') }}", "{{ d.update(b=1) }}", "{{ d.setdefault('z', 1) }}", "{{ d.l.append(1) }}",
        "{{ d.l.sort() }}", "{{ d['l'].clear() }}", "{% for x in [d] %}{{ x.clear() }}{% endfor %}",
        "{% set x = d %}{{ x.l.pop() }}", "{{ d.__class__ }}", "{{ d.l.__len__ }}", "{{ d._of }}", "{{ d.items._self }}",
        "{{ int.from_bytes }}", "{{ d.keys.__self__ }}", "{{ d.get.__globals__ }}", "{{ (d.values()|list)[0]._of }}",
    ],
)  # fmt: skip
def test_nothing_of_python_is_reached_and_data_stay_as_they_are(text: str) -> None:
    data = {"a": 1, "l": [2, {"b": 3}]}
    before = copy.deepcopy(data)

    with pytest.raises(TemplateFailed):
        rendered(text, d=data)

    assert data == before


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.just(CANARY),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
EXPRESSIONS = st.recursive(
    st.sampled_from(["d", "d.a", "d.a.b", "d['c']", "d.a[0]", "1", "2.5", "'x'", "none", "true", "[]", "{}", "gone"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/%~<>"), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or", "in", "==", "//", "**"]), inner),
        st.builds("({}|{})".format, inner, st.sampled_from((
            "default(1)", "json", "tojson", "length", "join(',')", "upper", "int", "float", "sort", "list", "first",
            "string", "items", "replace('x', 'y')", "indent", "format(1)", "round", "batch(2)", "unique", "title",
        ))),
        st.builds("{}.{}".format, inner, st.sampled_from(["a", "items()", "get('a')", "upper()", "join(d)", "clear()"])),
        st.builds("({} is {})".format, inner, st.sampled_from(["defined", "none", "mapping", "odd", "string"])),
        st.builds("[{}, {}]".format, inner, inner),
    ),
    max_leaves=5,
)  # fmt: skip


@given(
    data=st.dictionaries(st.sampled_from("abc"), JSON, max_size=3),
    expression=EXPRESSIONS,
    blocks=st.booleans(),
)
def test_whatever_is_asked_of_whatever_data_gives_a_text_or_a_fault_that_tells_nothing(
    data: dict[str, Any], expression: str, blocks: bool
) -> None:
    before = copy.deepcopy(data)
    text = f"{{% set x = {expression} %}}{{{{ x }}}}" if blocks else f"{{{{ {expression} }}}}"

    came = [outcome(text, data), truth(expression, data)]

    assert CANARY not in "".join(one for one in came if one.startswith("fault"))
    assert data == before


@given(data=st.dictionaries(st.sampled_from("abc"), JSON, max_size=3), expression=EXPRESSIONS)
def test_the_short_way_and_the_long_way_give_the_same(data: dict[str, Any], expression: str) -> None:
    short = f"{{{{ {expression} }}}}"
    long = short + "{% if false %}{% endif %}"

    # With two tags on a line, a message does not quote the one that it is about.
    assert without_quote(outcome(short, data)) == without_quote(outcome(long, data))


def without_quote(outcome: str) -> str:
    return outcome.partition(" TemplateFailed(")[0].partition(" in `")[0].rstrip(":,")


def outcome(text: str, data: dict[str, Any]) -> str:
    """The text, or the fault."""
    try:
        return rendered(text, d=data)
    except (TemplateFailed, SandboxLimit) as fault:
        return f"fault {fault} {fault!r}"


def truth(text: str, data: dict[str, Any]) -> str:
    """Whether a condition holds, or the fault."""
    try:
        return str(holds(a_template(text), NamesFrom({"d": data})))
    except (TemplateFailed, SandboxLimit) as fault:
        return f"fault {fault} {fault!r}"
