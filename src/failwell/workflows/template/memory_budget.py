"""The limits of one rendering on text and time.

The engine limits steps, but not the text that a step writes. So every value that is written, and every filter that
can grow a text, spends its size from this budget.
"""

from threading import local
from time import monotonic, thread_time

from failwell.workflows.template.template_errors import MistakeType, TemplateMistake

LARGEST = 4 * 1024 * 1024
"""Characters of one text, and of the output."""
TOTAL = 8 * LARGEST
"""Characters of all texts that one rendering creates, including temporary ones."""
MAX_SECONDS = 5.0
"""CPU time of the thread, so that a busy machine changes no result. Steps usually run out earlier, unless each of them processes large data."""


class _Budget(local):
    remaining = TOTAL
    deadline = 0.0
    began = 0.0
    was_undefined = False


_BUDGET = _Budget()


def start_budget() -> None:
    """Start to render a template in this thread."""
    _BUDGET.remaining = TOTAL
    _BUDGET.deadline = monotonic() + MAX_SECONDS
    _BUDGET.began = thread_time()
    _BUDGET.was_undefined = False


def note_undefined() -> None:
    """Note that the rendering of a template used an undefined value where it cannot be stopped."""
    _BUDGET.was_undefined = True


def was_undefined() -> bool:
    """Whether the rendering of a template used an undefined value."""
    return _BUDGET.was_undefined


def spend(size: int) -> None:
    """Spend `size` characters of the budget."""
    _BUDGET.remaining -= size
    if _BUDGET.remaining < 0:
        raise TemplateMistake(MistakeType.MEMORY)
    # The CPU time decides, and is looked up only late because that is slow.
    if monotonic() > _BUDGET.deadline and thread_time() - _BUDGET.began > MAX_SECONDS:
        raise TemplateMistake(MistakeType.STEPS)


def spend_text(text: str) -> str:
    """`text`, after its size was spent."""
    if len(text) > LARGEST:
        raise TemplateMistake(MistakeType.MEMORY)
    spend(len(text))
    return text
