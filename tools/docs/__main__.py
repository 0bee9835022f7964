"""Write docs/reference from the code, or with `--check` say which pages no longer match it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.docs.pages import ROOT, NoSource, orphans, stale_pages


def main(arguments: Sequence[str] | None = None) -> int:
    """Write every stale page, or with `--check` exit 1 and name them."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a page is stale")
    parser.add_argument("--to", type=Path, default=ROOT / "docs/reference", help="folder of the pages")
    args = parser.parse_args(arguments)

    try:
        stale = stale_pages(args.to)
        if args.check:
            return _refuse([*stale, *orphans(args.to)])
        for page, text in stale.items():
            (args.to / page).parent.mkdir(parents=True, exist_ok=True)
            (args.to / page).write_text(text, encoding="utf-8")
            print(f"wrote {page}")
        for page in orphans(args.to):
            (args.to / page).unlink()
            print(f"removed {page}")
    except NoSource as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 1
    return 0


def _refuse(stale: Sequence[str]) -> int:
    for page in stale:
        print(f"error: docs/reference/{page} no longer matches the code", file=sys.stderr)
    if stale:
        print("\nhint: run `make docs`", file=sys.stderr)
        return 1
    print("docs: every reference page is current")
    return 0


if __name__ == "__main__":
    sys.exit(main())
