"""Evaluates conditions.

A condition with `{{ }}` is rendered, and its text is read as true or false. Without braces it is an expression with
flattened and dotted names.
"""

from functools import lru_cache

from failwell.workflows.plan import Template
from failwell.workflows.template.environment import Condition, Engine, condition, without_prefix
from failwell.workflows.template.fast_path import holds_fast
from failwell.workflows.template.lookup import FlatNames, Names
from failwell.workflows.template.mistakes import explain
from failwell.workflows.template.render import Parts, fault, is_rendered, render
from failwell.workflows.template.template_errors import TemplateMistake

_TAG = "{{{{ ({}) }}}}"
"""A condition as a template, which is shorter than the one that is rendered."""
_FALSE = frozenset({"false", "0", "no", ""})
_ENGINE = Engine()


def holds(when: Template, names: Names, *, flat: Names | None = None, parts: Parts | None = None) -> bool:
    """Whether `when` is true. `flat` has the names of an expression; the default is built from `names`.

    Raises the faults of `template.render`.
    """
    if is_rendered(when):
        return read_truth(render(when, names, parts))
    truth = holds_fast(when.text, names) if flat is None else None
    if truth is not None:
        return truth
    problem: TemplateMistake
    values: Names = FlatNames(names) if flat is None else flat
    try:
        ready = _condition(when.text)
        values = FlatNames(names, ready.dotted) if flat is None else flat
        return _ENGINE.render(ready.source, None, values) == "1"
    except TemplateMistake as mistake:
        problem = mistake
    if when.written is not None:
        # The same mistake, with the line that the file has it on.
        holds(when.unfolded(), names, flat=flat, parts=parts)
    problem = _ENGINE.named(without_prefix(problem), _TAG.format(when.text), None)
    raise fault(explain(problem, when.text, values, is_expression=True), when)


def read_truth(text: str) -> bool:
    """Whether the text of a rendered condition is true: `false`, `0`, `no` and an empty text are false."""
    return text.strip().lower() not in _FALSE


def check(text: str) -> None:
    """Compile an expression. Raises `TemplateMistake` if that fails."""
    _condition(text)
    _ENGINE.check(_TAG.format(text), None)


@lru_cache(maxsize=4096)
def _condition(text: str) -> Condition:
    return condition(text)
