"""Records `make demo` in docs/demo.md: what it prints, with numbers that differ from run to run replaced.

`python -m tools.docs.demo` runs it and writes the page; a test compares the page with its own run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/demo.md"
_HEAD = """\
# The demo

`make demo` plays this, without a key and without a server: a release that fails twice, once foreseen and once not, and an agent
that fails over to its second model, is denied a tool, asks a person and finishes. The page is the record of a real run;
ids, times and folders are replaced.

```text
"""
_CHANGES = (
    (re.compile(r"/\S*failwell-demo-[^/\s]+"), "/tmp/demo"),  # noqa: S108  (a word on the page)
    (re.compile(r"\d{8}-\d{9}-[0-9a-f]{10}"), "20260101-120000000-0a1b2c3d4e"),
    (re.compile(r"err_[0-9a-f]{20,}"), "err_0123456789abcdef0123456789a"),
    (re.compile(r"f1-[0-9a-f]{16}"), "f1-0123456789abcdef"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"), "2026-01-01T12:00:00.000000+00:00"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"), "2026-01-01 12:00:00Z"),
    (re.compile(r"\b(in|after) [\d.]+ m?s\b"), r"\1 1.0 s"),
    (re.compile(r"(Z +)[\d.]+ m?s *"), r"\g<1>1.0 s   "),
    (re.compile(r"^( +)\S*(?:failwell|python\S* -m failwell) (?=runs|explain|resume)", re.MULTILINE), r"\1failwell "),
)  # fmt: skip


def record(environment: dict[str, str] | None = None) -> str:
    """What the demo prints.

    Raises:
        RuntimeError: it failed.
    """
    done = subprocess.run(  # noqa: S603  (our own example)
        [sys.executable, str(ROOT / "examples/demo.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=100,
        env={**(environment or os.environ), "PACE": "0", "NO_COLOR": "1"},
    )
    if done.returncode != 0:
        raise RuntimeError(done.stdout)
    return done.stdout


def page(printed: str) -> str:
    """The page of a run."""
    for pattern, replacement in _CHANGES:
        printed = pattern.sub(replacement, printed)
    lines: list[str] = []
    parallel: list[str] = []
    for line in printed.splitlines():
        if line.startswith("tests/"):
            # Side by side, so they end in any order.
            parallel.append(line)
            continue
        lines += [*sorted(parallel, key=lambda text: ("done" in text, text)), line.rstrip()]
        parallel = []
    return _HEAD + "\n".join(lines).strip() + "\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(record()))
