"""Lists the exception classes of a package by reading its source. Nothing of the package is run.

Loading forty SDKs takes a minute of processor time; reading the modules in which they define and export their errors takes about a second.
A package without readable source is loaded by `probe.py` instead.
"""

import ast
import builtins
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from failwell.adapters.doctor.probe import FACTS, about_errors, is_about_errors, is_public

_LARGEST = 4_000_000
_DEEPEST = 20
_SUFFIXES = (".py", ".pyi")
_EXCEPTION_NAMES = ("error", "exception", "timeout", "exit", "interrupt", "warning")

Name = tuple[str, str]
"""Module and name of a class."""


class _Class(NamedTuple):
    bases: tuple[str, ...]
    """As they are written."""
    definition: ast.ClassDef


@dataclass(slots=True)
class _Module:
    """What the top level of one module defines and imports."""

    name: str
    is_package: bool
    classes: dict[str, _Class] = field(default_factory=dict[str, _Class])
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict[str, tuple[str, str | None]])
    """A name → the module, and the name in it; `None` for a module itself."""
    stars: list[str] = field(default_factory=list[str])
    tuples: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


class SourceReader:
    """Reads the source of installed SDKs; a module is parsed at most once."""

    def __init__(self) -> None:
        self._modules: dict[str, _Module | None] = {}
        self._paths: dict[str, list[Path]] = {}

    def classes(self, top: str) -> list[dict[str, Any]]:
        """The public exception classes of `top`, as `probe.py` writes them."""
        rows: dict[Name, dict[str, Any]] = {}
        for module, name in self._shown(top):
            found = self._resolve(module, name)
            if found is None or found in rows or found[0].partition(".")[0] != top:
                continue
            line = self._line(found)
            if _is_exception(line) and not found[1].startswith("_"):
                rows[found] = {
                    # Users import it from where it is shown, not from the private module that defines it.
                    "module": module.name if "._" in found[0] else found[0],
                    "name": found[1],
                    "mro": [list(above) for above in line],
                    "carries": any(not self._attributes(above).isdisjoint(FACTS) for above in line),
                }
        return [rows[key] for key in sorted(rows)]

    def _shown(self, top: str) -> Iterator[tuple[_Module, str]]:
        """Names in the package itself and in its public modules about errors that may be exceptions."""
        package = self._module(top)
        if package is not None:
            yield from ((package, name) for name in package.classes)
            yield from (
                (package, name)
                for name, (source, _) in package.imports.items()
                if source.partition(".")[0] == top
                and (is_about_errors(source) or any(word in name.lower() for word in _EXCEPTION_NAMES))
            )
            yield from ((package, name) for star in package.stars for name in self._names(star))
            for alias, (source, name) in package.imports.items():
                # A private module that is shown under a public name: `from . import _error as error`.
                shown = self._module(f"{source}.{name}") if is_about_errors(alias) and name else None
                if shown is not None and alias[0] != "_" and source.partition(".")[0] == top:
                    yield from ((shown, own) for own in self._names(shown.name))
        for name in about_errors(top, [str(path) for path in self._folders(top)]):
            module = self._module(name) if is_public(name) else None
            if module is not None:
                yield from ((module, shown) for shown in self._names(name))

    def _names(self, name: str, depth: int = 0) -> list[str]:
        module = self._module(name)
        if module is None or depth > _DEEPEST:
            return []
        top = name.partition(".")[0]
        imported = [own for own, (source, _) in module.imports.items() if source.partition(".")[0] == top]
        below = [found for star in module.stars for found in self._names(star, depth + 1)]
        return [*module.classes, *imported, *below]

    def _resolve(self, module: _Module, dotted: str, depth: int = 0) -> Name | None:
        """The class that `dotted` means in `module`."""
        if depth > _DEEPEST:
            return None
        head, _, rest = dotted.partition(".")
        if not rest and head in module.classes:
            return module.name, head
        if head in module.imports:
            source, name = module.imports[head]
            if name is not None:
                inside = self._module(source)
                if not rest and inside is not None and (found := self._resolve(inside, name, depth + 1)):
                    return found
                source = f"{source}.{name}"
            target = self._module(".".join([source, *rest.split(".")[:-1]]) if rest else source)
            return (
                None
                if target is None or not rest
                else self._resolve(target, rest.rpartition(".")[2], depth + 1)
            )
        for star in module.stars:
            inside = self._module(star)
            if inside is not None and (found := self._resolve(inside, dotted, depth + 1)) is not None:
                return found
        own = getattr(builtins, head, None)
        return ("builtins", head) if not rest and isinstance(own, type) else None

    def _line(self, name: Name, depth: int = 0) -> list[Name]:
        """The class and what it derives from, nearest first."""
        if name[0] == "builtins":
            return [(above.__module__, above.__name__) for above in getattr(builtins, name[1]).__mro__]
        module = self._module(name[0])
        own = None if module is None else module.classes.get(name[1])
        line = [name]
        if module is None or own is None or depth > _DEEPEST:
            return line
        for base in own.bases:
            found = self._resolve(module, base)
            if found is not None and found != name:
                above = self._line(found, depth + 1)
                # A class that several bases share stands behind all of them.
                line = [*(known for known in line if known not in above), *above]
        return line

    def _attributes(self, name: Name) -> frozenset[str]:
        module = self._modules.get(name[0])
        own = None if module is None else module.classes.get(name[1])
        return frozenset() if own is None else frozenset(_attributes(own.definition))

    def _folders(self, top: str) -> list[Path]:
        """Where the modules of the package lie."""
        if top not in self._paths:
            # A package that this process has loaded may be another one than a fresh process would load.
            spec = PathFinder.find_spec(top, sys.path) or find_spec(top)
            locations = [] if spec is None else list(spec.submodule_search_locations or ())
            self._paths[top] = [Path(location) for location in locations]
            if not locations and spec is not None and spec.origin is not None:
                self._modules[top] = _parsed(top, Path(spec.origin), is_package=False)
        return self._paths[top]

    def _module(self, name: str) -> _Module | None:
        if name not in self._modules:
            self._modules[name] = None
            top, _, rest = name.partition(".")
            for folder in self._folders(top):
                base = folder.joinpath(*rest.split(".")) if rest else folder
                for path, is_package in _files(base, is_top=not rest):
                    parsed = _parsed(name, path, is_package=is_package)
                    if parsed is not None:
                        self._modules[name] = parsed
                        return parsed
        return self._modules[name]


