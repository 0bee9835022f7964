"""What a worker is configured with: its manifest's defaults and what was asked for, checked against the schema.

A manifest with `config_strict = false` asks for leniency: keys that nobody knows are left out with a warning,
where they would be refused. Whatever is known is checked all the same.
"""

from collections.abc import Mapping
from typing import Any

from failwell.fault.capability import CapabilityConfigError
from failwell.fault.frozen import frozen
from failwell.jobs.config_schema import check_schema, validate
from failwell.jobs.manifest import Manifest, Schema
from failwell.jobs.schema_language import UnknownConfigWarning, warn_about, without_unknown


@frozen
class Settled:
    """A configuration that was checked."""

    requested: Mapping[str, Any]
    """The requested settings without the unknown keys that were dropped; this is what is stored."""
    effective: Mapping[str, Any]
    """The same with all defaults; this is what the worker is given."""
    dropped: tuple[str, ...] = ()
    """Where keys were that the schema does not know."""
    dropped_defaults: tuple[str, ...] = ()
    """The same of the manifest's own defaults."""


def settle(manifest: Manifest, schema: Schema, config: Mapping[str, Any]) -> Settled:
    """`config` as it may be used. Nobody is warned here: see `left_out`.

    Raises:
        CapabilityConfigError: something is not allowed. Every such field is named.
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
    """The configurations of one worker, one after the other; whoever gave one is warned of what it loses."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._reported: tuple[str, ...] = ()

    def settle(self, config: Mapping[str, Any], code_schema: Schema | None) -> Settled:
        """`config` by the manifest's schema, or by the capability's `own`.

        Raises:
            CapabilityConfigError: something is not allowed. Every such field is named.
        """
        schema = self._manifest.config if self._manifest.config is not None else code_schema
        settled = settle(self._manifest, schema or {}, config)
        # The manifest's own mistakes come with every start, and are told once.
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
            # Whoever takes warnings for errors wants them refused, and whoever runs the job wants to know why.
            problems = "; ".join(f"`{key}` is not known" for key in keys)
            raise CapabilityConfigError(
                f"the configuration of {name!r} is not valid: {problems}", fields_invalid=keys
            ) from warning
