"""Python functions as tools: the schema comes from the signature, the description from the docstring."""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import getdoc, iscoroutinefunction
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from warnings import catch_warnings, simplefilter

from failwell.agents.tools.tool import Tool, ToolContext
from failwell.agents.tools.tool_thread import run_in_loop, run_in_thread
from failwell.calls.gather import Partial
from failwell.errors.faults import Validation


def function_tool(name: str, target: str, folder: Path) -> Tool:
    """The tool that calls `module:function`. Modules beside the workflow file are found as well.

    Raises:
        Validation: there is no such module or function, or its parameters have no schema.
    """
    function = load_object(target, folder, "tool")
    if not callable(function):
        raise _refusal(f"`{target}` is not a function")
    from pydantic_ai.tools import Tool as FunctionTool

    try:
        with catch_warnings():
            # The schema of the result is not used, and a type that has none is no reason to warn.
            simplefilter("ignore", UserWarning)
            definition = FunctionTool(function, takes_ctx=False, name=name).tool_def
    except Exception as error:
        # Pydantic raises many types for annotations that it cannot read.
        raise _refusal(
            f"the parameters of `{target}` have no schema; annotate them with JSON types"
        ) from error

    async def run(arguments: Mapping[str, Any], _context: ToolContext) -> Any:
        if iscoroutinefunction(function):
            return _payload(await run_in_loop(function(**arguments)))
        return _payload(await run_in_thread(lambda: function(**arguments)))

    return Tool(
        name=name,
        description=definition.description or (getdoc(function) or "").partition("\n")[0],
        parameters={**definition.parameters_json_schema, "additionalProperties": False},
        run=run,
    )


def _payload(value: Any) -> Any:
    """The result of a function. What `gather` did for a part of its items has `items`, and `errors` for the rest.

    Raises:
        Exception: no item worked; it is the failure of the first one.
    """
    if not isinstance(value, Partial):
        return value
    partial = cast("Partial[Any]", value)
    if partial.errors and not partial.results:
        partial.values()
    items = list(partial.results.values())
    if partial.complete:
        return {"items": items}
    errors = [{"item": place, **report.view("model")} for place, report in partial.errors.items()]
    unstarted = {"not_started": partial.not_started} if partial.not_started else {}
    return {"items": items, "errors": errors, **unstarted}


def load_object(target: str, folder: Path, what: str) -> Any:
    """The object `module:name`, for the tool or agent of a file in `folder`.

    Raises:
        Validation: there is no such module or object.
    """
    module, _, path = target.partition(":")
    if not module or not path:
        raise _refusal(f"`{target}` is no {what}: write `module:name`")
    place = folder.resolve()
    if str(place) not in sys.path:
        sys.path.append(str(place))
    own = place / f"{module}.py"
    try:
        value: Any = _import_file(module, own) if own.is_file() else import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise _refusal(f"there is no module `{module}` for the {what} `{target}`") from error
    for part in path.split("."):
        if not hasattr(value, part):
            raise _refusal(f"the module `{module}` has no `{path}`")
        value = getattr(value, part)
    return value


def _import_file(module: str, file: Path) -> ModuleType:
    """The module of a file, also if this process knows another one by that name."""
    found = sys.modules.get(module)
    spec = find_spec(module) if found is None else None
    if found is None and spec is not None and _is_same(spec.origin, file):
        return import_module(module)
    if found is not None and _is_same(getattr(found, "__file__", None), file):
        return found
    name = f"{module}@{file.parent}"
    known = sys.modules.get(name)
    if known is not None:
        return known
    own = spec_from_file_location(name, file)
    assert own is not None
    assert own.loader is not None
    loaded = module_from_spec(own)
    sys.modules[name] = loaded
    with ExitStack() as unfinished:
        # A module that cannot be executed is imported anew the next time, whatever ended it.
        unfinished.callback(sys.modules.pop, name)
        own.loader.exec_module(loaded)
        unfinished.pop_all()
    return loaded


def _is_same(origin: str | None, file: Path) -> bool:
    return origin is not None and Path(origin).resolve() == file.resolve()


def _refusal(message: str) -> Validation:
    return Validation(kind="validation.config_invalid", message=message, caller_facing=True)
