"""What it costs to classify one SDK exception, shape by shape, beside LiteLLM on the same exceptions.

    python bench/adapters.py [--quick] [PYTHON ...]

Each PYTHON is an interpreter with openai, anthropic or botocore in it, and perhaps litellm; without any,
this one is asked, and those that `make test-sdks` made. No exception is read twice and no two are alike:
ids, waits, counts and sentences differ. What is measured is CPU time with everything warm.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench._table import Row, lines, row  # noqa: E402  (a script is started without its parent on the path)

AIM = 25
"""Microseconds for one exception. It stands beside the judgement and beside the whole reading, which costs more."""
AIM_DESCRIBE = 50


def measured(python: str, *, quick: bool) -> dict[str, Any]:
    """What one interpreter measured, each round of it."""
    done = subprocess.run(
        [python, str(ROOT / "bench/_sdk_errors.py"), *(["--quick"] if quick else [])],
        capture_output=True, text=True, check=False, timeout=1200,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{python} could not measure:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(spent: dict[str, dict[str, list[float]]]) -> list[Row]:
    """One section for each thing that was measured, one row for each shape."""
    found: list[Row] = []
    for shape, took in spent.items():
        beside = {"litellm": took["litellm"]} if "litellm" in took else {}
        found.append(row("classify", shape, "µs", took["classify"], against=beside, aim=AIM))
        found.append(row("read", shape, "µs", took["read"], against=beside, aim=AIM))
        found.append(row("describe", shape, "µs", took["describe"], against=beside, aim=AIM_DESCRIBE))
        if beside:
            found.append(row("litellm", shape, "µs", took["litellm"]))
    return sorted(found, key=lambda one: ("classify", "read", "describe", "litellm").index(one.section))


def main() -> None:
    given = [one for one in sys.argv[1:] if one != "--quick"]
    for python in given or [sys.executable, *map(str, sorted(ROOT.glob(".sdks/*/bin/python")))]:
        told = measured(python, quick="--quick" in sys.argv)
        versions = ", ".join(f"{name} {number}" for name, number in told["versions"].items())
        print(f"\nSDK exceptions without a traceback: {versions or 'no SDK is installed here'}")
        if told["spent"]:
            print("\n".join(lines(rows_of(told["spent"]))))


if __name__ == "__main__":
    main()
