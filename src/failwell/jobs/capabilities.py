"""The registered capabilities of a state folder, with their settings and secrets.

    capabilities/NAME.toml         a copy of the manifest
    capabilities/NAME.origin       the folder it came from; relative paths in it start there
    capabilities/NAME.parameters   what its actions take, and the source files that say so
    instances.json                 per instance: enabled, configuration
    secrets.json                   values of secret variables; never shown
    shelf.lock                     held while one of these files is changed

Only their owner can read the files. They are replaced as a whole, so a reader never sees half of one, and
changes of several processes are made one after the other.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.errors.faults import (
    CapabilityConfigError,
    CapabilityInputError,
    CapabilityNotLoadedError,
)
from failwell.jobs.manifest import Manifest, check_instance, is_temporary, is_valid_name
from failwell.jobs.manifest_file import parse_manifest, read_manifest, to_toml
from failwell.store.faults import os_fault
from failwell.store.folder import absolute_folder, file_exists, make_private, state_folder
from failwell.store.locks import exclusive
from failwell.store.private_files import replace_private

LOCK = "shelf.lock"
_SUFFIXES = (".toml", ".origin", ".parameters")
_TEXT_TYPES = ("string", ["string", "null"], ["null", "string"])


class RegistryContent(NamedTuple):
    """The settings of instances and the secrets, read at one moment."""

    instances: Mapping[str, Mapping[str, Any]]
    secrets: Mapping[str, Mapping[str, str]]


class _CachedManifest(NamedTuple):
    stamp: object
    manifest: Manifest
    sources: Mapping[str, Any]


Replacing = bool | Literal["same folder"]
"""Whether a capability that is registered already is replaced."""


class CapabilityRegistry:
    """The registered capabilities of one folder."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        path = state_folder() if folder is None else Path(folder)
        self.folder = path if path.is_absolute() else absolute_folder(path)
        self._cached_manifests: dict[str, _CachedManifest] = {}
        self._cached_instances: tuple[object, dict[str, dict[str, Any]]] = (None, {})

    # -------------------------------------------------------------- manifests

    def names(self) -> list[str]:
        """The names of all registered capabilities.

        Raises:
            StoreUnavailable: this process may not read the folder.
        """
        folder = self._manifests()
        try:
            files = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise os_fault(error, folder) from error
        names = (file.removesuffix(".toml") for file in files if file.endswith(".toml"))
        # Another file in the folder is none of ours.
        return sorted(name for name in names if is_valid_name(name))

    def manifest(self, name: str) -> Manifest:
        """The manifest of a registered capability, with its parameters unless its source has changed since.

        The same object is returned until something changes.

        Raises:
            CapabilityNotLoadedError: no capability of that name is registered.
            CapabilityConfigError: its manifest is no longer valid.
        """
        path = self._manifests() / f"{name}.toml"
        stamp = tuple(_stamp(path.with_suffix(suffix)) for suffix in _SUFFIXES)
        if not is_valid_name(name) or not (stamp[0] or file_exists(path)):
            raise CapabilityNotLoadedError(name)
        cached = self._cached_manifests.get(name)
        if cached is None or cached.stamp != stamp:
            cached = self._cached_manifests[name] = self._read_manifest(path, stamp)
        if cached.sources and any(_source_stamp(file) != known for file, known in cached.sources.items()):
            # Only the worker knows what the changed code takes.
            cached = _CachedManifest(stamp, replace(cached.manifest, parameters=None), {})
            self._cached_manifests[name] = cached
        return cached.manifest

    def _read_manifest(self, path: Path, stamp: object) -> _CachedManifest:
        manifest = read_manifest(path, self._origin(path.stem))
        try:
            content: Any = loads(path.with_suffix(".parameters").read_text(encoding="utf-8"))
            actions, sources = dict(content["actions"]), dict(content["sources"])
        except (OSError, ValueError, LookupError, TypeError):
            # Nobody has imported it yet.
            return _CachedManifest(stamp, manifest, {})
        return _CachedManifest(stamp, replace(manifest, parameters=actions), sources)

    def add(self, path: str | os.PathLike[str], *, replace: Replacing = False) -> Manifest:
        """Register the manifest in a file. `replace="same folder"` replaces one that was registered from the same folder.

        Raises:
            CapabilityConfigError: the manifest is not valid.
            CapabilityInputError: a capability of that name is already registered.
        """
        manifest = read_manifest(path)
        self._add(manifest, Path(path).read_text(encoding="utf-8"), replace)
        return manifest

    def add_values(
        self, values: Mapping[str, Any], directory: str, *, source: str, replace: Replacing = False
    ) -> Manifest:
        """Register a manifest that is not in a file; relative paths in it start at `directory`.

        Raises:
            CapabilityConfigError: a value is not valid; the message begins with `source`.
            CapabilityInputError: a capability of that name is already registered.
        """
        manifest = parse_manifest(values, directory, shown=source)
        self._add(manifest, to_toml(values), replace)
        return manifest

    def _add(self, manifest: Manifest, text: str, replace: Replacing) -> None:
        with self._changing():
            if manifest.name in self.names():
                self._check_replaced(manifest, replace)
            target = self._manifests() / f"{manifest.name}.toml"
            _write(target.with_suffix(".origin"), manifest.directory + "\n")
            _write(target, text)
            _delete(target.with_suffix(".parameters"))

    def _check_replaced(self, manifest: Manifest, replace: Replacing) -> None:
        if replace is True:
            return
        advice = "give this one another name"
        if not replace:
            words = "is already registered"
            advice = f"replace it with `--force` (in Python `replace=True`), or {advice}"
        else:
            before = self._origin(manifest.name)
            if before == manifest.directory or not Path(before).is_dir():
                return
            # Its jobs would run the code of one folder or of the other.
            words = f"is registered from {before}, and this one is in {manifest.directory}"
            advice = f"replace it with `failwell capabilities add FILE --force`, use another store with `--store`, or {advice}"
        raise CapabilityInputError(
            f"capability {manifest.name!r} {words}",
            fields_invalid=["name"],
            user_action=UserAction(ActionKind.CHANGE_INPUT, advice),
        )

    def _origin(self, name: str) -> str:
        """The folder that the relative paths of a registered manifest start at."""
        path = self._manifests() / f"{name}.origin"
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            # The manifest was copied here by hand.
            return str(path.parent)

    def set_parameters(self, name: str, about: Mapping[str, Any]) -> None:
        """Store what the actions of a registered capability take, as its worker reports them when it is imported."""
        target = self._manifests() / f"{name}.parameters"
        content = dumps({"actions": about["parameters"], "sources": about["sources"]}, sort_keys=True) + "\n"
        if _text(target) == content:
            return
        with self._changing():
            if name in self.names():
                _write(target, content)

    def remove(self, name: str) -> None:
        """Delete a capability with its settings and secrets, even if its manifest is no longer valid.

        Raises:
            CapabilityNotLoadedError: no capability of that name is registered.
        """
        with self._changing():
            if name not in self.names():
                raise CapabilityNotLoadedError(name)
            for suffix in _SUFFIXES:
                _delete(self._manifests() / f"{name}{suffix}")
            instances = self._instances()
            remaining = {
                instance: settings
                for instance, settings in instances.items()
                if settings.get("capability") != name
            }
            if len(remaining) < len(instances):
                self._write_instances(remaining)
            secrets = self._secrets()
            if secrets.pop(name, None) is not None:
                self._write_secrets(secrets)

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Hold the lock, so that no change of another process is lost."""
        with exclusive(self.folder / LOCK):
            yield

    def _manifests(self) -> Path:
        return self.folder / "capabilities"

    # -------------------------------------------------------------- detecting changes

    def stamp(self) -> object:
        """A value that differs after every change of a setting or a secret."""
        return tuple(_stamp(self.folder / name) for name in ("instances.json", "secrets.json"))

    def manifest_stamps(self) -> dict[str, object]:
        """For each capability a value that differs after every change of its manifest."""
        return {name: _stamp(self._manifests() / f"{name}.toml") for name in self.names()}

    def content(self) -> RegistryContent:
        """All settings and secrets.

        Raises:
            CapabilityConfigError: a file is not valid, for example after it was edited by hand.
        """
        return RegistryContent(self._instances(), self._secrets())

    # -------------------------------------------------------------- settings of instances

    def capability(self, instance: str) -> str:
        """The capability of an instance; a name without settings is taken for that of a capability."""
        return self._instances().get(instance, {}).get("capability", instance)

    def has_instance(self, instance: str) -> bool:
        """Whether the capability of an instance is registered."""
        return self.capability(instance) in self.names()

    def text_parameters(self, instance: str, action: str) -> set[str]:
        """The parameters of an action that take text and no number, as far as they are known."""
        try:
            parameters = self.manifest(self.capability(instance)).parameters or {}
        except Fault:
            # It is reported when the job is submitted.
            return set()
        fields: dict[str, Any] = parameters.get(action, {}).get("properties", {})
        return {name for name, schema in fields.items() if schema.get("type") in _TEXT_TYPES}

    def is_enabled(self, instance: str) -> bool:
        """Whether an instance is enabled, as it is by default."""
        return self._instances().get(instance, {}).get("enabled", True) is not False

    def set_enabled(self, instance: str, on: bool, *, capability: str | None = None) -> bool:
        """Enable or disable an instance; return whether that changed anything."""
        before = self._change(instance, capability or instance, enabled=on)
        return (before.get("enabled", True) is not False) is not on

    def config(self, instance: str) -> dict[str, Any]:
        """The stored configuration of an instance."""
        return dict(self._instances().get(instance, {}).get("config", {}))

    def set_config(self, instance: str, config: Mapping[str, Any], *, capability: str | None = None) -> None:
        """Store a configuration. The caller checks it first, see `failwell.jobs.settings.settle`."""
        self._change(instance, capability or instance, config=dict(config))

    def instances(self, name: str) -> list[str]:
        """The instances of a capability that have settings, and the one that is named like the capability."""
        matching = [
            instance for instance, settings in self._instances().items() if settings.get("capability") == name
        ]
        return sorted({name, *matching}, key=lambda instance: (instance != name, instance))

    def _change(self, instance: str, capability: str, **changes: Any) -> dict[str, Any]:
        """Store these settings of an instance; return its previous ones."""
        check_instance(instance)
        if is_temporary(capability, instance):
            # Generated ids are for one run, and nothing is stored for them.
            return {}
        with self._changing():
            instances = self._instances()
            before = instances.get(instance, {})
            after = {**before, "capability": capability, **changes}
            if after != before:
                self._write_instances({**instances, instance: after})
        return dict(before)

    def _instances(self) -> Mapping[str, Mapping[str, Any]]:
        file = self.folder / "instances.json"
        stamp = _stamp(file)
        if self._cached_instances[0] != stamp:
            self._cached_instances = (stamp, _read(file))
        return self._cached_instances[1]

    def _write_instances(self, instances: Mapping[str, Any]) -> None:
        _write(self.folder / "instances.json", dumps(instances, indent=2, sort_keys=True) + "\n")

    # -------------------------------------------------------------- secrets

    def secrets(self, name: str) -> dict[str, str]:
        """The values of a capability's secret variables, for its worker only."""
        return cast("dict[str, str]", dict(self._secrets().get(name, {})))

    def secret_names(self, name: str) -> list[str]:
        """The names of the secrets that are set."""
        return sorted(self._secrets().get(name, {}))

    def set_secret(self, name: str, variable: str, value: str | None) -> None:
        """Store the value of a secret variable; `None` deletes it.

        Raises:
            CapabilityInputError: the manifest declares no such secret.
        """
        declared = [entry.name for entry in self.manifest(name).env if entry.secret]
        if variable not in declared:
            names = ", ".join(f"`{entry}`" for entry in declared) or "none"
            raise CapabilityInputError(
                f"capability {name!r} declares no secret `{variable}`; it has {names}",
                fields_invalid=[variable],
            )
        with self._changing():
            secrets = self._secrets()
            values = secrets.setdefault(name, {})
            if value is None:
                values.pop(variable, None)
            else:
                values[variable] = value
            self._write_secrets(secrets)

    def _secrets(self) -> dict[str, dict[str, Any]]:
        return _read(self.folder / "secrets.json")

    def _write_secrets(self, secrets: Mapping[str, Any]) -> None:
        _write(self.folder / "secrets.json", dumps(secrets, indent=2, sort_keys=True) + "\n")


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    # Every change creates a new file, so two changes within one tick of the clock differ by the inode.
    return (status.st_mtime_ns, status.st_ino, status.st_size)


def _source_stamp(file: str) -> list[int]:
    return list(_stamp(Path(file)))[::2]


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise os_fault(error, path) from error


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        content: object = loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise os_fault(error, path) from error
    except (UnicodeDecodeError, JSONDecodeError) as error:
        raise _broken(path, f"cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise _broken(path, "does not hold an object")
    tables = cast("dict[str, dict[str, Any]]", content)
    for name, table in tables.items():
        if not isinstance(table, dict):  # pyright: ignore[reportUnnecessaryIsInstance]  (a person may have written it)
            raise _broken(path, f"does not hold an object for {name!r}")
    return tables


def _broken(path: Path, why: str) -> CapabilityConfigError:
    return CapabilityConfigError(
        f"{path} {why}",
        user_action=UserAction(ActionKind.FIX_CONFIGURATION, "correct the file, or move it away"),
    )


def _write(path: Path, text: str) -> None:
    make_private(path.parent)
    try:
        replace_private(path, text, sync=True)
    except OSError as error:
        raise os_fault(error, path) from error
