"""`failwell show`: the graph of a workflow as text, Mermaid, SVG or PNG, or as data.

An SVG becomes a PNG with whatever converter this machine has.
"""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from json import dumps
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.output import markdown_table, print_json, print_text, text_table

if TYPE_CHECKING:
    from failwell.workflows.graph.model import Graph
    from failwell.workflows.plan import Plan

_MOST_FILES = 200
PICTURES = ("text", "mermaid", "svg", "png")
_BY_ENDING = {".mmd": "mermaid", ".mermaid": "mermaid", ".svg": "svg", ".png": "png", ".txt": "text"}


def add_options(parser: ArgumentParser) -> None:
    """Declare the file, the picture and where it goes."""
    parser.add_argument("file", metavar="FILE", help="workflow file")
    parser.add_argument(
        "--picture",
        choices=PICTURES,
        help="the picture (default: what the ending of -o says, else text)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write it to a file; a PNG needs one")
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
        _print_data(plan, shape, args)
        return Exit.DONE
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
    if picture == "png":
        from failwell.workflows.graph.svg import as_svg

        as_png(as_svg(shape), args.output)
        return
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
        write(args.output, text.encode("utf-8", "backslashreplace"))


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


def _print_data(plan: "Plan", shape: "Graph", args: Namespace) -> None:
    data = shape.to_dict()
    if args.format == "json":
        print_json(
            [{"sort": "input", **value} for value in inputs_of(plan)]
            + [{"sort": "node", **node} for node in data["nodes"]]
            + [{"sort": "edge", **edge} for edge in data["edges"]]
        )
        return
    from failwell.delivery.agent_output import escaped as cell

    lines = [f"# {cell(shape.name)}", ""]
    if plan.inputs:
        lines += [*markdown_table(_INPUT_COLUMNS, _input_rows(plan)), ""]
    lines += ["| node | type | group |", "| --- | --- | --- |"]
    lines += (
        f"| {cell(node['id'])} | {node['type']} | {cell(node['group'] or '')} |" for node in data["nodes"]
    )
    lines += ["", "| from | to | way | for |", "| --- | --- | --- | --- |"]
    lines += (
        f"| {cell(edge['source'])} | {cell(edge['target'])} | {edge['way']} | {cell(edge['label'])} |"
        for edge in data["edges"]
    )
    print_text("\n".join(lines))


_PATIENCE = 60.0
"""Seconds that a drawing program may take."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_CHOICES = "`rsvg-convert` (librsvg), the Python package `cairosvg`, or Chromium"


def write(path: str, content: bytes) -> None:
    """Write a file, whole.

    Raises:
        Unwritable: the system refuses.
    """
    from failwell.cli.faults import Unwritable, reason

    try:
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(content)
    except OSError as error:
        raise Unwritable.wrap(error, f"cannot write `{path}`: {reason(error)}", caller_facing=True) from error


def as_png(svg: str, output: str | None) -> None:
    """Write `svg` as a PNG to `output`.

    Raises:
        Usage: there is no file to write to; a terminal is no place for a PNG.
        Validation: nothing here can turn an SVG into a PNG, or what there is failed.
    """
    from failwell.cli.faults import Usage
    from failwell.errors.axes import ActionKind
    from failwell.errors.facts import UserAction
    from failwell.errors.faults import Validation

    if output is None:
        raise Usage(
            message="a PNG needs a file to go to",
            user_action=UserAction(ActionKind.CHANGE_INPUT, "add `-o picture.png`"),
        )
    failed: list[str] = []
    for name, draw in _ways():
        picture = draw(svg)
        if picture is not None:
            write(output, picture)
            return
        failed.append(name)
    tried = f"; {', '.join(failed)} could not draw it" if failed else ""
    raise Validation(
        kind="validation.config_invalid",
        message=f"nothing here turns an SVG into a PNG{tried}",
        user_action=UserAction(ActionKind.FIX_CONFIGURATION, f"install {_CHOICES}, or use `--picture svg`"),
    )


def _ways() -> list[tuple[str, Callable[[str], bytes | None]]]:
    """The converters on this machine, the best first."""
    import shutil

    ways: list[tuple[str, Callable[[str], bytes | None]]] = []
    converter = shutil.which("rsvg-convert")
    if converter is not None:
        ways.append(("rsvg-convert", lambda svg: _converted(converter, svg)))
    from importlib.util import find_spec

    if find_spec("cairosvg") is not None:
        ways.append(("cairosvg", _with_cairo))
    browser = next((path for name in _BROWSERS if (path := shutil.which(name)) is not None), None)
    if browser is not None:
        ways.append(("Chromium", lambda svg: _photographed(browser, svg)))
    return ways


def _converted(program: str, svg: str) -> bytes | None:
    import subprocess

    try:
        result = subprocess.run(  # noqa: S603
            [program, "--zoom", "2", "--format", "png"],
            input=svg.encode(),
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 and result.stdout.startswith(b"\x89PNG") else None


def _with_cairo(svg: str) -> bytes | None:
    from importlib import import_module

    from failwell.calls.suppress import call_hook

    def draw() -> object:
        return import_module("cairosvg").svg2png(bytestring=svg.encode(), scale=2)

    # The package loads a C library, and whatever is wrong with it, another way is tried.
    picture: object = call_hook(draw, reason="cairosvg could not draw a picture")
    return picture if isinstance(picture, bytes) else None


def _photographed(browser: str, svg: str) -> bytes | None:
    import subprocess
    import tempfile

    width, height = _size(svg)
    with tempfile.TemporaryDirectory(prefix="failwell-") as folder:
        page, picture = os.path.join(folder, "graph.svg"), os.path.join(folder, "graph.png")  # noqa: PTH118
        write(page, svg.encode())
        command = [
            browser, "--headless", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=2",
            f"--user-data-dir={folder}", f"--window-size={width},{height}", f"--screenshot={picture}", f"file://{page}",
        ]  # fmt: skip
        try:
            subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE)  # noqa: S603
            with open(picture, "rb") as file:  # noqa: PTH123
                return file.read()
        except (OSError, subprocess.TimeoutExpired):
            return None


def _size(svg: str) -> tuple[int, int]:
    """Width and height of the picture."""
    import re

    match = re.search(r'width="(\d+)" height="(\d+)"', svg)
    return (1200, 900) if match is None else (int(match[1]), int(match[2]))
