"""A mistake inside a block of text is shown on the line of the file that has it, also where lines are folded."""

from pathlib import Path
from typing import Any

from failwell.cli.exit_codes import Exit
from tests.cli.running import failwell
from tests.files.reading import read
from tests.specimens import each

HEAD = """\
workflow: {name: blocks, entry_point: show}
agents:
  - name: show
    type: set
    value: """
BLOCKS = {
    "folded": ">\n      first {{ 1 }}\n      second\n      MISTAKE\n      last\n",
    "folded and stripped": ">-\n      first\n      {{ 2 }} MISTAKE\n",
    "folded and kept": ">+\n      first\n      MISTAKE\n\n\n",
    "empty lines": ">-\n      first\n\n\n      third\n      MISTAKE\n",
    "more indented lines": ">-\n      first\n        - a list\n        - MISTAKE\n      last\n",
    "indentation indicator": ">2-\n        indented\n      MISTAKE\n",
    "comment after the indicator": "> # why\n      first\n      MISTAKE\n",
    "on the first line": ">-\n      MISTAKE\n      last\n",
    "literal": "|-\n      first\n      MISTAKE\n",
}
MISTAKES = {
    "{{ ghost.output }}": "no step is called `ghost`",
    "{{ 1 + }}": "syntax error: the end of the tag is not expected",
    "{{ 'x' | nosuch }}": "unknown filter: `nosuch`",
}


def a_file(folder: Path, block: str, mistake: str) -> tuple[str, int]:
    """A workflow with the mistake, and the line that has it."""
    text = HEAD + block.replace("MISTAKE", mistake)
    path = folder / "flow.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path), next(n for n, line in enumerate(text.splitlines(), 1) if mistake in line)


@each("name", BLOCKS)
@each(("mistake", "message"), MISTAKES.items(), MISTAKES)
def test_validate_names_the_line_of_the_file(tmp_path: Path, name: str, mistake: str, message: str) -> None:
    file, line = a_file(tmp_path, BLOCKS[name], mistake)

    done = failwell("validate", file)

    assert done.code == Exit.INVALID_USAGE
    assert message in done.out + done.err
    assert f"{file}:{line}:1\n" in done.out + done.err


def test_a_folded_condition_is_read_line_by_line_too(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    route = (
        "    routes:\n      - to: $end\n        when: >-\n          1 == 1\n          and ghost.output == 2\n"
    )
    path.write_text(f"{HEAD}'x'\n{route}", encoding="utf-8")

    done = failwell("validate", str(path))

    assert f"{path}:10:1\n" in done.out + done.err


@each("name", BLOCKS)
def test_a_run_that_fails_in_a_folded_block_names_the_line_of_the_file(tmp_path: Path, name: str) -> None:
    file, line = a_file(tmp_path, BLOCKS[name], "{{ workflow.input.nowhere.at_all }}")

    done = failwell("run", file, "--json", env={"FAILWELL_STORE": str(tmp_path / "store")})

    assert done.error["kind"] == "internal.template_error"
    assert done.error["details"]["line"] == line


@each("name", BLOCKS)
def test_both_parsers_find_the_same_lines(name: str) -> None:
    def lines(*, pure: bool) -> tuple[int | None, str | None]:
        item: Any = (
            read(HEAD + BLOCKS[name] + "after: 1\n", pure=pure).value["agents"].value[0].value["value"]
        )
        return item.first_line, None if item.written is None else item.written.rstrip()

    assert lines(pure=True) == lines(pure=False)
    assert lines(pure=True)[0] == 6
