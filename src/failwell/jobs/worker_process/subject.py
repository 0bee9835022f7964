"""The capability: imported from its module, and called according to its signature."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, cast

from . import author
from .config_class import build_config, schema_of, triggers
from .failure_report import InvalidCall
from .types.signature import Signature

HOOKS = (
    "initialize", "cleanup", "prefetch", "reconfigure", "release", "on_enable", "on_disable", "on_cancel",
    "apply_config",
)  # fmt: skip
"""Lifecycle methods that the worker calls if the capability has them."""
LIFECYCLE = frozenset({*HOOKS, "config_schema", "config_class", "Config"})
HELPERS = ("progress", "check_cancel", "is_cancelled", "on_cancel", "heartbeat", "usage")


WHOLE_MODULE = ":*"
"""The end of a target that is every capability of a module."""


def find_capabilities(target: str, path: list[str]) -> list[dict[str, Any]]:
    """What the worker reports of every function and class with `@capability` in a module, in their order."""
    module = _import(target.removesuffix(WHOLE_MODULE), path)
    reports: list[dict[str, Any]] = []
    members = cast("dict[str, Any]", module.__dict__)
    for attribute, thing in list(members.items()):
        marks = getattr(thing, "__dict__", {}).get("__failwell__")
        # A capability that was imported from another module is that module's.
        if marks is not None and getattr(thing, "__module__", None) == module.__name__:
            object_name = f"{module.__name__}:{attribute}"
            about = Subject(object_name, path).about()
            reports.append({**about, "object": object_name, "marks": marks, "attribute": attribute})
    return reports


def _import(module: str, path: list[str]) -> Any:
    sys.path[:0] = [entry for entry in path if entry not in sys.path]
    importlib.invalidate_caches()
    author.importing = module
    try:
        return importlib.import_module(module)
    finally:
        author.importing = None


class Subject:
    """One capability, ready to be called."""

    def __init__(self, target: str, path: list[str]) -> None:
        module_name, _, attribute = target.partition(":")
        target_object = _import(module_name, path)
        for name in attribute.split("."):
            target_object = getattr(target_object, name)
        self._function = target_object if _is_function(target_object) else None
        self.instance: Any = target_object() if isinstance(target_object, type) else target_object
        if self._function is None:
            self._add_helpers()
        self.config: dict[str, Any] = {}
        self.schema = schema_of(self.instance)
        self._signatures: dict[str, Signature] = {}

    def about(self) -> dict[str, Any]:
        """What the worker reports to the host after the import."""
        instance = self.instance
        marks = getattr(instance, "__failwell__", {})
        name = marks.get("name") or getattr(instance, "name", None) or getattr(instance, "__name__", None)
        return {
            "name": str(name or type(instance).__name__),
            "version": str(marks.get("version") or getattr(instance, "version", "") or ""),
            "schema": self.schema,
            "actions": self._actions(),
            "parameters": self.parameters(),
            "sources": self.sources(),
            "hooks": sorted(name for name in HOOKS if self.hook(name) is not None),
            "doc": (inspect.getdoc(instance) or "")[:2000],
        }

    def method(self, action: str) -> Callable[..., Any]:
        """The function that `action` calls.

        Raises:
            InvalidCall: there is no such action.
        """
        if self._function is not None and action in ("execute", "execute_stream"):
            return self._function
        if action == "execute_stream" and not hasattr(self.instance, action):
            action = "execute"
        if action.startswith("_") or action in LIFECYCLE or action in HELPERS:
            method = None
        else:
            method = getattr(self.instance, action, None)
        if not callable(method) or self._function is not None:
            names = ", ".join(f"`{name}`" for name in self._actions())
            raise InvalidCall(f"there is no action `{action}`; it has {names or 'none'}", ["action"])
        return method

    def values(self, action: str, call: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as values of the types in the signature.

        Raises:
            InvalidCall: they do not fit; every such argument is named.
        """
        signature = self._signatures.get(action)
        if signature is None:
            signature = self._signatures[action] = Signature(call)
        return signature.values(action, arguments)

    def parameters(self) -> dict[str, Any]:
        """Action → the JSON Schema of its arguments."""
        schemas: dict[str, Any] = {}
        for action in self._actions():
            method = self.method(action)
            signature = self._signatures[action] = Signature(method)
            schemas[action] = signature.schema()
        return schemas

    def sources(self) -> dict[str, list[int]]:
        """The files of its actions, each with its time and size, so that a later change is noticed."""
        codes = [getattr(inspect.unwrap(self.method(action)), "__code__", None) for action in self._actions()]
        files = {code.co_filename for code in codes if code is not None}
        return {file: [status.st_mtime_ns, status.st_size] for file in files if (status := _status(file))}

    def hook(self, name: str) -> Callable[..., Any] | None:
        """A lifecycle method, if the capability has it."""
        if self._function is not None:
            return None
        method = getattr(self.instance, name, None)
        # `on_cancel` may be the author's hook, or the helper that was added under the same name.
        return method if callable(method) and method is not author.on_cancel else None

    def initialize(self, config: dict[str, Any]) -> Any:
        """Call `initialize` with the configuration."""
        call = self.hook("initialize")
        result = None
        if call is not None:
            takes = list(inspect.signature(call).parameters.values())
            result = call(build_config(self.instance, config)) if takes else call()
        self.config = config
        return result

    def reconfigure(self, config: dict[str, Any]) -> Any:
        """Apply another configuration: by the author's `reconfigure`, or by releasing what depends on changed fields."""
        old = self.config
        hook = self.hook("reconfigure")
        if hook is not None:
            result = hook(build_config(self.instance, old), build_config(self.instance, config))
            self.config = config
            return result
        for trigger in triggers(self.schema, old, config):
            release = self.hook(f"release_{trigger}")
            if release is not None:
                release()
        apply = self.hook("apply_config")
        if apply is not None:
            result = apply(build_config(self.instance, config))
            self.config = config
            return result
        return self.initialize(config)

    def _actions(self) -> list[str]:
        if self._function is not None:
            return ["execute"]
        cls = cast("type[object]", type(self.instance))
        if cls.__module__ == "builtins":
            # A module, a text or a number has no actions.
            return []
        # These two may be any callable; other actions have to be methods of the class.
        entry_points = {
            name for name in ("execute", "execute_stream") if callable(getattr(self.instance, name, None))
        }
        methods = {
            name
            for name, thing in inspect.getmembers_static(cls)
            if not name.startswith("_")
            and callable(thing)
            and name not in LIFECYCLE
            and name not in HELPERS
            and not name.startswith("release_")
        }
        return sorted(entry_points | methods)

    def _add_helpers(self) -> None:
        for name in HELPERS:
            if not hasattr(self.instance, name):
                try:
                    setattr(self.instance, name, getattr(author, name))
                except (AttributeError, TypeError):
                    # A class with slots cannot take them; the author can import the helpers instead.
                    return


def _is_function(target: object) -> bool:
    return inspect.isroutine(target) or (
        callable(target) and not isinstance(target, type) and not hasattr(target, "execute")
    )


def _status(file: str) -> os.stat_result | None:
    try:
        return os.stat(file)
    except OSError:
        return None
