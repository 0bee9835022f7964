"""Fuzz the error path: random trees of hostile exceptions, described and delivered in every way.

Run `python fuzz/describe_fuzz.py --runs 20000 --seed 1`, or, with atheris installed,
`python fuzz/describe_fuzz.py --atheris --seconds 300`.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[1]
    sys.path[:1] = [str(ROOT), str(ROOT / "src")]

from fuzz.driver import main
from fuzz.oracle import check_exception
from fuzz.trees import tree


def describe_anything(data: bytes) -> None:
    """Describe the tree that `data` stands for, and hold every outcome to its promises."""
    check_exception(tree(data), with_panel=False)


if __name__ == "__main__":
    sys.exit(main(describe_anything))