def _files(base: Path, *, is_top: bool) -> Iterator[tuple[Path, bool]]:
    for suffix in _SUFFIXES:
        yield base / f"__init__{suffix}", True
        if not is_top:
            yield base.with_name(f"{base.name}{suffix}"), False


def _parsed(name: str, path: Path, *, is_package: bool) -> _Module | None:
    try:
        if path.stat().st_size > _LARGEST or path.suffix not in _SUFFIXES:
            return None
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    module = _Module(name, is_package)
    _read(module, tree.body)
    return module


def _read(module: _Module, body: list[ast.stmt]) -> None:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            bases = tuple(base for node in statement.bases for base in _bases(module, node))
            module.classes[statement.name] = _Class(bases, statement)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            _read_import(module, statement)
        elif isinstance(statement, ast.Assign):
            _read_assignment(module, statement)
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            for block in (getattr(statement, name, []) for name in ("body", "orelse", "finalbody")):
                _read(module, block)
            for handler in getattr(statement, "handlers", []):
                _read(module, handler.body)


def _read_import(module: _Module, statement: ast.Import | ast.ImportFrom) -> None:
    source = _source(module, statement) if isinstance(statement, ast.ImportFrom) else None
    for alias in statement.names:
        if source is None:
            head = alias.name.partition(".")[0]
            module.imports[alias.asname or head] = (alias.name if alias.asname else head, None)
        elif alias.name == "*":
            module.stars.append(source)
        else:
            module.imports[alias.asname or alias.name] = (source, alias.name)


def _read_assignment(module: _Module, statement: ast.Assign) -> None:
    """Another name for a class, or a tuple of classes."""
    names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if isinstance(statement.value, ast.Tuple):
        classes = tuple(text for node in statement.value.elts if (text := _dotted(node)) is not None)
        module.tuples.update(dict.fromkeys(names, classes))
    elif (text := _dotted(statement.value)) is not None and "." not in text:
        module.imports.update(
            {name: (module.name, text) for name in names if name not in (text, *module.imports)}
        )


def _bases(module: _Module, node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.Starred):
        return module.tuples.get(_dotted(node.value) or "", ())
    text = _dotted(node)
    return () if text is None else (text,)


def _source(module: _Module, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    parts = module.name.split(".")
    up = statement.level - (1 if module.is_package else 0)
    return ".".join(
        [*(parts[: len(parts) - up] if up else parts), *([statement.module] if statement.module else [])]
    )


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Attribute):
        holder = _dotted(node.value)
        return None if holder is None else f"{holder}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else None


def _attributes(definition: ast.ClassDef) -> Iterator[str]:
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id
        elif isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.FunctionDef):
            yield statement.name
            yield from (
                node.attr
                for node in ast.walk(statement)
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            )


def _is_exception(line: list[Name]) -> bool:
    return ("builtins", "BaseException") in line and ("builtins", "Warning") not in line
