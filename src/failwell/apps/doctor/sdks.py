"""Which errors of the installed SDKs have a rule here, which inherit one, and which are unknown.

A release that adds a class or changes its HTTP library is seen here before it is met at run time.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from failwell.adapters.reading import Reading
from failwell.adapters.registry import HOMES, find

_HTTP = (
    "httpx", "httpx2", "requests", "aiohttp", "urllib3", "grpcio", "botocore", "websockets", "niquests", "curl-cffi",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PATIENCE = 120.0
"""Seconds that loading one package may take."""

BESIDE = {
    "aiohttp.web_exceptions.": "what a server answers, not what a call meets",
    "botocore.vendored.": "left-overs that nothing raises any more",
    "pydantic.v1.": "the previous major version, kept beside the present one",
    "pydantic_core._pydantic_core.PydanticOmit": "a signal to the validator",
    "pydantic_core._pydantic_core.PydanticUseDefault": "a signal to the validator",
}
"""Beginnings of the names of classes that are no failures of a call, each with the reason."""

Standing = Literal["mapped", "inherited", "beside", "unknown"]


@dataclass(frozen=True, slots=True)
class KnownClass:
    """One exception class, and whether a rule covers it."""

    name: str
    """With its module."""
    standing: Standing
    by: str | None = None
    """The class whose rule applies, or the reason why none is needed."""
    proposal: str | None = None
    """A line for the vendor's table, where there is no rule."""


@dataclass(frozen=True, slots=True)
class Sdk:
    """One installed package whose errors have rules here, or should have."""

    top: str
    releases: tuple[str, ...]
    """Names and versions of the distributions it comes from."""
    http: tuple[str, ...]
    """The HTTP libraries that they need."""
    classes: tuple[KnownClass, ...] = ()
    broken: str | None = None
    """What its import raised, where it cannot be loaded."""

    @property
    def unknown(self) -> list[KnownClass]:
        """The classes without any rule."""
        return [entry for entry in self.classes if entry.standing == "unknown"]


def installed(tops: Iterable[str] | None = None) -> list[Sdk]:
    """Check every installed package that has rules here, or only these `tops`."""
    from concurrent.futures import ThreadPoolExecutor
    from importlib.metadata import packages_distributions

    distributions = packages_distributions()
    candidates = (
        [top for top in sorted(HOMES) if top not in sys.stdlib_module_names] if tops is None else list(tops)
    )
    tops_here = [top for top in candidates if top in distributions or tops is not None]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(probe, tops_here))
    return [
        _sdk(top, result, distributions.get(top, [])) for top, result in zip(tops_here, results, strict=True)
    ]


def probe(top: str) -> dict[str, Any]:
    """The exception classes of the package `top`, listed by a separate process."""
    try:
        process = subprocess.run(  # noqa: S603  (our own script, and a name from a table of ours)
            [sys.executable, str(Path(__file__).with_name("probe.py")), top],
            capture_output=True, check=False, timeout=_PATIENCE, stdin=subprocess.DEVNULL,
            # Loading litellm fetches a price list unless that is switched off.
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        )  # fmt: skip
        return json.loads(process.stdout)
    except subprocess.TimeoutExpired:
        return {"broken": "TimeoutExpired"}
    except ValueError:
        # It took its process down before it could say anything.
        return {"broken": "a process that died"}


def judge(module: str, name: str, mro: Iterable[tuple[str, str]]) -> KnownClass:
    """Whether a rule covers one class, by the names of its bases."""
    full = f"{module}.{name}"
    aside = next((reason for beginning, reason in BESIDE.items() if full.startswith(beginning)), None)
    if aside is not None:
        return KnownClass(full, "beside", aside)
    for place, (above_module, above_name) in enumerate(mro):
        if (above_module, above_name) == ("builtins", "BaseExceptionGroup"):
            # Whatever its class, a group is read by its members.
            return KnownClass(full, "inherited", above_name)
        entry = find(above_module, above_name)
        if entry is None or (place and isinstance(entry, Reading) and entry.exact):
            continue
        if place == 0:
            return KnownClass(full, "mapped", above_name)
        return KnownClass(full, "inherited", _qualified(above_module, above_name))
    return KnownClass(full, "unknown", proposal=propose(module, name))


def propose(module: str, name: str) -> str:
    """A line for the table of the class's vendor, and the file it belongs into."""
    top = module.partition(".")[0]
    home = HOMES.get(top, top)
    return f'"{name}": adapter({top!r}, {top!r}),  # in adapters/vendors/{home}.py, TABLES["{top}"]'.replace(
        "'", '"'
    )


def _sdk(top: str, result: dict[str, Any], distributions: list[str]) -> Sdk:
    from importlib.metadata import distribution

    # A namespace is shared by several distributions, and one may be listed for each of its files.
    releases = [distribution(name) for name in sorted(set(distributions))]
    rows: list[dict[str, Any]] = result.get("classes", [])
    return Sdk(
        top=top,
        releases=tuple(f"{release.name} {release.version}" for release in releases),
        http=tuple(dict.fromkeys(name for release in releases for name in _http(release.requires or []))),
        classes=tuple(
            judge(row["module"], row["name"], [(module, base) for module, base in row["mro"]]) for row in rows
        ),
        broken=result.get("broken"),
    )


def _http(requires: list[str]) -> tuple[str, ...]:
    needed: dict[str, None] = {}
    for line in requires:
        name = _NAME.match(line)
        if name is not None and "extra ==" not in line and name.group().lower() in _HTTP:
            needed.setdefault(name.group().lower(), None)
    return tuple(needed)


def _qualified(module: str, name: str) -> str:
    return name if module == "builtins" else f"{module.partition('.')[0]}.{name}"
