"""What templates and declarations refer to, told without running them."""

import pytest

from failwell.workflows.plan import Template
from failwell.workflows.template.names import Reference, ReferenceMistake, input_reference
from failwell.workflows.template.references import references


def found_in(text: str, *, condition: bool = False) -> set[tuple[str, bool]]:
    return {(".".join(one.path), one.guarded) for one in references(Template(text=text), condition=condition)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", set[tuple[str, bool]]()),
        ("{{ finder.output.files }}", {("finder.output.files", False)}),
        ("{{ a.output['k'].c[0] }}", {("a.output.k.c.0", False)}),
        ("{{ a.output[key] }}", {("a.output", False), ("key", False)}),
        ("{{ a.error.kind | default('x') }}", {("a.error.kind", True)}),
        ("{{ (a.b) | d('') }}", {("a.b", True)}),
        (
            "{% if n.error is defined %}{{ n.error.kind }}{% endif %}",
            {("n.error", True), ("n.error.kind", True)},
        ),
        ("{% for f in a.output.l %}{{ f.name }}{{ loop.index }}{% endfor %}", {("a.output.l", False)}),
        ("{% set x = a.output.y %}{{ x.z }}", {("a.output.y", False)}),
        (
            "{% macro m(p, q=w.output.a) %}{{ p }}{% endmacro %}{{ m(k.output) }}",
            {("w.output.a", False), ("k.output", False)},
        ),
        ("{{ range(3) }}{{ a.output.get('k') }}", {("a.output", False)}),
        ("{{ l | map(attribute='q') | join(d=sep) }}", {("l", False), ("sep", False)}),
        ("{{ x if y.output.ok else z }}", {("x", False), ("y.output.ok", False), ("z", False)}),
        ("{{ context.iteration }}", {("context.iteration", False)}),
        ("{# {{ comment.x }} #}{% raw %}{{ raw.x }}{% endraw %}", set[tuple[str, bool]]()),
        ("{{ 'text.with.dots' }}", set[tuple[str, bool]]()),
        ("{{ broken.", set[tuple[str, bool]]()),
    ],
)
def test_every_path_is_found_with_its_guard(text: str, expected: set[tuple[str, bool]]) -> None:
    assert {one for one in found_in(text) if one[0] != "m"} == expected


def test_a_condition_without_braces_is_an_expression() -> None:
    text = "output.count > 2 and finder_output.ok and x is not defined"

    assert found_in(text, condition=True) == {
        ("output.count", False),
        ("finder_output.ok", False),
        ("x", True),
    }
    assert found_in(text) == set()


def test_a_reference_knows_its_parts() -> None:
    reference = Reference(("a", "error", "details", "x"), guarded=False)

    assert (reference.root, reference.slot, reference.rest) == ("a", "error", ("details", "x"))
    assert Reference(("a", "b"), guarded=False).slot is None


@pytest.mark.parametrize(
    ("text", "path", "is_optional"),
    [
        ("n.output", ("n", "output"), False),
        ("n.output.a.b?", ("n", "output", "a", "b"), True),
        ("n.a.b", ("n", "output", "a", "b"), False),
        ("g.outputs.m.f", ("g", "outputs", "m", "f"), False),
        ("g.errors", ("g", "errors"), False),
        ("g.count?", ("g", "count"), True),
        ("workflow.input.x?", ("workflow", "input", "x"), True),
        ("n.error.kind?", ("n", "error", "kind"), True),
    ],
)
def test_a_declaration_is_read_with_nothing_left_out(
    text: str, path: tuple[str, ...], is_optional: bool
) -> None:
    reference = input_reference(text)

    assert (reference.path, reference.is_optional) == (path, is_optional)


@pytest.mark.parametrize(
    "text", ["", "?", "{{ n.output }}", "n..a", ".n", "n.", "1n.a", "n output", "workflow"]
)
def test_what_is_no_declaration_is_refused(text: str) -> None:
    with pytest.raises(ReferenceMistake):
        input_reference(text)


def test_the_name_of_a_filter_block_is_no_reference() -> None:
    text = "{% filter replace(a.output.x, 'y') %}{{ b.output }}{% endfilter %}"

    found = {reference.path for reference in references(Template(text=text))}

    assert found == {("a", "output", "x"), ("b", "output")}
