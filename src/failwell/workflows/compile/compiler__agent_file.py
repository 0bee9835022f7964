"""A file with one agent, read as a workflow with one step.

model: openai:gpt-5
system_prompt: You help with orders.
tools:
  find_order: {python: "shop:find_order", effect: read}

Its keys are those of an agent step. `tools` with definitions, `limits`, `cost`, `kinds`, `runtime` and `mcp_servers` are
those of a workflow file.
"""

import re
from pathlib import PurePath
from typing import Any

from failwell.files.item_tree import Item, is_map

_MARKS = frozenset({"model", "system_prompt", "agent"})
"""Keys that only an agent has. One of them, and no key of a workflow, makes a file an agent."""
_OF_WORKFLOWS = frozenset({"workflow", "agents", "parallel", "for_each"})
_OF_THE_FILE = ("tools", "kinds")
_OF_THE_HEAD = ("limits", "cost", "instructions", "metadata")
_OTHER_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")


def is_agent_file(root: Item) -> bool:
    """Whether a file holds one agent instead of a workflow."""
    keys = root.keys
    return keys is not None and not _MARKS.isdisjoint(keys) and _OF_WORKFLOWS.isdisjoint(keys)


def as_workflow(root: Item) -> Item:
    """The workflow whose only step is the agent of the file. Every value keeps its place."""
    values: dict[str, Item] = dict(root.value)
    name = values.get("name") or _item(root, _name(root.file))
    file: dict[str, Item] = {}
    head: dict[str, Item] = {"name": name, "entry_point": name}
    for key in _OF_THE_FILE:
        # A list of names belongs to the agent; definitions belong to the file.
        if key in values and (key != "tools" or is_map(values[key].value)):
            file[key] = values.pop(key)
    for key in _OF_THE_HEAD:
        if key in values:
            head[key] = values.pop(key)
    runtime = values.pop("runtime", None)
    if "mcp_servers" in values:
        inner: dict[str, Item] = {} if runtime is None or not is_map(runtime.value) else dict(runtime.value)
        runtime = _mapping(runtime or root, {**inner, "mcp_servers": values.pop("mcp_servers")})
    if runtime is not None:
        head["runtime"] = runtime
    values.setdefault("name", name)
    values.setdefault("routes", _item(root, [_mapping(root, {"to": _item(root, "$end")})]))
    agents = _item(root, [_mapping(root, values)])
    return _mapping(root, {"workflow": _mapping(root, head), **file, "agents": agents})


def _name(file: str) -> str:
    return _OTHER_CHARACTERS.sub("-", PurePath(file).stem).strip("-") or "agent"


def _item(near: Item, value: Any) -> Item:
    return Item(value, near.line, near.column, near.file, near.folder)


def _mapping(near: Item, values: dict[str, Item]) -> Item:
    item = _item(near, values)
    known = near.keys or {}
    item.keys = {key: known.get(key, (value.line, value.column)) for key, value in values.items()}
    return item
