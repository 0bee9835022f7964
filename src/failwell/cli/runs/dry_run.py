"""`failwell run --dry-run`: what would run, with the inputs, the limits and every route, and nothing runs."""

from argparse import Namespace
from collections.abc import Mapping
from json import dumps
from typing import TYPE_CHECKING, Any

from failwell.cli.listing import markdown_table
from failwell.cli.output import bold, print_data, print_stderr

if TYPE_CHECKING:
    from failwell.workflows.graph.model import Graph
    from failwell.workflows.plan import Plan


def print_plan(args: Namespace, given: Mapping[str, Any]) -> int:
    """Check the file and the inputs, and print the plan, or every mistake."""
    from failwell.cli.runs.validate import print_problems
    from failwell.files.mistakes import render, to_json
    from failwell.workflows.api import dry_run
    from failwell.workflows.graph.model import graph

    checked, values, mistakes = dry_run(args.workflow, given, allow_outside=args.allow_outside)
    if checked is None or checked.plan is None:
        return print_problems(mistakes, args)
    plan = checked.plan
    secrets = {name for name, declared in plan.inputs.items() if declared.secret}
    inputs = {name: "(secret)" if name in secrets else value for name, value in values.items()}
    shape = graph(plan, checked.children)
    code = print_data(
        args,
        lambda: {**_data(plan, shape, inputs), "warnings": to_json(mistakes)},
        lambda: _text(plan, shape, inputs, args),
        lambda: _markdown(plan, shape, inputs),
    )
    if mistakes and args.format != "json":
        print_stderr(render(mistakes))
    return code


def _data(plan: "Plan", shape: "Graph", inputs: Mapping[str, Any]) -> dict[str, Any]:
    from failwell.workflows.graph.text import limits_of, run_limits, work_of

    graph = shape.to_dict()
    routes: dict[str, list[dict[str, Any]]] = {}
    for edge in graph["edges"]:
        route = {"to": edge["target"], "way": edge["way"], "for": edge["label"], "on_error": edge["on_error"]}
        routes.setdefault(edge["source"], []).append(route)
    nodes: list[dict[str, Any]] = []
    for spot in shape.spots:
        node = {"id": spot.id, "type": spot.type, "group": spot.group, "routes": routes.get(spot.id, [])}
        if spot.node is not None:
            node |= {"runs": work_of(spot.node), "limits": limits_of(spot.node)}
        nodes.append(node)
    return {
        "workflow": plan.name,
        "file": plan.file,
        "entry": plan.entry,
        "inputs": inputs,
        "limits": run_limits(plan),
        "nodes": nodes,
    }


def _shown(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _text(plan: "Plan", shape: "Graph", inputs: Mapping[str, Any], args: Namespace) -> list[str]:
    from failwell.workflows.graph.text import as_text, run_limits

    lines = [bold(f"plan of {plan.name}", args), f"  file  {plan.file}"]
    for title, values in (("inputs", inputs), ("limits", run_limits(plan))):
        if values:
            width = max(map(len, values))
            lines += ["", bold(title, args)]
            lines += [f"  {name.ljust(width)}  {_shown(value)}" for name, value in values.items()]
    _, *tree = as_text(shape, has_details=True).rstrip("\n").split("\n")
    return [*lines, "", bold("steps", args), *tree, "", "nothing was run"]


def _markdown(plan: "Plan", shape: "Graph", inputs: Mapping[str, Any]) -> list[str]:
    from failwell.delivery.agent_output import escaped
    from failwell.workflows.graph.text import limits_text

    data = _data(plan, shape, inputs)
    lines = [
        f"# plan of {escaped(plan.name)}",
        "",
        f"- file: {escaped(plan.file)}",
        f"- entry: {escaped(plan.entry)}",
    ]
    for title, values in (("input", inputs), ("limit", data["limits"])):
        if values:
            rows = [(name, _shown(value)) for name, value in values.items()]
            lines += ["", *markdown_table((title, "value"), rows)]
    rows = [
        (
            node["id"],
            node["type"],
            node.get("runs", ""),
            limits_text(node.get("limits", {})),
            "; ".join(f"{route['for'] or route['way']} → {route['to']}" for route in node["routes"]),
        )
        for node in data["nodes"]
    ]
    return [
        *lines,
        "",
        *markdown_table(("step", "type", "runs", "limits", "routes"), rows),
        "",
        "Nothing was run.",
    ]
