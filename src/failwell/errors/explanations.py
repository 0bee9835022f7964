"""What `failwell explain` says about a kind: when it happens, what to do, an example.

The texts are data: `data/explanations/<namespace>.toml`. A namespace is read when a caller needs one
of its kinds, and never before.

Our kinds beside the names that five other systems have for the same failures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from failwell.errors.lazy_regex import lazy_regex

Language = Literal["python", "yaml", "sh"]

_STEP = lazy_regex(r"\d+\. ")
_NAMESPACE = lazy_regex(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Explanation:
    """The long text for one kind, unwrapped, so that a terminal or a page can wrap it to its own width."""

    cause: str
    """When it happens, and what distinguishes it from its neighbours."""
    remedy: str
    """What the person in charge does about it: numbered steps, one per line."""
    example: str
    """Code that raises it, routes it or shows it."""
    language: Language = "python"
    """The language of the example."""


def explanation(kind: str) -> Explanation | None:
    """The explanation of `kind`, or `None` when the runtime does not own it."""
    return _namespace(kind.partition(".")[0]).get(kind)


def data_file(*path: str) -> dict[str, Any]:
    """A TOML file that is shipped with the package, below `errors/data`."""
    import tomllib
    from importlib.resources import files

    resource = files("failwell.errors").joinpath("data", *path)
    return tomllib.loads(resource.read_text(encoding="utf-8")) if resource.is_file() else {}


@cache
def _namespace(name: str) -> dict[str, Explanation]:
    if not _NAMESPACE.fullmatch(name):
        return {}
    entries = data_file("explanations", f"{name}.toml")
    return {
        kind: Explanation(
            cause=" ".join(entry["cause"].split()),
            remedy=_steps(entry["remedy"]),
            example=entry["example"].strip("\n"),
            language=entry.get("language", "python"),
        )
        for kind, entry in entries.items()
    }


def _steps(text: str) -> str:
    steps: list[str] = []
    for line in text.strip().splitlines():
        if steps and not _STEP.match(line):
            steps[-1] += f" {line.strip()}"
        else:
            steps.append(line.strip())
    return "\n".join(steps)


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
