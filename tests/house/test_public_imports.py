"""Everything that guides, README and examples import is public, and the examples of the public modules run."""

import ast
import doctest
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.specimens import each
from tools.api import PROMISED

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for path in [
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/guides/*.md"),
        *ROOT.glob("docs/concepts/*.md"),
        # The examples of the kinds.
        *ROOT.glob("src/failwell/errors/data/explanations/*.toml"),
        ROOT / "README.md",
    ]
)
SCRIPTS = sorted(ROOT.glob("examples/**/*.py"))
OWN_FILES = {"failwell.workflows.script_helpers.failwell_error"}
"""The helper for scripts, which is meant to be copied as well."""


def code_of(path: Path) -> Iterator[tuple[int, str]]:
    """Each piece of Python in a file, with the line it begins on."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield 1, text
        return
    if path.suffix == ".toml":
        for words in tomllib.loads(text).values():
            if words.get("language", "python") == "python":
                yield 1, words["example"]
        return
    for block in re.finditer(r"^( *)```python\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        indent = len(block[1])
        lines = [re.sub(r"^(>>>|\.\.\.) ?", "", line[indent:]) for line in block[2].splitlines()]
        yield text.count("\n", 0, block.start()) + 2, "\n".join(lines)


def imports_in(code: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, module and name of each import of ours; the name is `None` for `import module`."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        # Output beside input, or a fragment: its import lines are read one by one.
        for number, line in enumerate(code.splitlines(), 1):
            if found := re.match(r"\s*from (failwell[\w.]*) import (\w+)", line):
                yield number, found[1], found[2]
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "failwell":
            yield from ((node.lineno, node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                (node.lineno, alias.name, None)
                for alias in node.names
                if alias.name.split(".")[0] == "failwell"
            )


def is_public(module: str, name: str | None) -> bool:
    if module in OWN_FILES:
        return True
    if name is not None and f"{module}.{name}" in PROMISED:
        return True
    return module in PROMISED and (name is None or name in vars(import_module(module))["__all__"])


def test_what_guides_and_examples_import_is_public() -> None:
    private = [
        f"{path.relative_to(ROOT)}:{start + line - 1}: {module} {name or ''}"
        for path in [*PAGES, *SCRIPTS]
        for start, code in code_of(path)
        for line, module, name in imports_in(code)
        if not is_public(module, name)
    ]

    assert PAGES
    assert SCRIPTS
    assert private == []


def test_the_check_sees_a_private_import() -> None:
    assert not is_public("failwell.calls.retry", "retry")
    assert not is_public("failwell", "kinds")
    assert is_public("failwell", "workflows")
    assert [name for _, _, name in imports_in("from failwell import a\nx ==\nfrom failwell import b")] == [
        "a",
        "b",
    ]


@each("name", PROMISED)
def test_the_example_of_a_public_module_runs(name: str) -> None:
    module = import_module(name)
    text = module.__doc__ or ""

    assert "Example:" in text, f"{name} shows no example"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert report == []
