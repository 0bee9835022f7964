"""A capability's manifest: what it is, which interpreter runs it, what it may see and what it needs.

Written as TOML by a person:

    name = "transcribe"
    object = "transcriber:Transcriber"      # a class, a function or an instance in that module
    python = "/opt/asr/bin/python"          # or: venv = "/opt/asr"; left out, the host's own interpreter
    path = ["."]                            # added to the module path, relative to this file

    [env]
    MODEL_DIR = "/models"
    HF_TOKEN = { secret = true, required = true }

    [resources]
    gpu = true
    accelerators = ["cuda"]

    [config.properties.model]
    type = "string"
    enum = ["small", "large"]

Every mistake in a manifest is named at once, in one error.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from failwell.fault.capability import CapabilityConfigError, CapabilityInputError
from failwell.fault.frozen import frozen
from failwell.jobs.faults import mistaken
from failwell.jobs.manifest_keys import keys_below, not_known
from failwell.jobs.platform import Resources, wrong_needs
from failwell.jobs.schema_shape import wrong_in_schema

Schema = Mapping[str, Any]
"""A JSON Schema, of the part of that language that `failwell.jobs.schema` understands."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_NAMED = re.compile(r"env\..+\.")


@frozen
class Variable:
    """One environment variable that the worker is given."""

    name: str
    value: str | None = None
    secret: bool = False
    """Its value comes from the secrets of this capability, and is masked in what the capability says: its errors,
    its progress, its lines. What a job is given and what it returns is kept as it is."""
    required: bool = False


@frozen
class Manifest:
    """One capability as it was registered. Immutable; see `failwell.jobs.registry` for where they are kept."""

    name: str
    """1–64 letters, digits, `_` and `-`."""
    object: str
    """`module:attribute`."""
    python: str = sys.executable
    """The interpreter's path."""
    path: tuple[str, ...] = ()
    version: str = ""
    description: str = ""
    env: tuple[Variable, ...] = ()
    inherit: tuple[str, ...] = ()
    """Further variables of the host, as shell patterns, beside the few every worker gets."""
    resources: Resources = field(default_factory=Resources)
    config: Schema | None = None
    """Schema of the configuration. Left out, the capability's own is asked for when it is loaded."""
    defaults: Mapping[str, Any] | None = None
    config_strict: bool = True
    """Whether keys of a configuration that its schema does not know are refused; else they are left out, with
    an `UnknownConfigWarning`."""
    concurrency: int = 1
    """How many calls one process takes at a time."""
    stall_after: float = 60.0
    """Seconds without a sign of progress after which a starting worker is given up."""
    cancel_grace: float = 3.0
    """Seconds a call has to stop after it was asked to."""
    stop_grace: float = 5.0
    """Seconds `cleanup` has before the process is ended."""
    directory: str = "."
    """Where the manifest lies; relative paths in it start there."""


def check_instance(instance: str) -> str:
    """`instance` itself, if it may be the id of one.

    Raises:
        CapabilityInputError: it may not.
    """
    if _NAME.fullmatch(instance) is None:
        raise CapabilityInputError(
            f"{instance[:80]!r} cannot be an instance's id: use 1 to 64 letters, digits, `_` and `-`",
            fields_invalid=["instance"],
        )
    return instance


def new_instance(name: str) -> str:
    """An id for a further instance of a capability. It is for this run alone and is never kept."""
    return check_instance(f"{name[:57]}-{os.urandom(3).hex()}")


_BRIEF = re.compile(r".+-[0-9a-f]{6}")


def is_brief(name: str, instance: str) -> bool:
    """Whether `instance` is one that `new_instance` made."""
    return instance != name and instance.startswith(name[:57]) and _BRIEF.fullmatch(instance) is not None


