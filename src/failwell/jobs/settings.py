"""The configuration of a worker: the requested settings and the manifest's defaults, checked against the schema.

With `config_strict = false` in the manifest, unknown keys are dropped with a warning instead of being refused.
Known keys are checked in either case.
"""

from collections.abc import Mapping
from typing import Any

from failwell.errors.faults__capability import CapabilityConfigError
from failwell.errors.frozen import frozen
from failwell.jobs.manifest import Manifest, Schema
from failwell.jobs.settings__config_schema import check_schema, validate
from failwell.jobs.settings_schema import UnknownConfigWarning, warn_about, without_unknown


@frozen
class Settled:
    """A checked configuration."""

    requested: Mapping[str, Any]
    """The requested settings without the unknown keys that were dropped; this is what is stored."""
    effective: Mapping[str, Any]
    """The same with all defaults; this is what the worker gets."""
    dropped: tuple[str, ...] = ()
    """The places of dropped keys."""
    dropped_defaults: tuple[str, ...] = ()
    """The places of keys that were dropped from the manifest's defaults."""


def settle(manifest: Manifest, schema: Schema, config: Mapping[str, Any]) -> Settled:
    """Check `config` and add the defaults. This does not warn; the caller reports dropped keys.

    Raises:
        CapabilityConfigError: it is not valid; every invalid field is named.
    """
    check_schema(schema, name=manifest.name)
    requested, dropped = dict(config), list[str]()
    defaults, dropped_defaults = dict(manifest.defaults or {}), list[str]()
    if not manifest.config_strict:
        requested, dropped = without_unknown(schema, requested)
        defaults, dropped_defaults = without_unknown(schema, defaults)
    effective = validate(schema, {**defaults, **requested}, name=manifest.name)
    return Settled(
        requested=requested,
        effective=effective,
        dropped=tuple(dropped),
        dropped_defaults=tuple(dropped_defaults),
    )


class Settings:
    """Checks the successive configurations of one worker, and warns about dropped keys."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._reported: tuple[str, ...] = ()

    def settle(self, config: Mapping[str, Any], code_schema: Schema | None) -> Settled:
        """Check `config` against the manifest's schema, or else against that of the code.

        Raises:
            CapabilityConfigError: it is not valid; every invalid field is named.
        """
        schema = self._manifest.config if self._manifest.config is not None else code_schema
        settled = settle(self._manifest, schema or {}, config)
        # Dropped defaults of the manifest recur with every start; they are reported once.
        new_defaults = () if settled.dropped_defaults == self._reported else settled.dropped_defaults
        if settled.dropped or new_defaults:
            self._warn(sorted({*settled.dropped, *new_defaults}))
        self._reported = settled.dropped_defaults
        return settled

    def _warn(self, keys: list[str]) -> None:
        name = self._manifest.name
        try:
            warn_about(name, keys)
        except UnknownConfigWarning as warning:
            # Warnings are turned into errors: the unknown keys are refused, and the job has to say why.
            problems = "; ".join(f"`{key}` is not known" for key in keys)
            raise CapabilityConfigError(
                f"the configuration of {name!r} is not valid: {problems}", fields_invalid=keys
            ) from warning
