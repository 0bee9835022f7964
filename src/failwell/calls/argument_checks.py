"""Checks the numbers, types and functions given to policies, backoffs, budgets and retries.

Each error names the parameter and the value.
"""

from math import isfinite


def check_count(name: str, value: object, least: int = 1, *, alternative: str = "") -> None:
    """Refuse anything but a whole number of at least `least`; `True` and `3.0` are refused too.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"`{name}` must be a whole number of at least {least}{alternative}, not {_shown(value)}"
        )


def check_number(name: str, value: object, *, most: float | None = None, endless: bool = False) -> None:
    """Refuse anything but a number from 0 to `most`, which must be finite unless it may be `endless`.

    Raises:
        ValueError: it is something else.
    """
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not value >= 0
        or (most is not None and value > most)
        or not (endless or isfinite(value))
    ):
        range_ = "that is not negative" if most is None else f"from 0 to {most:g}"
        raise ValueError(f"`{name}` must be a number {range_}, not {_shown(value)}")


def check_type(name: str, value: object, expected: type | tuple[type, ...], takes: str) -> None:
    """Refuse a value of another type than `expected`, which `takes` describes.

    Raises:
        TypeError: it has another type.
    """
    if not isinstance(value, expected):
        raise TypeError(f"`{name}` takes {takes}, not {_shown(value)}")


def check_callable(name: str, value: object) -> None:
    """Refuse a value that cannot be called.

    Raises:
        TypeError: it cannot.
    """
    if not callable(value):
        raise TypeError(f"`{name}` takes a function, not {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, type):
        return f"the class `{value.__name__}`"
    if isinstance(value, int | float | str | None):
        return repr(value)
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
