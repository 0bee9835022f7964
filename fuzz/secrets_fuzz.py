"""Fuzz the ways out: registered secrets in every encoding, in any exception, by every way out.

Run `python fuzz/secrets_fuzz.py --runs 1000000 --seed 1`, or with atheris as in `describe_fuzz`.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[1]
    sys.path[:1] = [str(ROOT), str(ROOT / "src")]

from fuzz.driver import main
from fuzz.planted import check_case, register_all


def plant_anything(data: bytes) -> None:
    """Plant the secret that `data` stands for, and look for it in what comes out."""
    register_all()
    check_case(data)


if __name__ == "__main__":
    sys.exit(main(plant_anything))
