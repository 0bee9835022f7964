"""Decides whether a `when` holds.

With `{{ }}` it is rendered and its text is read as true or false; without, it is an expression over
names flattened one level, and over the dotted ones too.
"""

from functools import lru_cache
from typing import Any

from failwell.workflow.language.compile import Condition, compile_condition
from failwell.workflow.language.mistakes import Mistake, Sort, located
from failwell.workflow.names import FlatNames, Names
from failwell.workflow.plan import Template
from failwell.workflow.template import Parts, fault, is_rendered, render

_FALSE = frozenset({"false", "0", "no", ""})
_VALUES = frozenset({bool, int, float, str, type(None), list, dict, tuple})


def holds(when: Template, names: Names, *, flat: Names | None = None, parts: Parts | None = None) -> bool:
    """Whether `when` is true. `flat` is asked for the names of an expression; left out, it is made from `names`.

    Raises the faults of `template.render`.
    """
    if is_rendered(when):
        return read_truth(render(when, names, parts))
    problem: Mistake | None = None
    value: Any = None
    try:
        condition = compiled(when.text)
        value = condition.value(FlatNames(names, condition.dotted) if flat is None else flat)
        if type(value) not in _VALUES:
            problem = Mistake(Sort.RESULT)
    # Python's own errors quote the data, so each becomes a mistake that does not.
    except Exception as error:  # noqa: BLE001
        problem = located(error, 1)
    if problem is not None:
        raise fault(problem, when.place)
    return bool(value)


def read_truth(text: str) -> bool:
    """Read the text of a rendered condition: `false`, `0`, `no` and nothing at all are false."""
    return text.strip().lower() not in _FALSE


@lru_cache(maxsize=4096)
def compiled(text: str) -> Condition:
    """The condition in `text`, made once. Raises `Mistake`."""
    return compile_condition(text)
