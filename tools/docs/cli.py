"""The command-line pages: the help of every command, and the exit codes with their reasons.

Help is laid out here rather than by the terminal, and in one way for every release of
Python, so that the pages do not depend on who writes them.
"""

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

COLUMNS = 100
HELP_COLUMN = 28
CLI = Path(__file__).resolve().parents[2] / "src/failwell/cli"


def cli_page() -> str:
    """The help of `failwell` and of each of its commands."""
    from failwell.cli.options import every_parser

    lines = ["# The command line", "", "What `failwell COMMAND --help` prints."]
    for _, made in every_parser():
        lines += ["", f"## {made.prog}", "", "```text", _help(made), "```"]
    return "\n".join(lines) + "\n"


def exit_codes_page() -> str:
    """Every exit code and what it means, from the enum the commands use."""
    enum = _exit_enum()
    lines = [
        "# Exit codes",
        "",
        ast.get_docstring(enum) or "",
        "",
        "| code | name | meaning |",
        "| --: | --- | --- |",
    ]
    for name, code, meaning in _members(enum):
        lines.append(f"| {code} | `{name}` | {' '.join(meaning.split())} |")
    return "\n".join(lines) + "\n"


class _Steady(argparse.HelpFormatter):
    """Help in one shape: a fixed column, and an option's value named once, as newer Pythons do."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=HELP_COLUMN, width=COLUMNS)
        self._action_max_length = HELP_COLUMN

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class _SteadyAsWritten(_Steady, argparse.RawDescriptionHelpFormatter):
    """The same, for a parser whose description keeps its own line breaks."""


def _help(made: argparse.ArgumentParser) -> str:
    as_written = made.formatter_class is argparse.RawDescriptionHelpFormatter
    made.formatter_class = _SteadyAsWritten if as_written else _Steady
    # Colour came with Python 3.14; older releases do not look at this.
    made.color = False  # pyright: ignore[reportAttributeAccessIssue]
    return made.format_help().rstrip()


def _exit_enum() -> ast.ClassDef:
    for path in sorted(CLI.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and any(
                ast.unparse(base).endswith("IntEnum") for base in node.bases
            ):
                return node
    raise FileNotFoundError(f"no IntEnum of exit codes in {CLI.relative_to(CLI.parents[3])}")


def _members(enum: ast.ClassDef) -> Iterator[tuple[str, int, str]]:
    """Name, value and docstring of each member; the docstring is the string beneath it."""
    for node, after in zip(enum.body, [*enum.body[1:], None], strict=True):
        match node, after:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(code))),
                ast.Expr(value=ast.Constant(value=str(meaning))),
            ):
                yield name, code, meaning
            case ast.Assign(targets=[ast.Name(id=name)]), _:
                raise ValueError(f"`{enum.name}.{name}` has no docstring beneath it to say what it means")
            case _:
                pass
