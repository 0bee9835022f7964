"""The word that was probably meant: suggestions for names, keys and values that are not known."""

from collections.abc import Collection, Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is spelled most like `word`, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word[:60], list(known), n=1, cutoff=0.6)
    return near[0] if near else ""


class Near:
    """Finds the name that was probably meant.

    It stops after a while: searching for every mistake of a file that is full of them would take time
    that grows with its square.
    """

    def __init__(self, most: int = 40) -> None:
        self._left = most
        self._known: dict[tuple[str, str], str | None] = {}

    def __call__(self, name: str, valid: Collection[str], what: str) -> str | None:
        """The one of `valid` that is spelled most like `name`; `what` says which names `valid` holds."""
        key = (name, what)
        if key not in self._known:
            if self._left <= 0:
                return None
            self._left -= 1
            from difflib import get_close_matches

            # Names of another length are never close, and leaving them out is most of the work.
            likely = [
                candidate for candidate in valid if abs(len(candidate) - len(name)) <= max(2, len(name) // 2)
            ]
            matches = get_close_matches(name, likely[:2000], n=1, cutoff=0.6)
            self._known[key] = matches[0] if matches else None
        return self._known[key]


def choices(near: str | None, valid: Collection[str], otherwise: str) -> str:
    """The hint for a name that does not exist: the near one, else the few there are, else `otherwise`."""
    if near is not None:
        return f"did you mean `{near}`?"
    if 0 < len(valid) <= 8:
        return f"write one of {', '.join(f'`{name}`' for name in valid)}"
    return otherwise


def unknown_word(word: str, known: Iterable[str], words: str = "is not known") -> str:
    """What is wrong with a word that is none of those that are known, with the one that was probably meant."""
    near = nearest(word, known)
    return f"{words}; did you mean `{near}`?" if near else words


def not_one_of(value: object, known: Iterable[str]) -> str:
    """What is wrong with a value that must be one of several words."""
    names = list(known)
    near = nearest(value, names) if isinstance(value, str) else ""
    meant = f"; did you mean `{near}`?" if near else ""
    return f"must be {', '.join(f'`{name}`' for name in names[:-1])} or `{names[-1]}`, not {value!r}{meant}"
