"""What every command that deletes old records does alike: it asks first, and says what went."""

import sys
from collections.abc import Sequence

from failwell.apps.cli.output import is_terminal
from failwell.apps.cli.parser import wrong

_SHOWN = 20


def agreed(counted: str, see: str) -> bool:
    """Whether a person agrees that `counted` is deleted.

    Raises:
        Validation: nobody is there to be asked.
    """
    if not is_terminal(sys.stdin):
        raise wrong(
            f"{counted} would be deleted; say `--yes` to delete without being asked, or `--dry-run`", see=see
        )
    print(f"delete {counted}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def told(counted: str, names: Sequence[str], form: str, *, is_done: bool) -> list[str]:
    """The lines that say what went, or would go."""
    mark = "- " if form == "markdown" else "  "
    lines = [f"{'deleted' if is_done else 'would delete'} {counted}"]
    lines += [f"{mark}{name}" for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        lines.append(f"{mark}and {len(names) - _SHOWN} more")
    return lines


def some(names: Sequence[str]) -> str:
    """The first of `names` in a row, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def many(number: int, what: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
