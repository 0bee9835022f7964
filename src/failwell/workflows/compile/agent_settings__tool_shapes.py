"""`tools` of a workflow file: names, or definitions of tools that agents and `tool` steps call."""

from typing import Any

from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import ByType, Key, ListOf, MapOf, Shape
from failwell.files.value_types import AnyJson, Choice, Flag, Number, Text

BUILTINS = ("read_file", "write_file", "list_directory", "run_command", "http_request")
_ALLOWS = frozenset({"run_command", "http_request"})
_FILES = frozenset({"read_file", "write_file", "list_directory"})
_PYTHON = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"


def _check(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> None:
    builtin = values.get("builtin")
    needs = {
        "allow": ("`builtin: run_command` or `http_request`", builtin in _ALLOWS),
        "root": ("a `builtin` for files", builtin in _FILES),
        "headers": ("`builtin: http_request`", builtin == "http_request"),
        "allow_private": ("`builtin: http_request`", builtin == "http_request"),
        "parameters": ("`command`", "command" in values),
    }
    for key, (what, fits) in needs.items():
        if key in values and not fits:
            log.add(f"`{key}` belongs to {what}", item.key_place(key), (path, key), hint="remove it")


TOOL = Shape(
    "a tool",
    {
        "python": Key(Text(_PYTHON, "`module:function`"), "a function; its signature is the schema"),
        "command": Key(
            ListOf(Text(allow_empty=True), min_items=1),
            "a command, word by word; `{name}` in a word is an argument",
        ),
        "builtin": Key(Choice(*BUILTINS), "a tool that is here already"),
        "description": Key(Text(allow_empty=True), "what the model is told about it"),
        "parameters": Key(MapOf(AnyJson()), "JSON Schemas of a command's arguments"),
        "allow": Key(ListOf(Text()), "the exact commands, or hosts; none allows nothing"),
        "allow_private": Key(Flag(), "whether hosts with private addresses may be reached"),
        "root": Key(Text(), "the folder that the files are below; default: that of this file"),
        "headers": Key(MapOf(Text(allow_empty=True)), "headers of every request, unknown to the model"),
        "fixed": Key(MapOf(AnyJson()), "arguments that the file sets and the model cannot"),
        "effect": Key(
            Choice("read", "idempotent", "once"),
            "what a call does; default: `once`, it must not happen twice",
        ),
        "approval": Key(Choice("never", "ask"), "whether a person is asked before each call"),
        "timeout_seconds": Key(Number(0, 3600), "seconds of one call"),
        "max_attempts": Key(
            Number(1, 10, integer=True),
            "runs of one call, the first included, if a repeat can help; default: 1",
        ),
        "recovery": Key(
            Choice("none", "retry", "input"),
            "what a person is asked after a failed call: whether to repeat it, or for other arguments; default: nothing",
        ),
    },
    one_of=("python", "command", "builtin"),
    check=_check,
    about="A tool that agents may call.",
)
TOOLS = ByType(
    "a list of names, or definitions by name",
    list=ListOf(Text()),
    mapping=MapOf(TOOL, key=r"[A-Za-z_][A-Za-z0-9_-]{0,63}", must="letters, digits, `_` and `-`"),
)
