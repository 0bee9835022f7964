"""The configuration of a worker: the requested settings and the manifest's defaults, checked against the schema.

With `config_strict = false` in the manifest, unknown keys are dropped with a warning instead of being refused.
Known keys are checked in either case. Every invalid field is named at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from math import isfinite
from typing import Any, cast

from failwell.errors.faults import CapabilityConfigError
from failwell.errors.frozen import frozen
from failwell.errors.missing_extra import need
from failwell.files.suggestions import unknown_word
from failwell.jobs.faults import invalid_config
from failwell.jobs.manifest import Manifest, Schema
from failwell.jobs.settings_schema import (
    Mistake,
    Steps,
    UnknownConfigWarning,
    path_text,
    schema_mistakes,
    unknown_keys,
    warn_about,
    without_unknown,
)


def validate(schema: Schema, config: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """A copy of `config` with the schema's defaults.

    Args:
        schema: The schema, which `check_schema` has accepted; an empty one allows everything.
        config: The configuration.
        name: The capability, for the message.

    Raises:
        CapabilityConfigError: a value is not valid or a key is unknown; every such field is named.
    """
    values = _with_defaults(schema, deepcopy(dict(config)))
    mistakes = [(path_text(steps), words) for steps, words in _mistakes(schema, values, name)]
    places = {place for place, _ in mistakes}
    properties = schema.get("properties") or ()
    mistakes += [
        (key, unknown_word(key, properties)) for key in unknown_keys(schema, config) if key not in places
    ]
    if mistakes:
        raise invalid_config(
            f"the configuration of {name!r} is not valid",
            [(place or "config", what) for place, what in mistakes],
            config_class_name=str(schema.get("title") or ""),
        )
    return values


def check_schema(schema: Schema, *, name: str) -> None:
    """Refuse a schema with mistakes, or with keywords that are not supported.

    Raises:
        CapabilityConfigError: the schema is not valid; every mistake is named.
    """
    _refuse(schema, schema_mistakes(schema), name)


def _refuse(schema: Schema, mistakes: Sequence[Mistake], name: str) -> None:
    if mistakes:
        raise invalid_config(
            f"the configuration schema of {name!r} is not valid",
            [(path_text(("config", *steps)), words) for steps, words in mistakes],
            config_class_name=str(schema.get("title") or ""),
        )


def config_hash(config: Mapping[str, Any]) -> str:
    """A hash of a capability's configuration that does not depend on the order of its keys."""
    from hashlib import sha256
    from json import dumps

    canonical = dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return f"sha256:{sha256(canonical.encode()).hexdigest()}"


def _with_defaults(schema: Schema, values: dict[str, Any]) -> dict[str, Any]:
    for key, below in cast("Mapping[str, Schema]", schema.get("properties") or {}).items():
        if key not in values and "default" in below:
            values[key] = deepcopy(below["default"])
        elif isinstance(values.get(key), dict) and "properties" in below:
            values[key] = _with_defaults(below, values[key])
    return values


# ---------------------------------------------------------------- errors of jsonschema-rs as messages


def _mistakes(schema: Schema, config: Mapping[str, Any], name: str) -> Iterator[Mistake]:
    need("jsonschema_rs", "engine")
    from jsonschema_rs import Draft202012Validator, ValidationError

    # `$schema` and `$id` are notes here, and must not be fetched.
    rules = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
    try:
        validator = Draft202012Validator(rules)
    except (ValidationError, ValueError) as error:
        _refuse(schema, [((), f"cannot be used: {str(error).splitlines()[0][:200]}")], name)
        return
    yield from mistakes_of(validator.iter_errors(_as_json(config)), config, _not_this)


ValueNote = Callable[[str, Any], str]
"""Keyword, value → what a message says about the value; it may be empty."""


def _not_this(_keyword: str, value: Any) -> str:
    return f", not {_short(value)}"


