"""Reads manifests from TOML. Every mistake is named in one error, with its line and column.

name = "transcribe"
object = "transcriber:Transcriber"      # a class, a function or an instance in that module
python = "/opt/asr/bin/python"          # or: venv = "/opt/asr"; without either, the host's interpreter
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
"""

import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from json import dumps
from pathlib import Path
from typing import Any, cast

from failwell.errors.faults import CapabilityConfigError
from failwell.errors.report import TracebackPolicy
from failwell.files.documents import Document, read_document, read_values
from failwell.files.item_tree import Item, is_map
from failwell.files.item_tree import Path as ItemPath
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import ByType, Converted, Key, ListOf, MapOf, Shape
from failwell.files.suggestions import not_one_of
from failwell.files.value_types import INVALID, AnyJson, Choice, Flag, Number, Text
from failwell.files.value_types import Schema as JsonSchema
from failwell.jobs.manifest import Manifest, Variable
from failwell.jobs.platform import ACCELERATORS, PLATFORMS, Resources, platform_name
from failwell.jobs.rate_limit import PATTERN
from failwell.jobs.schedule_spec import (
    MISSED,
    MOST_MISSED,
    ScheduleSpec,
    cron_mistake,
    timezone_mistake,
)
from failwell.jobs.settings_schema import path_text, schema_mistakes

_INDEX = re.compile(r"\[\d+\]$")
_TEXT = Text(allow_empty=True)
_TEXTS = ListOf(_TEXT)


_LARGEST = 1024 * 1024
"""Bytes that a manifest may have."""


