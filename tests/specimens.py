"""Many specimens in one test: every one is tried, and those that fail are named.

A parameter for each of thousands of specimens costs more to collect than to run.
"""

from collections.abc import Callable, Iterable


def failures(names: Iterable[str], check: Callable[[str], None]) -> list[str]:
    """Run `check` for each name; one line for each that raises."""
    lines: list[str] = []
    for name in names:
        try:
            check(name)
        except BaseException as problem:  # a check may fail with anything, outside `Exception` too
            if isinstance(problem, KeyboardInterrupt):
                raise
            lines.append(f"{name}: {type(problem).__name__}: {str(problem)[:500]}")
    return lines


def parts(names: Iterable[str], count: int) -> list[list[str]]:
    """The names in `count` shares of like size, for workers that run side by side."""
    listed = list(names)
    return [listed[start::count] for start in range(count)]
