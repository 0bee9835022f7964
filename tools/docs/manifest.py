"""The page of manifests: every key, from the shape that manifests are read by."""

from collections.abc import Iterable, Iterator

from failwell.files.shapes import Key
from tools.docs.workflow import value_words

_FILE, _ENV, _RESOURCES = "", "env.", "resources."


def manifest_page() -> str:
    """One table for each part of a manifest, and what its schema of settings may say."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    from failwell.jobs.platform import ACCELERATORS, PLATFORMS
    from failwell.jobs.settings_schema import CHECKS, NOTES, TYPES
    from failwell.jobs.workers.startup import ALWAYS, NEVER

    yield from (
        "# The manifest",
        "",
        "Every key of a capability's manifest, as `failwell capabilities check` knows it. Manifests are TOML; a key that is not",
        "listed is a mistake, and every mistake is named at once, with its line and column. See",
        "[the guide](../guides/capabilities.md) for what to do with them. For a class or a function, `Runtime.register` takes",
        "the same as arguments, with `Resources` and `Variable` of `failwell.jobs.manifest` for the tables.",
        "",
        "## The file",
        "",
    )
    yield from _table(_FILE)
    yield from (
        "",
        "## [env]",
        "",
        "A worker does not see the host's environment. It is given these variables of the host's, what `inherit` names, and",
        f"what stands in this table: {_listed(ALWAYS)}. {_listed(NEVER)} are never passed on.",
        "",
    )
    yield from _table(_ENV)
    yield from (
        "",
        "## [resources]",
        "",
        "Yes or no: amounts are measured, never declared. What cannot run on a machine is refused there with",
        "`tool.unavailable`, by `capabilities check`, when it is registered with a runtime and when a job is submitted.",
        "",
    )
    yield from _table(_RESOURCES)
    yield from ("", "| accelerator | what that is |", "| --- | --- |")
    yield from (f"| `{name}` | {says} |" for name, says in ACCELERATORS.items())
    yield from (
        "",
        f"Platforms are {_listed(PLATFORMS)}; a machine of another kind is called `system-machine`, as Python's `platform`",
        "names them, in small letters. On Linux an accelerator is looked for by its driver's device files, else by `nvidia-ml-py`. Where neither",
        "can tell, nothing is refused, and `capabilities check` says that it could not be seen.",
        "",
        "## [config]",
        "",
        "The settings as JSON Schema, `[config.properties.NAME]` for each. Left out, the schema that the code has is used: its",
        "`config_schema`, or that of its dataclass `Config`. A schema that says more than this is refused:",
        "",
        f"- types: {_listed(TYPES)}",
        f"- checks: {_listed(sorted(CHECKS))}",
        f"- notes, which check nothing: {_listed(sorted(NOTES))}, and whatever begins with `x-`",
        "",
        "A `$ref` leads to a place in the same schema. A table with `properties` takes no others unless",
        "`additionalProperties` says so.",
    )


def manifest_keys() -> Iterator[tuple[str, Key]]:
    """Every key of a manifest with the tables it stands in, such as `resources.gpu`; `NAME` is the author's own."""
    from failwell.jobs.manifest_file import MANIFEST, RESOURCES, VARIABLE

    for name, key in MANIFEST.keys.items():
        if name == "resources":
            yield from ((f"{_RESOURCES}{inner}", held) for inner, held in RESOURCES.keys.items())
        elif name == "env":
            yield f"{_ENV}NAME", key
            yield from ((f"{_ENV}NAME.{inner}", held) for inner, held in VARIABLE.keys.items())
        else:
            yield name, key


def _table(prefix: str) -> Iterator[str]:
    yield "| key | value | must | otherwise | what it says |"
    yield "| --- | --- | --- | --- | --- |"
    for name, key in manifest_keys():
        is_below = name.startswith((_ENV, _RESOURCES))
        if name.startswith(prefix) if prefix else not is_below:
            form = "text or table" if name == f"{_ENV}NAME" else value_words(key.type.schema())
            must = "yes" if key.is_required else ""
            yield f"| `{name}` | {form} | {must} | {key.otherwise} | {key.about} |"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
