"""Which errors of the installed SDKs have a rule here, which inherit one, and which are unknown.

A release that adds a class or changes its HTTP library is seen here before it is met at run time.
"""

import builtins
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from failwell.adapters.classification import Classification
from failwell.adapters.classify import classify
from failwell.adapters.facts import Facts
from failwell.adapters.origin import VERDICTS
from failwell.adapters.registry import find, read
from failwell.errors.foreign_objects import safe_call
from failwell.errors.known_libraries import HOMES
from failwell.errors.lazy_regex import lazy_regex

_HTTP = (
    "httpx", "httpx2", "requests", "aiohttp", "urllib3", "grpcio", "botocore", "websockets", "niquests", "curl-cffi",
)  # fmt: skip
_NAME = lazy_regex(r"[A-Za-z0-9._-]+")
_UNSPECIFIC = frozenset({"provider.unknown", "internal.unknown"})
_OPEN = "…"
"""For a kind that only a person can choose."""
_PATIENCE = 120.0
"""Seconds that loading one package may take."""

BESIDE = {
    "aiohttp.web_exceptions.": "what a server answers, not what a call meets",
    "fastapi.exceptions.HTTPException": "how a route answers; FastAPI catches it",
    "fastapi.exceptions.WebSocketException": "how a route answers; FastAPI catches it",
    "botocore.vendored.": "left-overs that nothing raises any more",
    "pydantic.v1.": "the previous major version, kept beside the present one",
    "pydantic_core._pydantic_core.PydanticOmit": "a signal to the validator",
    "pydantic_core._pydantic_core.PydanticUseDefault": "a signal to the validator",
}
"""Beginnings of the names of classes that are no failures of a call, each with the reason."""

Standing = Literal["mapped", "inherited", "unspecific", "beside", "unknown"]
"""Whether a rule is for the class itself, for a base that says enough, for a base that says too little, not needed, or missing."""


@dataclass(frozen=True, slots=True)
class KnownClass:
    """One exception class, and whether a rule covers it."""

    name: str
    """With its module."""
    standing: Standing
    by: str | None = None
    """The class whose rule applies, or the reason why none is needed."""
    kind: str | None = None
    """What `describe` says of an exception of an unspecific class that carries nothing else."""
    proposal: str | None = None
    """The line that gives the class a kind, where it has none of its own."""


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

    @property
    def unspecific(self) -> list[KnownClass]:
        """The classes that only inherit a rule, which says too little about them."""
        return [entry for entry in self.classes if entry.standing == "unspecific"]


def installed(tops: Iterable[str] | None = None, *, load: bool = False) -> list[Sdk]:
    """Check every installed package that has rules here, or only these `tops`.

    Their source is read. With `load`, and where there is none, each is loaded in a process of its own.
    """
    from importlib.metadata import packages_distributions

    distributions = packages_distributions()
    candidates = (
        [top for top in sorted(HOMES) if top not in sys.stdlib_module_names] if tops is None else list(tops)
    )
    tops_here = [top for top in candidates if top in distributions or tops is not None]
    results = _loaded(tops_here) if load else _read(tops_here)
    return [
        _sdk(top, result, distributions.get(top, [])) for top, result in zip(tops_here, results, strict=True)
    ]


def _read(tops: list[str]) -> list[dict[str, Any]]:
    from failwell.adapters.doctor.source_classes import SourceReader

    reader = SourceReader()
    classes = {top: reader.classes(top) for top in tops}
    without = [top for top in tops if not classes[top]]
    loaded = dict(zip(without, _loaded(without), strict=True))
    return [loaded.get(top) or {"classes": classes[top]} for top in tops]


def _loaded(tops: list[str]) -> list[dict[str, Any]]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(probe, tops))


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


def judge(module: str, name: str, mro: Iterable[tuple[str, str]], *, carries: bool = True) -> KnownClass:
    """Whether a rule covers one class, by the names of its bases.

    Args:
        module: Where it is shown.
        name: Its own name.
        mro: The class and its bases, nearest first.
        carries: Whether its exceptions hold a status, a code or a reply, which say more than the class.
    """
    full = f"{module}.{name}"
    aside = next((reason for beginning, reason in BESIDE.items() if full.startswith(beginning)), None)
    if aside is not None:
        return KnownClass(full, "beside", aside)
    line = list(mro)
    for place, (above_module, above_name) in enumerate(line):
        if (above_module, above_name) == ("builtins", "BaseExceptionGroup"):
            # Whatever its class, a group is read by its members.
            return KnownClass(full, "inherited", above_name)
        entry = find(above_module, above_name)
        if entry is None or (place and isinstance(entry, Classification) and entry.exact):
            continue
        if place == 0:
            return KnownClass(full, "mapped", above_name)
        by = _qualified(above_module, above_name)
        kind = None if carries else _kind_of(line)
        if kind in _UNSPECIFIC or (above_module == "builtins" and kind in VERDICTS):
            return KnownClass(full, "unspecific", by, kind, propose(module, name))
        return KnownClass(full, "inherited", by)
    return KnownClass(full, "unknown", proposal=propose(module, name))


def propose(module: str, name: str) -> str:
    """The line that gives the class a kind: the one that its name suggests, if it suggests one."""
    kind = classify(Facts(names=(name.lower(),), exception_type=name)).kind
    return f'failwell.register_exception("{module}.{name}", kind="{_OPEN if kind in _UNSPECIFIC else kind}")'


def _kind_of(line: list[tuple[str, str]]) -> str | None:
    """What `describe` says of an exception with these bases that carries nothing."""
    cls: type[BaseException] = Exception
    for module, name in reversed(line):
        own: object = getattr(builtins, name, None) if module == "builtins" else None
        if isinstance(own, type) and issubclass(own, BaseException):
            cls = own
        elif module != "builtins":
            cls = cast("type[BaseException]", type(name, (cls,), {"__module__": module}))
    reading = safe_call(read, None, cls.__new__(cls))
    return None if reading is None else reading.kind


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
            judge(
                row["module"],
                row["name"],
                [(module, base) for module, base in row["mro"]],
                carries=row.get("carries", True),
            )
            for row in rows
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
