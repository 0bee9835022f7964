"""Ten thousand nodes and ten thousand items: they run, and memory does not grow with what is over."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import environment

MOST_MB = 300
"""Far below what keeping every event would take, and above what a plan of this size needs."""


def nodes(count: int) -> str:
    lines = ["workflow:", "  name: long", "  entry_point: n0", "agents:"]
    for index in range(count):
        value = f'"{{{{ n{index - 1}.output + 1 }}}}"' if index else "0"
        lines += [f"  - name: n{index}", "    type: set", f"    value: {value}"]
        if index < count - 1:
            lines.append(f"    routes: [{{to: n{index + 1}}}]")
    return "\n".join([*lines, "output:", f'  x: "{{{{ n{count - 1}.output }}}}"'])


def items(count: int) -> str:
    return f"""
workflow: {{name: wide, entry_point: list}}
agents:
  - name: list
    type: script
    command: {sys.executable}
    args: ["-c", "import json; print(json.dumps({{'items': list(range({count}))}}))"]
    routes: [{{to: fan}}]
for_each:
  - name: fan
    type: for_each
    source: list.output.items
    as: item
    max_concurrent: 100
    agent: {{name: each, type: set, value: "{{{{ item * 2 }}}}"}}
output:
  count: "{{{{ fan.count }}}}"
  last: "{{{{ fan.outputs[{count - 1}] }}}}"
"""


# A child's largest size counts that of the process it was forked from, and a test runner is large.
SMALL = (
    "import os, sys\n"
    "pid = os.posix_spawn(sys.executable, [sys.executable, '-m', 'failwell', *sys.argv[1:]], os.environ)\n"
    "_, status, used = os.wait4(pid, 0)\n"
    "print(used.ru_maxrss // 1024, file=sys.stderr)\n"
    "sys.exit(os.waitstatus_to_exitcode(status))\n"
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param(nodes(10_000), {"x": 9_999}, id="nodes", marks=pytest.mark.slow),
        pytest.param(items(10_000), {"count": 10_000, "last": 19_998}, id="items"),
    ],
)
def test_ten_thousand_run_in_bounded_memory(tmp_path: Path, text: str, result: object) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(text)

    done = subprocess.run(
        [sys.executable, "-S", "-c", SMALL, "run", "--quiet", str(file), "--store", str(tmp_path / "store")],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == result
    assert int(done.stderr.split()[-1]) < MOST_MB
