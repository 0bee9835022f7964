"""Fuzz what people write: workflow files of any shape and error files of any content.

Run `python fuzz/workflow_fuzz.py --runs 20000 --seed 1`, or, with atheris installed,
`python fuzz/workflow_fuzz.py --atheris --seconds 300`.
"""

import random
import sys
from datetime import UTC, datetime
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[1]
    sys.path[:1] = [str(ROOT), str(ROOT / "src")]

from failwell.files.mistakes import render, to_json, to_markdown
from failwell.workflows.check.rules import check
from failwell.workflows.envelope import Malformed, read_file
from fuzz.driver import main
from tests.workflows.compile.writing import compile_text

GRAIN = """\
workflow:
  name: seed
  entry_point: a
  input:
    n: {type: number, default: 1}
  limits: {max_iterations: 5}
agents:
  - name: a
    type: script
    command: sh
    args: ["-c", "echo {{ workflow.input.n }}"]
    raises: [external.x]
    routes:
      - on_error: external.x
        retry: {max: 2, backoff: linear, initial_seconds: 1}
      - on_error: {category: transient}
        to: b
        when: "error.kind == 'external.x'"
      - on_error: true
        halt: {message: "{{ error.message }}"}
      - to: fan
  - name: b
    type: set
    values: {list: [1, 2], text: "{{ a.output.stdout | default('') }}"}
  - name: c
    type: human_gate
    prompt: "go?"
    options: [{label: Yes, value: "yes", route: $end}]
parallel:
  - name: pair
    agents: [b, d]
for_each:
  - name: fan
    type: for_each
    source: b.output.list
    as: x
    agent: {name: each, type: set, value: "{{ x }}"}
output:
  x: "{{ b.output.text }}"
"""
SHARDS = (
    ": ", "- ", "{", "}", "[", "]", "\n", "  ", "&a ", "*a ", "!file ", "!!python/object ", "<<: *a", "'", '"', "|\n", ">\n",
    "${HOME}", "${X:-${Y}}", "{{ ", " }}", "{% for i in x %}", "null", "true", "1e999", ".nan", "0x1F", "007", "2026-01-01",
    "on_error: ", "to: ", "type: workflow\n    workflow: a.yaml", "routes: []", "\t", "\0", "\ufeff", "é", "---\n", "...\n",
)  # fmt: skip


def read_anything(data: bytes) -> None:
    """Compile, check and render whatever `data` makes of a workflow; read it as an error file too."""
    text = _mangled(data)
    compiled = compile_text(text, environ={"HOME": "/home"})
    mistakes = list(compiled.mistakes)
    if compiled.plan is not None:
        mistakes += check(compiled.plan)
    elif not any(mistake.is_error for mistake in mistakes):
        raise AssertionError("a file without a plan has no error")
    if compiled.partial is not None:
        mistakes += check(compiled.partial.plan, partial=compiled.partial)
    render(mistakes)
    to_json(mistakes)
    to_markdown(mistakes)
    for raw in (data, text.encode("utf-8", "surrogatepass")):
        try:
            read_file(raw, datetime(2026, 1, 1, tzinfo=UTC))
        except Malformed as malformed:
            if not str(malformed):
                raise AssertionError("a refusal without a reason") from None


def _mangled(data: bytes) -> str:
    """The seed with as many cuts, shards and swaps as there are bytes to say so."""
    rng = random.Random(data)
    text: str = GRAIN
    for _ in range(min(len(data), 12)):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(4):
            case 0:
                text = text[:at] + rng.choice(SHARDS) + text[at:]
            case 1:
                text = text[:at] + text[at + rng.randrange(40) :]
            case 2:
                lines = list[str](text.split("\n"))
                one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
                lines[one], lines[two] = lines[two], lines[one]
                text = "\n".join(lines)
            case _:
                text = text[:at] + data[:8].decode("latin-1") + text[at:]
    return text


if __name__ == "__main__":
    sys.exit(main(read_anything))
