"""Where registered capabilities are kept: in the state folder, with their settings and secrets.

    capabilities/NAME.toml     a copy of the manifest
    capabilities/NAME.origin   the folder it came from; relative paths in it start there
    instances.json             per instance: enabled, configuration
    secrets.json               values of secret variables; 0600, never shown

Files are replaced whole, so whoever reads never sees half of one.
"""

import os
from collections.abc import Mapping
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Any, cast

from failwell.fault.capability import CapabilityConfigError, CapabilityInputError, CapabilityNotLoadedError
from failwell.jobs.manifest import Manifest, check_instance, is_brief, parse_manifest, read_manifest
from failwell.journal.folder import make_private, state_folder


class Shelf:
    """The registered capabilities of one folder."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = state_folder() if folder is None else Path(folder)

    # -------------------------------------------------------------- manifests

    def names(self) -> list[str]:
        """Every registered capability."""
        return sorted(path.stem for path in self._manifests().glob("*.toml"))

    def manifest(self, name: str) -> Manifest:
        """The manifest of one.

        Raises:
            CapabilityNotLoadedError: nothing of that name is registered.
            CapabilityConfigError: its manifest is not valid any more.
        """
        if name not in self.names():
            raise CapabilityNotLoadedError(name)
        path = self._manifests() / f"{name}.toml"
        origin = path.with_suffix(".origin")
        directory = origin.read_text(encoding="utf-8").strip() if origin.exists() else str(path.parent)
        return _at(path, directory)

    def add(self, path: str | os.PathLike[str], *, replace: bool = False) -> Manifest:
        """Register the manifest in a file.

        Raises:
            CapabilityConfigError: it is not valid.
            CapabilityInputError: one of that name is registered already.
        """
        made = read_manifest(path)
        if made.name in self.names() and not replace:
            raise CapabilityInputError(
                f"capability {made.name!r} is already registered; replace it with `--replace`",
                fields_invalid=["name"],
            )
        target = self._manifests() / f"{made.name}.toml"
        _write(target, Path(path).read_text(encoding="utf-8"), 0o644)
        _write(target.with_suffix(".origin"), made.directory + "\n", 0o644)
        return made

    def remove(self, name: str) -> None:
        """Forget a capability, its settings and its secrets."""
        self.manifest(name)
        for suffix in (".toml", ".origin"):
            (self._manifests() / f"{name}{suffix}").unlink(missing_ok=True)
        instances = self._instances()
        for instance in [one for one, held in instances.items() if held.get("capability") == name]:
            del instances[instance]
        self._keep_instances(instances)
        secrets = self._secrets()
        if secrets.pop(name, None) is not None:
            self._keep_secrets(secrets)

    def _manifests(self) -> Path:
        return self.folder / "capabilities"

    # -------------------------------------------------------------- settings of instances

    def capability(self, instance: str) -> str:
        """The capability that an instance is one of; a name that nobody gave to one is a capability's own."""
        return self._instances().get(instance, {}).get("capability", instance)

    def is_enabled(self, instance: str) -> bool:
        """Whether work may be given to it; unless somebody switched it off, it may."""
        return self._instances().get(instance, {}).get("enabled", True) is not False

    def set_enabled(self, instance: str, on: bool, *, capability: str | None = None) -> bool:
        """Switch an instance on or off; whether that changed anything comes back."""
        changed = self.is_enabled(instance) is not on
        self._change(instance, capability or instance, enabled=on)
        return changed

    def config(self, instance: str) -> dict[str, Any]:
        """The configuration that was kept for an instance."""
        return dict(self._instances().get(instance, {}).get("config", {}))

    def set_config(self, instance: str, config: Mapping[str, Any], *, capability: str | None = None) -> None:
        """Keep a configuration. Check it first: see `failwell.jobs.schema.validate`."""
        self._change(instance, capability or instance, config=dict(config))

    def _change(self, instance: str, capability: str, **held: Any) -> None:
        check_instance(instance)
        if is_brief(capability, instance):
            # Ids that nobody chose are for one run, and what belongs to them ends with it.
            return
        instances = self._instances()
        instances[instance] = {**instances.get(instance, {}), "capability": capability, **held}
        self._keep_instances(instances)

    def _instances(self) -> dict[str, dict[str, Any]]:
        return _read(self.folder / "instances.json")

    def _keep_instances(self, held: Mapping[str, Any]) -> None:
        _write(self.folder / "instances.json", dumps(held, indent=2, sort_keys=True) + "\n", 0o600)

    # -------------------------------------------------------------- secrets

    def secrets(self, name: str) -> dict[str, str]:
        """The values of a capability's secret variables, for its worker alone."""
        return cast("dict[str, str]", dict(self._secrets().get(name, {})))

    def secret_names(self, name: str) -> list[str]:
        """Which secrets are set; their values are never shown."""
        return sorted(self._secrets().get(name, {}))

    def set_secret(self, name: str, variable: str, value: str | None) -> None:
        """Keep the value of a secret variable; `None` forgets it.

        Raises:
            CapabilityInputError: the manifest declares no such secret.
        """
        declared = [one.name for one in self.manifest(name).env if one.secret]
        if variable not in declared:
            known = ", ".join(f"`{one}`" for one in declared) or "none"
            raise CapabilityInputError(
                f"capability {name!r} declares no secret `{variable}`; it has {known}",
                fields_invalid=[variable],
            )
        secrets = self._secrets()
        own = secrets.setdefault(name, {})
        if value is None:
            own.pop(variable, None)
        else:
            own[variable] = value
        self._keep_secrets(secrets)

    def _secrets(self) -> dict[str, dict[str, Any]]:
        return _read(self.folder / "secrets.json")

    def _keep_secrets(self, held: Mapping[str, Any]) -> None:
        _write(self.folder / "secrets.json", dumps(held, indent=2, sort_keys=True) + "\n", 0o600)


def _at(path: Path, directory: str) -> Manifest:
    from tomllib import loads as read_toml

    return parse_manifest(read_toml(path.read_text(encoding="utf-8")), directory, shown=str(path))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        held: object = loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, JSONDecodeError) as error:
        raise CapabilityConfigError(f"{path} cannot be read: {error}; correct it or move it away") from error
    if not isinstance(held, dict):
        raise CapabilityConfigError(f"{path} does not hold an object; correct it or move it away")
    return cast("dict[str, dict[str, Any]]", held)


def _write(path: Path, text: str, mode: int) -> None:
    make_private(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
