"""Builds the mistakes that rules report: errors, which prevent a run, and warnings."""

from dataclasses import replace

from failwell.files.item_tree import Place
from failwell.files.mistakes import Mistake

HOOKS = "workflow.hooks."
"""How the fields of hooks begin."""


def error(
    place: Place | None, message: str, *, path: str = "", hint: str = "", also: Place | None = None
) -> Mistake:
    """A mistake that prevents the workflow from running."""
    return Mistake(message=message, place=place, path=path, hint=hint, also=() if also is None else (also,))


def warning(
    place: Place | None, message: str, *, path: str = "", hint: str = "", also: Place | None = None
) -> Mistake:
    """A mistake that does not prevent a run."""
    further = () if also is None else (also,)
    return Mistake(message=message, place=place, path=path, hint=hint, also=further, severity="warning")


def softened(mistake: Mistake) -> Mistake:
    """A mistake in a hook's template is a warning, because a hook never ends a run."""
    return replace(mistake, severity="warning") if mistake.path.startswith(HOOKS) else mistake