def read_manifest(path: str | os.PathLike[str], directory: str | None = None) -> Manifest:
    """The manifest in a TOML file. Relative paths in it start at its folder, or at `directory`.

    Raises:
        CapabilityConfigError: it cannot be read, or has mistakes; each is named with its line and column.
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except FileNotFoundError as error:
        raise _unreadable(f"there is no manifest {file}", "give the path of a TOML file") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _unreadable(f"the manifest {file} cannot be read: {reason}", "let this user read it") from error
    if len(content) > _LARGEST:
        raise _unreadable(
            f"the manifest {file} has more than {_LARGEST:,} bytes",
            "give the path of a TOML file of a capability",
        )
    document = read_document(content, str(file), MANIFEST)
    if document.mistakes and not document.fields:
        mistake = document.mistakes[0]
        message = mistake.message.replace("the file is not", f"the manifest {file} is not")
        place = mistake.place
        position = "" if place is None else f" (line {place.line}, column {place.column})"
        raise _unreadable(f"{message}{position}", mistake.hint)
    return _manifest_or_refusal(document, directory or str(file.resolve().parent), str(file))


def parse_manifest(values: Mapping[str, Any], directory: str = ".", *, shown: str = "manifest") -> Manifest:
    """The manifest of a mapping; relative paths in it start at `directory`.

    Raises:
        CapabilityConfigError: it has mistakes; every such key is named.
    """
    return _manifest_or_refusal(read_values(values, MANIFEST), directory, shown)


def to_toml(values: Mapping[str, Any]) -> str:
    """The values of a manifest as the text of a file."""
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in values.items())


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return f"{{ {', '.join(f'{dumps(key)} = {_toml_value(item)}' for key, item in table.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, cast('list[Any]', value)))}]"
    # Texts, numbers, true and false are written as in JSON.
    return dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _unreadable(message: str, advice: str) -> CapabilityConfigError:
    from failwell.errors.axes import ActionKind
    from failwell.errors.facts import UserAction

    return CapabilityConfigError(message, user_action=UserAction(ActionKind.FIX_CONFIGURATION, advice))


def _manifest_or_refusal(document: Document, directory: str, source: str) -> Manifest:
    values: dict[str, Any] | None = document.value
    if values is None:
        raise CapabilityConfigError(
            f"{source} is not a valid manifest: {'; '.join(document.lines)}",
            fields_invalid=sorted({_INDEX.sub("", field) for field in document.fields}),
            details={"mistakes": document.lines},
        )
    fields: dict[str, Any] = {"path": (".",), **values}
    for key in ("python", "venv", "env"):
        fields.pop(key, None)
    return Manifest(
        **fields,
        env=tuple(values.get("env", {}).values()),
        python=_interpreter(values.get("python", ""), values.get("venv", ""), directory),
        directory=directory,
    )


def _interpreter(python: str, venv: str, directory: str) -> str:
    if venv:
        python = str(Path(venv) / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if not python:
        return sys.executable
    if os.sep not in python:
        from shutil import which

        return which(python) or python
    # The link is not resolved: a virtual environment is recognised by the path of its interpreter.
    return os.path.join(directory, os.path.expanduser(python))


# ---------------------------------------------------------------- [env]


def _plain_variable(value: str, _item: Item, path: ItemPath, _on: MistakeLog) -> Variable:
    return Variable(name=path[1], value=value)


def _check_variable(values: dict[str, Any], item: Item, path: ItemPath, log: MistakeLog) -> None:
    if values.get("secret") is True and "value" in values:
        message = f"`{path[1]}` is a secret and must not be written into the manifest"
        log.add_at(item, path, message, hint="keep it with `failwell capabilities secret`")


def _variable(values: dict[str, Any], _item: Item, path: ItemPath, _on: MistakeLog) -> Variable:
    return Variable(name=path[1], **values)


VARIABLE = Shape(
    "a variable",
    {
        "value": Key(_TEXT, "its value; without it, the host's variable of that name"),
        "secret": Key(
            Flag(),
            "its value is set with `failwell capabilities secret`, not in the manifest, and is masked in what is recorded",
            otherwise="`false`",
        ),
        "required": Key(Flag(), "the worker is not started without a value", otherwise="`false`"),
    },
    check=_check_variable,
    make=_variable,
)

# ---------------------------------------------------------------- [resources]


def _policy(value: str, _item: Item, _at: ItemPath, _on: MistakeLog) -> TracebackPolicy:
    return TracebackPolicy(value)


def _words(words: Iterable[str]) -> ListOf:
    names = list(dict.fromkeys(words))

    def one_of(value: str, item: Item, path: ItemPath, log: MistakeLog) -> Any:
        if value in names:
            return value
        (holder, _index) = path
        log.add_at(item, holder, f"`{holder[1]}` {not_one_of(value, names)}")
        return INVALID

    return ListOf(Converted(_TEXT, one_of))


def _resources(values: dict[str, Any], _item: Item, _at: ItemPath, _on: MistakeLog) -> Resources:
    return Resources(**values)


RESOURCES = Shape(
    "`resources`",
    {
        "gpu": Key(
            Flag(),
            "it uses a GPU, so its jobs are admitted by the memory of the GPU too",
            otherwise="`false`",
        ),
        "accelerators": Key(
            _words(ACCELERATORS),
            "the accelerators that it can use; it is refused on a machine that has none of them",
            otherwise="any",
        ),
        "platforms": Key(
            # The platform of this machine is always allowed, however rare it is.
            _words((*PLATFORMS, platform_name(platform.system(), platform.machine()))),
            "the platforms that it can run on; it is refused on any other",
            otherwise="any",
        ),
    },
    make=_resources,
)

# ---------------------------------------------------------------- [[schedule]]


def _cron(value: str, item: Item, path: ItemPath, log: MistakeLog) -> Any:
    return _checked_text(value, cron_mistake(value), item, path, log, f"`cron` `{value}` is not valid: ")


def _timezone(value: str, item: Item, path: ItemPath, log: MistakeLog) -> Any:
    return _checked_text(value, timezone_mistake(value), item, path, log, "")


def _checked_text(
    value: str, mistake: str | None, item: Item, path: ItemPath, log: MistakeLog, start: str
) -> Any:
    if mistake is None:
        return value
    log.add_at(item, path, f"{start}{mistake}")
    return INVALID


def _schedule(values: dict[str, Any], _item: Item, _at: ItemPath, _on: MistakeLog) -> ScheduleSpec:
    return ScheduleSpec(**values)


def _schedules(values: Any, item: Item, path: ItemPath, log: MistakeLog) -> Any:
    schedules = cast("list[ScheduleSpec]", values)
    names = [schedule.name for schedule in schedules]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        log.add_at(item, path, f"two schedules are called `{twice}`")
        return INVALID
    return tuple(schedules)


SCHEDULE = Shape(
    "a schedule",
    {
        "name": Key(
            Text(r"[A-Za-z0-9_-]{1,64}", "1 to 64 letters, digits, `_` and `-`"),
            "its name, unique within the capability",
            required=True,
        ),
        "cron": Key(
            Converted(_TEXT, _cron),
            "when: minute, hour, day of the month, month and day of the week, as in a crontab",
            required=True,
        ),
        "timezone": Key(
            Converted(_TEXT, _timezone), "the time zone of `cron`, such as `Europe/Berlin`", otherwise="`UTC`"
        ),
        "arguments": Key(MapOf(AnyJson()), "the arguments of the job"),
        "action": Key(_TEXT, "the method of the capability", otherwise="`execute`"),
        "priority": Key(Number(integer=True), "the priority of the job", otherwise="`0`"),
        "missed": Key(
            Choice(*MISSED),
            "what happens to times that passed while no host ran: `skip` them, submit one job for all of them (`once`), or"
            " one for each (`all`)",
            otherwise="`once`",
        ),
        "most_missed": Key(
            Number(1, integer=True),
            'with `missed = "all"`: how many of them at most, the latest',
            otherwise=f"`{MOST_MISSED}`",
        ),
    },
    make=_schedule,
)

# ---------------------------------------------------------------- the file


class ConfigSchema:
    """A table of a manifest with a JSON Schema of the supported part of the language."""

    def read(self, item: Item, path: ItemPath, log: MistakeLog) -> Any:
        schema: Any = item.plain()
        if not is_map(item.value):
            log.add_at(item, path, "`config` must be a table", hint="write `[config.properties.NAME]`")
            return INVALID
        mistakes = schema_mistakes(schema)
        for steps, words in mistakes:
            inner = item
            for step in steps:
                inner = inner.value[step]
            inner_path = path_text(("config", *steps))
            log.add(f"`{inner_path}` {words}", inner.place, inner_path)
        return INVALID if mistakes else schema

    def schema(self) -> JsonSchema:
        return {"type": "object"}


MANIFEST = Shape(
    "a manifest",
    {
        "name": Key(
            Text(r"[A-Za-z0-9_-]{1,64}", "1 to 64 letters, digits, `_` and `-`"),
            "the name of the capability: 1 to 64 letters, digits, `_` and `-`",
            required=True,
        ),
        "object": Key(
            Text(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", "`module:attribute`"),
            "`module:attribute`, where the attribute is a class, a function or an instance",
            required=True,
        ),
        "python": Key(
            _TEXT,
            "the interpreter, Python 3.11 or newer: a path, relative to the manifest, or a program on `PATH`",
            otherwise="the host's",
        ),
        "venv": Key(_TEXT, "a virtual environment, relative to the manifest; instead of `python`"),
        "path": Key(
            _TEXTS,
            "folders that are added to the module path, relative to the manifest",
            otherwise='`["."]`',
        ),
        "version": Key(_TEXT, "its version; `capabilities check` warns if the code has another"),
        "description": Key(_TEXT, "what it does, for `capabilities list`"),
        "inherit": Key(
            _TEXTS,
            'further variables of the host that the worker gets, as names or shell patterns such as `"HF_*"`',
            otherwise="`[]`",
        ),
        "memory_limit": Key(
            Number(above=0),
            "megabytes of main memory that its worker may use, with everything that it starts; a worker that uses more"
            " is ended",
            otherwise="none, and its share of the memory until it is measured",
        ),
        "timeout": Key(
            ByType('a number of seconds or "none"', number=Number(above=0), text=Choice("none")),
            'seconds that one attempt at a job may run, where the job does not say; `"none"` for no limit',
            otherwise="3600, an hour",
        ),
        "schedule": Key(
            Converted(ListOf(SCHEDULE), _schedules),
            "a job that is submitted at the times of a cron expression",
        ),
        "rate_limit": Key(
            Text(PATTERN, "a rate such as `5/s`, `10/min`, `100/h` or `1000/d`"),
            "how often its jobs may start, over all its instances and hosts; starts come evenly",
            otherwise="no limit",
        ),
        "rate_burst": Key(
            Number(1, integer=True),
            "how many jobs may start at once after a pause, with `rate_limit`",
            otherwise="`1`",
        ),
        "concurrency": Key(
            Number(1, integer=True), "how many jobs one process runs at a time", otherwise="`1`"
        ),
        "stall_after": Key(
            Number(above=0),
            "seconds without a sign of progress after which a starting worker is killed; a start that shows progress"
            " has no time limit",
            otherwise="`60`",
        ),
        "cancel_grace": Key(
            Number(0),
            "seconds that a cancelled job has to stop before its process is replaced",
            otherwise="`3`",
        ),
        "stop_grace": Key(
            Number(0), "seconds that `cleanup` has before the process is killed", otherwise="`5`"
        ),
        "traceback": Key(
            Converted(Choice(*TracebackPolicy), _policy),
            "how much of the text of foreign exceptions, and of stderr, the reports of its failures keep; types, files"
            " and lines are always kept",
            otherwise="what the host's `FAILWELL_TRACEBACK` says, which also overrides this key; else `strict`",
        ),
        "config_strict": Key(
            Flag(),
            "whether unknown settings are refused; if not, they are dropped with a warning",
            otherwise="`true`",
        ),
        "config": Key(
            ConfigSchema(), "the schema of its settings; without it, the schema of the code is used"
        ),
        "defaults": Key(MapOf(AnyJson()), "values for settings that an instance does not set"),
        "env": Key(
            MapOf(ByType("a text or a table", text=Converted(_TEXT, _plain_variable), mapping=VARIABLE)),
            "an environment variable of the worker; a text is its value",
        ),
        "resources": Key(RESOURCES, "what it needs of the machine"),
    },
    at_most=(("python", "venv"),),
    about="The manifest of a capability.",
)
