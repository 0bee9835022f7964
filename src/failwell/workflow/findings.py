"""What the checks of a workflow find: errors, which keep it from running, and warnings."""

from failwell.files.item_tree import Place
from failwell.files.mistakes import Mistake


def error(
    place: Place | None, message: str, *, path: str = "", hint: str = "", also: Place | None = None
) -> Mistake:
    """A mistake that keeps the workflow from running."""
    return Mistake(message=message, place=place, path=path, hint=hint, also=() if also is None else (also,))


def warning(
    place: Place | None, message: str, *, path: str = "", hint: str = "", also: Place | None = None
) -> Mistake:
    """Something that will probably not do what was meant."""
    further = () if also is None else (also,)
    return Mistake(message=message, place=place, path=path, hint=hint, also=further, severity="warning")
