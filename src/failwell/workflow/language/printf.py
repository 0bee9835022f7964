"""`"%s of %d" % values`: the old way to format a text, within bounds."""

import re
from typing import Any

from failwell.workflow.language.budget import Budget
from failwell.workflow.language.mistakes import Mistake, Sort

_FIELD = re.compile(r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[-#0 +]*)(?P<width>\*|\d+)?(?:\.(?P<dot>\*|\d+))?[a-zA-Z%]?")
_WIDEST = 10_000


def printf(pattern: str, values: Any, budget: Budget) -> str:
    """`pattern` with its fields filled in."""
    for field in _FIELD.finditer(pattern):
        for part in (field["width"], field["dot"]):
            if part is None:
                continue
            # A `*` takes the width out of the data, where it cannot be seen beforehand.
            if part == "*" or len(part) > 5 or int(part) > _WIDEST:
                raise Mistake(Sort.MEMORY)
            budget.take(int(part))
    budget.weigh(values)
    for value in values if isinstance(values, tuple) else (values,):
        if isinstance(value, str):
            budget.take(len(value))
        budget.weigh(value)
    budget.take(len(pattern))
    try:
        return budget.text(pattern % values)
    except (TypeError, ValueError, KeyError, OverflowError):
        raise Mistake(Sort.OPERATION) from None
