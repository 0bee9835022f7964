"""Suggestions in messages about mistakes: for names, keys and values that do not exist."""

from collections.abc import Collection, Iterable


def nearest(word: str, valid: Iterable[str]) -> str:
    """The valid word that is spelled most like `word`, for a message about the mistake; an empty text if there is none."""
    from difflib import get_close_matches

    matches = get_close_matches(word[:60], list(valid), n=1, cutoff=0.6)
    return matches[0] if matches else ""


class Near:
    """Finds the valid name that is spelled most like a wrong one.

    The number of searches is limited: in a file full of mistakes their cost would grow quadratically.
    """

    def __init__(self, limit: int = 40) -> None:
        self._searches_left = limit
        self._results: dict[tuple[str, str], str | None] = {}

    def __call__(self, name: str, valid: Collection[str], scope: str) -> str | None:
        """The name in `valid` that is spelled most like `name`; `scope` identifies `valid` in the cache."""
        key = (name, scope)
        if key not in self._results:
            if self._searches_left <= 0:
                return None
            self._searches_left -= 1
            from difflib import get_close_matches

            # Comparing only names of a similar length saves most of the time.
            candidates = [
                candidate for candidate in valid if abs(len(candidate) - len(name)) <= max(2, len(name) // 2)
            ]
            matches = get_close_matches(name, candidates[:2000], n=1, cutoff=0.6)
            self._results[key] = matches[0] if matches else None
        return self._results[key]


def choices(near: str | None, valid: Collection[str], otherwise: str) -> str:
    """The hint for a mistake in a name: the similar one, else all valid ones if they are few, else `otherwise`."""
    if near is not None:
        return f"did you mean `{near}`?"
    if 0 < len(valid) <= 8:
        return f"write one of {', '.join(f'`{name}`' for name in valid)}"
    return otherwise


def unknown_word(word: str, valid: Iterable[str], words: str = "is not known") -> str:
    """The message for a mistake in a word, with the similar valid one."""
    near = nearest(word, valid)
    return f"{words}; did you mean `{near}`?" if near else words


def not_one_of(value: object, valid: Iterable[str]) -> str:
    """The message for a value that is not one of the valid words."""
    names = list(valid)
    near = nearest(value, names) if isinstance(value, str) else ""
    suggestion = f"; did you mean `{near}`?" if near else ""
    return (
        f"must be {', '.join(f'`{name}`' for name in names[:-1])} or `{names[-1]}`, not {value!r}{suggestion}"
    )
