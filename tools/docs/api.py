"""The pages of the Python API: every public name with its signature and docstring.

Signatures are taken from the source, so that types and defaults look as they were written.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import cast

from tools.api import PROMISED

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_SECTION = re.compile(r"(Args|Returns|Raises|Yields|Example|Examples|Attributes|Note):$")
_WIDTH = 100


def modules() -> tuple[str, ...]:
    """The public modules, each with a page of its own."""
    return PROMISED


def api_page() -> str:
    """The index: the public modules and what each is for."""
    lines = [
        "# Python API",
        "",
        "These modules are public: their names keep working between releases. Everything else may move.",
        "",
        "| module | what it is for |",
        "| --- | --- |",
        *(f"| [`{name}`](api/{name}.md) | {_summary(import_module(name))} |" for name in PROMISED),
    ]
    return "\n".join(lines) + "\n"


def module_page(name: str) -> str:
    """One module: its docstring, a list of its names, then each of them."""
    module = import_module(name)
    public = sorted(each for each in cast("list[str]", module.__all__) if not each.startswith("__"))
    lines = [
        f"# {name}",
        "",
        *_text(inspect.getdoc(module) or ""),
        "",
        "All modules: [Python API](../api.md).",
        "",
    ]
    lines += ["| name | |", "| --- | --- |"]
    for each in public:
        anchor = _heading(each, getattr(module, each)).lower().replace(" ", "-")
        lines.append(f"| [`{each}`](#{anchor}) | {_summary(getattr(module, each))} |")
    for each in public:
        value = getattr(module, each)
        lines += ["", f"## {_heading(each, value)}", "", *_entry(each, value)]
    return "\n".join(lines).rstrip() + "\n"


def _heading(name: str, value: object) -> str:
    """Names that differ in case only, such as `Run` and `run`, must have different anchors."""
    return f"class {name}" if inspect.isclass(value) else name


def _entry(name: str, value: object) -> Iterator[str]:
    found = _definition(value)
    if found is None:
        yield from ("```python", f"{name} = {_value(value)}", "```")
        return
    if not isinstance(found, ast.ClassDef):
        yield from ("```python", _signature(found, name), "```", "")
        yield from _text(inspect.getdoc(value) or "")
        return
    bases = ", ".join(ast.unparse(base) for base in found.bases)
    yield from ("```python", f"class {name}({bases})" if bases else f"class {name}")
    inherited = list(_inherited(value))
    constructor = next(
        (method for each in (found, *inherited) if (method := _method(each, "__init__")) is not None), None
    )
    if constructor is not None:
        yield _signature(constructor, name, skip_first=True, returns=False)
    yield from ("```", "", *_text(ast.get_docstring(found) or ""))
    yield from _fields(found)
    shown: set[str] = set()
    for each in (found, *inherited):
        methods = [node for node in each.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for method in methods:
            if not method.name.startswith("_") and method.name not in shown:
                yield from _member(method)
        shown |= {method.name for method in methods}


def _inherited(value: object) -> Iterator[ast.ClassDef]:
    """The classes in the folder of a class that it inherits from. They have no page of their own."""
    cls = cast("type", value)
    folder = cls.__module__.rpartition(".")[0]
    if issubclass(cls, BaseException):
        return
    for base in cls.__mro__[1:]:
        found = _definition(base) if base.__module__.rpartition(".")[0] == folder else None
        if isinstance(found, ast.ClassDef):
            yield found


def _fields(found: ast.ClassDef) -> Iterator[str]:
    rows: list[str] = []
    for at, node in enumerate(found.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            label, shown = node.target.id, f"`{_cell(ast.unparse(node.annotation))}`"
            default = f"`{_cell(ast.unparse(node.value))}`" if node.value else ""
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            label, shown, default = node.targets[0].id, "", f"`{_cell(ast.unparse(node.value))}`"
        else:
            continue
        if not label.startswith("_"):
            rows.append(f"| `{label}` | {shown} | {default} | {_words_after(found.body, at)} |")
    if rows:
        yield from ("", "| field | type | default | |", "| --- | --- | --- | --- |", *rows)


def _words_after(body: list[ast.stmt], at: int) -> str:
    following = body[at + 1] if at + 1 < len(body) else None
    if (
        isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
        and isinstance(following.value.value, str)
    ):
        return _cell(" ".join(following.value.value.split()))
    return ""


def _member(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    marks = {ast.unparse(each) for each in method.decorator_list}
    if "overload" in marks or any(mark.endswith((".setter", ".deleter")) for mark in marks):
        return
    if marks & {"property", "cached_property"}:
        returns = f": {ast.unparse(method.returns)}" if method.returns else ""
        shown = f"{method.name}{returns}"
    else:
        shown = _signature(method, method.name, skip_first="staticmethod" not in marks)
    yield from ("", f"### .{method.name}", "", "```python", shown, "```", "")
    yield from _text(ast.get_docstring(method) or "")


def _signature(
    found: ast.FunctionDef | ast.AsyncFunctionDef,
    name: str,
    *,
    skip_first: bool = False,
    returns: bool = True,
) -> str:
    arguments = ast.unparse(found.args)
    if skip_first:
        arguments = re.sub(r"^(self|cls)(, /)?(, |$)", "", arguments)
    end = f" -> {ast.unparse(found.returns)}" if returns and found.returns else ""
    start = "async " if isinstance(found, ast.AsyncFunctionDef) else ""
    line = f"{start}{name}({arguments}){end}"
    if len(line) <= _WIDTH:
        return line
    parts = textwrap.indent(",\n".join(_split(arguments)), "    ")
    return f"{start}{name}(\n{parts},\n){end}"


def _split(arguments: str) -> Iterator[str]:
    """The arguments one by one: split at commas that no bracket encloses."""
    depth, part = 0, ""
    for character in arguments:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += character
    if part.strip():
        yield part.strip()


def _text(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: sections become lists, examples become code."""
    section = ""
    block: list[str] = []
    for line in [*docstring.splitlines(), "."]:
        heading = _SECTION.match(line)
        if section and line and not line.startswith(" "):
            yield from _section(section, block)
            section, block = "", []
        if heading:
            section = heading[1]
        elif section:
            block.append(line)
        elif line != ".":
            yield line


def _section(title: str, block: list[str]) -> Iterator[str]:
    text = textwrap.dedent("\n".join(block)).strip("\n")
    yield from (f"**{title}**", "")
    if title.startswith("Example"):
        yield from ("```python", text, "```", "")
        return
    items = re.split(r"\n(?=\S)", text)
    for item in items:
        label, colon, rest = item.partition(": ")
        words = " ".join(rest.split())
        yield (
            f"- `{label}`: {words}"
            if colon and " " not in label.strip("*")
            else f"- {' '.join(item.split())}"
        )
    yield ""


def _summary(value: object) -> str:
    if _definition(value) is None and not inspect.ismodule(value):
        return _cell(f"`{_value(value)}`")
    return _cell((inspect.getdoc(value) or "").partition("\n")[0])


def _value(value: object) -> str:
    text = repr(value).replace("typing.", "").replace("collections.abc.", "")
    return re.sub(r"failwell(?:\.\w+)+\.(?=\w)", "", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _method(found: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    for node in found.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    return None


def _definition(value: object) -> Definition | None:
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return None
    tree = _tree(value.__module__)
    last = None
    for node in tree.body:
        if (
            isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name == value.__name__
        ):
            last = node
    return last


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(Path(str(import_module(module).__file__)).read_text(encoding="utf-8"))