def mistakes_of(errors: Iterable[Any], config: Any, note: ValueNote) -> Iterator[Mistake]:
    """The errors as places and messages. A value of the wrong type gets no further message."""
    collected = list(errors)
    mistyped = {tuple(error.instance_path) for error in collected if error.kind.name == "type"}
    for error in collected:
        steps: Steps = tuple(error.instance_path)
        keyword: str = error.kind.name
        if keyword == "type" or steps not in mistyped:
            yield from _mistake_of(keyword, error, steps, config, note)


def _mistake_of(keyword: str, error: Any, steps: Steps, config: Any, note: ValueNote) -> Iterator[Mistake]:
    value = _value_at(steps, config)
    limit = error.kind.value
    if isinstance(value, float) and not isfinite(value):
        yield steps, "must be a finite number"
    elif keyword == "required":
        yield (*steps, limit), "is missing"
    elif keyword == "additionalProperties":
        yield from (((*steps, key), "is not known") for key in limit)
    elif keyword in ("anyOf", "oneOf"):
        yield from _forms(error, steps, value, config, note)
    elif keyword in _MESSAGES:
        yield steps, _MESSAGES[keyword](limit) + (note(keyword, value) if keyword in _WITH_VALUE else "")
    else:
        yield steps, "is not known" if keyword == "falseSchema" else f"breaks the rule `{keyword}`"


def _forms(error: Any, steps: Steps, value: Any, config: Any, note: ValueNote) -> Iterator[Mistake]:
    """Of several forms, the only one with the value's type is used, such as the object of "an object or null"."""
    branches: list[list[Any]] = error.kind.context
    if not all(branches):
        yield steps, f"must fit one of its allowed forms only{note('oneOf', value)}"
        return
    candidates = [
        branch
        for branch in branches
        if not any(inner.kind.name == "type" and tuple(inner.instance_path) == steps for inner in branch)
    ]
    if len(candidates) == 1:
        yield from mistakes_of(candidates[0], config, note)
    else:
        names = [name for branch in branches for inner in branch for name in _type_names(inner, steps)]
        yield steps, f"must be {_types(names) or 'one of its allowed forms'}{note('type', value)}"


def _type_names(error: Any, steps: Steps) -> Sequence[str]:
    return error.kind.value if error.kind.name == "type" and tuple(error.instance_path) == steps else ()


_MESSAGES: dict[str, Callable[[Any], str]] = {
    "type": lambda limit: f"must be {_types(limit)}",
    "enum": lambda limit: f"must be one of {', '.join(map(_short, limit))}",
    "const": lambda limit: f"must be {_short(limit)}",
    "minimum": lambda limit: f"must be at least {limit}",
    "maximum": lambda limit: f"must be at most {limit}",
    "exclusiveMinimum": lambda limit: f"must be more than {limit}",
    "exclusiveMaximum": lambda limit: f"must be less than {limit}",
    "multipleOf": lambda limit: f"must be a multiple of {limit}",
    "minLength": lambda limit: f"must have at least {limit} characters",
    "maxLength": lambda limit: f"must have at most {limit} characters",
    "pattern": lambda limit: f"must match `{limit}`",
    "minItems": lambda limit: f"must have at least {limit} items",
    "maxItems": lambda limit: f"must have at most {limit} items",
    "uniqueItems": lambda _limit: "must not hold the same item twice",
}
_WITH_VALUE = frozenset(
    {"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)
"""Keywords whose messages say what the value is."""


def _value_at(steps: Steps, config: Any) -> Any:
    value: Any = config
    for step in steps:
        inner: Any = value[step] if isinstance(step, int) else value.get(step)
        value = inner
    return value


def _as_json(value: Any) -> Any:
    """The value as JSON for jsonschema-rs; other objects become null."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in cast("list[Any]", value)]
    return value if isinstance(value, str | int | float | None) else None


def _types(names: Sequence[str]) -> str:
    words = [type_text(name) for name in names]
    return " or ".join(dict.fromkeys(words))


def type_text(name: str) -> str:
    """A type of JSON with its article."""
    return name if name == "null" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


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
