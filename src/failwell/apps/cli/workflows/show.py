"""`failwell show`: the graph of a workflow as text, Mermaid, SVG or PNG, or as data."""

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import print_json, print_text

if TYPE_CHECKING:
    from failwell.workflow.graph.model import Graph

PICTURES = ("text", "mermaid", "svg", "png")
_BY_ENDING = {".mmd": "mermaid", ".mermaid": "mermaid", ".svg": "svg", ".png": "png", ".txt": "text"}


def add_options(parser: ArgumentParser) -> None:
    """Declare the file, the picture and where it goes."""
    parser.add_argument("file", metavar="FILE", help="workflow file")
    parser.add_argument(
        "--as",
        dest="picture",
        choices=PICTURES,
        help="the picture (default: what the ending of -o says, else text)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write it to a file; a PNG needs one")
    parser.add_argument(
        "--allow-outside", action="store_true", help="let files be included from outside of the project"
    )


def run(args: Namespace) -> int:
    """Draw the workflow. Its shape must be right; what the checks find is not asked."""
    from failwell.apps.cli.workflows.problems import print_problems
    from failwell.workflow.compile import compile_file
    from failwell.workflow.graph.model import graph

    compiled = compile_file(args.file, environ=os.environ, allow_outside=args.allow_outside)
    if compiled.plan is None:
        return print_problems(compiled.mistakes, args)
    shape = graph(compiled.plan)
    picture = args.picture or _from_name(args.output)
    if picture is None and args.output is None and args.format != "text":
        _say_data(shape, args)
        return Exit.DONE
    _draw(shape, picture or "text", args)
    return Exit.DONE


def _from_name(output: str | None) -> str | None:
    return None if output is None else _BY_ENDING.get(os.path.splitext(output)[1].lower())  # noqa: PTH122


def _draw(shape: "Graph", picture: str, args: Namespace) -> None:
    from failwell.apps.cli.workflows.pictures import as_png, write

    if picture == "png":
        from failwell.workflow.graph.svg import as_svg

        as_png(as_svg(shape), args.output)
        return
    if picture == "svg":
        from failwell.workflow.graph.svg import as_svg as drawn
    elif picture == "mermaid":
        from failwell.workflow.graph.mermaid import as_mermaid as drawn
    else:
        from failwell.workflow.graph.text import as_text as drawn
    text = drawn(shape)
    if args.output is None:
        print_text(text)
    else:
        write(args.output, text.encode("utf-8", "backslashreplace"))


def _say_data(shape: "Graph", args: Namespace) -> None:
    data = shape.to_dict()
    if args.format == "json":
        print_json(
            [{"sort": "node", **node} for node in data["nodes"]]
            + [{"sort": "edge", **edge} for edge in data["edges"]]
        )
        return
    from failwell.delivery.agent_output import escaped as cell

    lines = [f"# {cell(shape.name)}", "", "| node | type | group |", "| --- | --- | --- |"]
    lines += (
        f"| {cell(node['id'])} | {node['type']} | {cell(node['group'] or '')} |" for node in data["nodes"]
    )
    lines += ["", "| from | to | way | for |", "| --- | --- | --- | --- |"]
    lines += (
        f"| {cell(edge['source'])} | {cell(edge['target'])} | {edge['way']} | {cell(edge['label'])} |"
        for edge in data["edges"]
    )
    print_text("\n".join(lines))
