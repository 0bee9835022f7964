"""Measure what failwell costs, print one table, and say which aims were met.

python -m bench [--only NAME] [--quick] [--json FILE]
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from bench import _error_path, _startup
from bench._table import Row, as_json, lines

SECTIONS: dict[str, Callable[..., list[Row]]] = {
    "import": _startup.loading,
    "cli": _startup.commands,
    "describe": _error_path.describing,
    "wire": _error_path.sending,
    "memory": _error_path.keeping,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure what failwell costs.")
    parser.add_argument("--only", choices=SECTIONS, help="measure one section alone")
    parser.add_argument(
        "--quick", action="store_true", help="few rounds: shows that it works, not what it costs"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there as well")
    args = parser.parse_args(arguments)

    rows: list[Row] = []
    for name, measure in SECTIONS.items():
        if args.only in (None, name):
            rows += measure(quick=args.quick)
    print("\n".join(lines(rows)))
    if args.json is not None:
        args.json.write_text(json.dumps(as_json(rows), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
