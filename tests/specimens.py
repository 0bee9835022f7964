"""Many specimens in one test: every one is tried, and those that fail are named.

A parameter for each of thousands of specimens costs more to collect than to run.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest


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


def each(
    names: str | tuple[str, ...], cases: Iterable[Any], ids: Callable[[Any], object] | Iterable[object] = repr
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but all cases are one test, which names those that fail.

    For cases without side effects: they share the fixtures of the test.
    """
    single = isinstance(names, str)
    bound = (names,) if isinstance(names, str) else names
    listed = [(case,) if single else tuple(case) for case in cases]
    if callable(ids):
        titles = ["-".join(str(ids(value) or value) for value in case) for case in listed]
    else:
        titles = [str(title) for title in ids]
    assert listed
    assert len(titles) == len(listed)
    # Two cases may read alike; the number keeps them apart.
    arguments = {
        f"{number}: {title}": case for number, (title, case) in enumerate(zip(titles, listed, strict=True))
    }

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @wraps(test)
        def in_turn(**fixtures: Any) -> None:
            def check(name: str) -> None:
                test(**dict(zip(bound, arguments[name], strict=True)), **fixtures)

            if wrong := failures(arguments, check):
                pytest.fail(
                    "\n".join([f"{len(wrong)} of {len(arguments)} cases failed:", *wrong]), pytrace=False
                )

        kept = [parameter for name, parameter in signature.parameters.items() if name not in bound]
        in_turn.__dict__["__signature__"] = signature.replace(parameters=kept)
        return in_turn

    return decorate