def read_manifest(path: str | os.PathLike[str], directory: str | None = None) -> Manifest:
    """The manifest in a TOML file; relative paths in it start where it lies, or at `directory`.

    Raises:
        CapabilityConfigError: it cannot be read, or something in it is wrong; every such key is named.
    """
    from tomllib import TOMLDecodeError, loads

    file = Path(path)
    try:
        written = loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise _unreadable(f"there is no manifest {file}", "give the path of a TOML file") from error
    except OSError as error:
        words = (error.strerror or str(error)).lower()
        raise _unreadable(f"the manifest {file} cannot be read: {words}", "let this user read it") from error
    except UnicodeDecodeError as error:
        raise _unreadable(f"the manifest {file} is not text: {error}", "give a TOML file in UTF-8") from error
    except TOMLDecodeError as error:
        raise _unreadable(f"the manifest {file} is not TOML: {error}", "correct it at that place") from error
    return parse_manifest(written, directory or str(file.resolve().parent), shown=str(file))


def _unreadable(message: str, cure: str) -> CapabilityConfigError:
    from failwell.fault.axes import ActionKind
    from failwell.fault.facts import UserAction

    return CapabilityConfigError(message, user_action=UserAction(ActionKind.FIX_CONFIGURATION, cure))


def parse_manifest(written: Mapping[str, Any], directory: str = ".", *, shown: str = "manifest") -> Manifest:
    """The manifest that `written` says; relative paths start at `directory`.

    Raises:
        CapabilityConfigError: something in it is wrong; every such key is named.
    """
    found = _Reading(written)
    interpreter = _interpreter(found, directory)
    made = Manifest(
        name=found.text("name", _is_name, "1 to 64 letters, digits, `_` and `-`", required=True),
        object=found.text("object", _is_target, "`module:attribute`", required=True),
        python=interpreter,
        path=found.texts("path") or (".",),
        version=found.text("version"),
        description=found.text("description"),
        env=_variables(found),
        inherit=found.texts("inherit"),
        resources=_resources(found),
        config=_config(found),
        defaults=found.table("defaults"),
        config_strict=found.flag("config_strict", default=True),
        concurrency=int(found.number("concurrency", 1, at_least=1, whole=True)),
        stall_after=found.number("stall_after", 60.0),
        cancel_grace=found.number("cancel_grace", 3.0, at_least=0),
        stop_grace=found.number("stop_grace", 5.0, at_least=0),
        directory=directory,
    )
    found.refuse_the_rest()
    if found.wrong:
        raise mistaken(f"{shown} is not a valid manifest", found.wrong)
    return made


class _Reading:
    """Takes keys out of a table and notes whatever is wrong with them."""

    def __init__(self, written: Mapping[str, Any], prefix: str = "") -> None:
        self._left = dict(written)
        self._prefix = prefix
        self.wrong: list[tuple[str, str]] = []

    def text(
        self,
        key: str,
        fits: Callable[[str], bool] | None = None,
        form: str = "a text",
        *,
        required: bool = False,
    ) -> str:
        value = self._left.pop(key, None)
        if value is None:
            if required:
                self._note(key, "is missing")
            return ""
        if not isinstance(value, str) or (fits is not None and not fits(value)):
            self._note(key, f"must be {form}, not {value!r}")
            return ""
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._left.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in cast("list[Any]", value)):
            self._note(key, "must be a list of texts")
            return ()
        return tuple(cast("list[str]", value))

    def number(
        self, key: str, default: float, *, at_least: float | None = None, whole: bool = False
    ) -> float:
        value = self._left.pop(key, default)
        is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not is_number or (value < at_least if at_least is not None else value <= 0):
            floor = f"at least {at_least}" if at_least is not None else "more than 0"
            self._note(key, f"must be a {'whole ' if whole else ''}number of {floor}, not {value!r}")
            return default
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self._left.pop(key, default)
        if not isinstance(value, bool):
            self._note(key, "must be true or false")
            return default
        return value

    def table(self, key: str) -> Mapping[str, Any] | None:
        value = self._left.pop(key, None)
        if value is not None and not isinstance(value, dict):
            self._note(key, "must be a table")
            return None
        return cast("Mapping[str, Any] | None", value)

    def below(self, key: str) -> "_Reading":
        return _Reading(self.table(key) or {}, f"{key}.")

    def take(self, other: "_Reading") -> None:
        """Note what is wrong in a table below, too."""
        other.refuse_the_rest()
        self.wrong += other.wrong

    def refuse_the_rest(self) -> None:
        known = keys_below(_NAMED.sub("env.NAME.", self._prefix))
        for key in self._left:
            self._note(key, not_known(key, known))
        self._left.clear()

    def items(self) -> list[tuple[str, Any]]:
        held, self._left = list(self._left.items()), {}
        return held

    def has(self, key: str) -> bool:
        return key in self._left

    def _note(self, key: str, what: str) -> None:
        self.note(f"{self._prefix}{key}", what)

    def note(self, key: str, what: str) -> None:
        self.wrong.append((key, what))


