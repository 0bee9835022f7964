"""`failwell show`: the graph of a workflow as text, Mermaid or SVG, or as data."""

import os
from argparse import Namespace
from json import dumps
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.listing import markdown_table, text_table
from failwell.cli.output import print_data, print_text
from failwell.cli.parser import Parser
from failwell.cli.text_file import write_text

if TYPE_CHECKING:
    from failwell.workflows.graph.model import Graph
    from failwell.workflows.plan import Plan

_MOST_FILES = 200
PICTURES = ("text", "mermaid", "svg")
_BY_ENDING = {".mmd": "mermaid", ".mermaid": "mermaid", ".svg": "svg", ".txt": "text"}


def add_options(parser: Parser) -> None:
    """Declare the file, the picture and where it goes."""
    parser.add_argument("file", metavar="FILE", help="workflow file")
    parser.add_argument(
        "--picture",
        choices=PICTURES,
        help="the picture (default: what the ending of -o says, else text)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write it to a file")
    parser.add_argument(
        "--allow-outside", action="store_true", help="let files be included from outside of the project"
    )


def run(args: Namespace) -> int:
    """Draw the workflow. Only its shape must be valid; the other checks are not run."""
    from failwell.cli.runs.validate import print_problems
    from failwell.workflows.compile.compiler import compile_file
    from failwell.workflows.graph.model import graph

    compiled = compile_file(args.file, environ=os.environ, allow_outside=args.allow_outside)
    if compiled.plan is None:
        return print_problems(compiled.mistakes, args)
    plan = compiled.plan
    picture = args.picture or _from_name(args.output)
    shape = graph(plan, _children(plan, args))
    if picture is None and args.output is None and args.format != "text":
        return _print_data(plan, shape, args)
    _draw(plan, shape, picture or "text", args)
    return Exit.DONE


def _children(plan: "Plan", args: Namespace) -> "dict[str, Plan]":
    """The sub-workflows below `plan` that can be read, by path. `validate` names the others."""
    from posixpath import join, normpath

    from failwell.calls.suppress import suppress
    from failwell.errors.fault import Fault
    from failwell.workflows.compile.compiler import compile_file

    children: dict[str, Plan] = {}
    waiting = [plan]
    while waiting:
        above = waiting.pop()
        for name in above.children:
            path = normpath(join(above.folder, name))
            if path in children or len(children) >= _MOST_FILES:
                continue
            with suppress(Fault, reason="a sub-workflow that cannot be read is drawn as one step"):
                child = compile_file(path, environ=os.environ, allow_outside=args.allow_outside).plan
                if child is not None:
                    children[path] = child
                    waiting.append(child)
    return children


def _from_name(output: str | None) -> str | None:
    return None if output is None else _BY_ENDING.get(os.path.splitext(output)[1].lower())  # noqa: PTH122


def _draw(plan: "Plan", shape: "Graph", picture: str, args: Namespace) -> None:
    if picture == "svg":
        from failwell.workflows.graph.svg import as_svg as drawn
    elif picture == "mermaid":
        from failwell.workflows.graph.mermaid import as_mermaid as drawn
    else:
        from failwell.workflows.graph.text import as_text as drawn
    text = drawn(shape)
    if picture == "text":
        text = "\n".join([*input_lines(plan, args), text])
    if args.output is None:
        print_text(text)
    else:
        write_text(args.output, [text], force=True, see="failwell show --help", mode=0o666)


def inputs_of(plan: "Plan") -> list[dict[str, Any]]:
    """The declared inputs as JSON objects. The default of a secret is not shown."""
    inputs: list[dict[str, Any]] = []
    for name, spec in plan.inputs.items():
        value: dict[str, Any] = {
            "id": name,
            "type": spec.type,
            "required": spec.required and not spec.has_default,
        }
        if spec.has_default:
            value["default"] = "(secret)" if spec.secret else spec.default
        if spec.secret:
            value["secret"] = True
        if spec.description:
            value["description"] = spec.description
        inputs.append(value)
    return inputs


def _input_rows(plan: "Plan") -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for value in inputs_of(plan):
        default = (
            f"default {dumps(value['default'], ensure_ascii=False)}" if "default" in value else "optional"
        )
        what = "required" if value["required"] else default
        secret = ", secret" if value.get("secret") else ""
        rows.append((value["id"], value["type"], f"{what}{secret}", value.get("description", "")))
    return rows


_INPUT_COLUMNS = ("input", "type", "value", "description")


def input_lines(plan: "Plan", args: Namespace) -> list[str]:
    """A table of the declared inputs, if there are any."""
    return [*text_table(_INPUT_COLUMNS, _input_rows(plan), args), ""] if plan.inputs else []


def _print_data(plan: "Plan", shape: "Graph", args: Namespace) -> int:
    from failwell.delivery.agent_output import escaped

    data = shape.to_dict()
    nodes, edges = data["nodes"], data["edges"]
    objects = [
        *({"sort": "input", **value} for value in inputs_of(plan)),
        *({"sort": "node", **node} for node in nodes),
        *({"sort": "edge", **edge} for edge in edges),
    ]
    lines = [f"# {escaped(shape.name)}", ""]
    if plan.inputs:
        lines += [*markdown_table(_INPUT_COLUMNS, _input_rows(plan)), ""]
    rows = [(node["id"], node["type"], node["group"] or "") for node in nodes]
    lines += [*markdown_table(("node", "type", "group"), rows), ""]
    rows = [(edge["source"], edge["target"], edge["way"], edge["label"]) for edge in edges]
    return print_data(args, objects, [*lines, *markdown_table(("from", "to", "way", "for"), rows)])
