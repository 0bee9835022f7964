"""Resolve every requirement file into a lock: each release that is installed, with what it needs itself.

`make lock` runs it. The files in requirements/ name what the project chose; those in requirements/locks are
written by this module and hold for every Python and platform that the project supports. Those in
requirements/overrides name releases that an environment has although another release asks for a different one.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "requirements/locks"
OLDEST_PYTHON = "3.11"


def sources() -> dict[str, Path]:
    """The requirement file of each environment, by the name of the environment."""
    requirements = ROOT / "requirements"
    sdks = {path.stem: path for path in sorted((requirements / "sdks").glob("*.txt"))}
    return {"dev": requirements / "dev.txt", "lowest": requirements / "lowest.txt", **sdks}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write requirements/locks again."""
    parser = argparse.ArgumentParser(prog="python -m tools.locks", description=main.__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take newer releases where the files allow it")
    args = parser.parse_args(arguments)
    LOCKS.mkdir(exist_ok=True)
    for name, source in sources().items():
        target = LOCKS / f"{name}.txt"
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--no-header"]
        command += ["--no-annotate", "--no-emit-index-url", "--python-version", OLDEST_PYTHON]
        overrides = ROOT / f"requirements/overrides/{name}.txt"
        command += ["--override", str(overrides)] if overrides.exists() else []
        command += ["--upgrade"] if args.upgrade else []
        subprocess.run([*command, "--output-file", str(target), str(source)], check=True)  # noqa: S603  (our own argv)
        print(f"wrote {target.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
