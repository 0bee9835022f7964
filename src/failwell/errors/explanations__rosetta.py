"""Our kinds beside the names that five other systems have for the same failures.

The table is data: `data/rosetta.toml`. It is read on first use.
"""

from collections.abc import Mapping
from functools import cache

from failwell.errors.explanations import data_file

Names = Mapping[str, tuple[str, ...]]
"""Our kind → what one system calls it."""


@cache
def rosetta() -> Mapping[str, Names]:
    """System → our kind → what that system calls it."""
    return {
        system: {kind: tuple(names) for kind, names in table.items()}
        for system, table in data_file("rosetta.toml").items()
    }


def translate_name(name: str) -> list[tuple[str, str]]:
    """Every (system, kind) that `name` can mean; case does not matter, nor does the list before a slash.

    A short name may mean several things: `timeout` is a provider's and a sandbox's. Exact
    matches come first.
    """
    folded = name.casefold()
    exact: list[tuple[str, str]] = []
    short: list[tuple[str, str]] = []
    for system, table in rosetta().items():
        for kind, names in table.items():
            folded_names = [known.casefold() for known in names]
            if folded in folded_names:
                exact.append((system, kind))
            elif any(known.endswith(f"/{folded}") for known in folded_names):
                short.append((system, kind))
    return exact + short