def _is_name(value: str) -> bool:
    return _NAME.fullmatch(value) is not None


def _is_target(value: str) -> bool:
    return _TARGET.fullmatch(value) is not None


def _interpreter(found: _Reading, directory: str) -> str:
    both = found.has("python") and found.has("venv")
    python, venv = found.text("python"), found.text("venv")
    if both:
        found.note("venv", "cannot stand beside `python`: name one of them")
    if venv:
        python = str(Path(venv) / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if not python:
        return sys.executable
    if os.sep not in python:
        from shutil import which

        return which(python) or python
    # Not resolved: the link to the interpreter is what makes an environment of it.
    return os.path.join(directory, os.path.expanduser(python))


def _resources(found: _Reading) -> Resources:
    below = found.below("resources")
    made = Resources(
        gpu=below.flag("gpu"), accelerators=below.texts("accelerators"), platforms=below.texts("platforms")
    )
    for key, what in wrong_needs(made):
        below.note(key, what)
    found.take(below)
    return made


def _config(found: _Reading) -> Schema | None:
    schema = found.table("config")
    for place, what in wrong_in_schema(schema or {}, "config"):
        found.note(place, what)
    return schema


def _variables(found: _Reading) -> tuple[Variable, ...]:
    made: list[Variable] = []
    for name, value in found.below("env").items():
        if isinstance(value, str):
            made.append(Variable(name=name, value=value))
        elif isinstance(value, dict):
            below = _Reading(cast("dict[str, Any]", value), f"env.{name}.")
            held = below.text("value") if below.has("value") else None
            variable = Variable(
                name=name, value=held, secret=below.flag("secret"), required=below.flag("required")
            )
            if variable.secret and held is not None:
                below.note(f"env.{name}", "is a secret and must not be written into the manifest")
            found.take(below)
            made.append(variable)
        else:
            found.note(f"env.{name}", "must be a text or a table")
    return tuple(made)


def manifest_of(what: type | Callable[..., Any], **fields: Any) -> Manifest:
    """The manifest of a class or a function, so that a worker of the same interpreter can import it.

    Raises:
        CapabilityInputError: a worker could not find it.
    """
    module, name = what.__module__, what.__qualname__
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if file is None or "<" in name:
        raise CapabilityInputError(
            f"`{name}` cannot be imported by a worker: put it at the top of a module in a file",
            fields_invalid=["what"],
        )
    path = Path(file).resolve()
    if module == "__main__":
        spec = getattr(loaded, "__spec__", None)
        module = path.stem if spec is None else spec.name
    place = path.parents[module.count(".") + (path.stem == "__init__")]
    marked: dict[str, str] = getattr(what, "__failwell__", {})
    known: dict[str, Any] = {
        "name": marked.get("name") or name.rpartition(".")[2].lower(),
        "version": marked.get("version", ""),
        "path": (str(place),),
    }
    return Manifest(object=f"{module}:{name}", **{**known, **fields})
