"""Write the committed pages of docs/reference from the code, or with `--check` say which no longer match it.

The other reference pages are not committed: `make site` writes them into the site.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.docs.pages import COMMITTED, ROOT, NoSource, page_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write every stale page, or with `--check` exit 1 and name them."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a page is stale")
    parser.add_argument("--to", type=Path, default=ROOT / "docs/reference", help="folder of the pages")
    args = parser.parse_args(arguments)

    try:
        texts = {page: page_text(page) for page in COMMITTED}
    except NoSource as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 1
    stale = {page: text for page, text in texts.items() if not _same(args.to / page, text)}
    for page, text in stale.items():
        if args.check:
            print(f"error: docs/reference/{page} no longer matches the code", file=sys.stderr)
        else:
            (args.to / page).parent.mkdir(parents=True, exist_ok=True)
            (args.to / page).write_text(text, encoding="utf-8")
            print(f"wrote {page}")
    if args.check and stale:
        print("\nhint: run `make docs`", file=sys.stderr)
        return 1
    return 0


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
