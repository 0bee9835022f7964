"""Write the bill of materials of a built wheel, in CycloneDX's JSON.

`make dist` runs it. The wheel is installed into an environment of its own, with the releases of
requirements/locks/dev.txt, and what is there then is listed: the wheel, its dependencies and their licences.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def bill_of(wheel: Path) -> dict[str, Any]:
    """The components of `wheel`, as CycloneDX lists those of an environment that holds nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin/python"
        _run(sys.executable, "-m", "venv", "--without-pip", folder)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", "--python", str(python)]
        _run(*pip, "install", "--constraint", str(ROOT / "requirements/locks/dev.txt"), f"{wheel}[engine]")
        bill = _run(
            *(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"),
            *("--pyproject", str(ROOT / "pyproject.toml"), str(python)),
        )
    document: dict[str, Any] = json.loads(bill)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    version = wheel.name.split("-")[1]
    document["metadata"]["component"] |= {
        "version": version,
        "purl": f"pkg:pypi/failwell@{version}",
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    # The installed wheel is the subject of the document, not one of its own components.
    document["components"] = [part for part in document["components"] if part["name"] != "failwell"]
    return document


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the bill of materials of the wheel in a folder, beside the wheel."""
    parser = argparse.ArgumentParser(prog="python -m tools.sbom", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="the folder that holds the wheel")
    args = parser.parse_args(arguments)
    wheels = sorted(args.folder.glob("failwell-*.whl"))
    if len(wheels) != 1:
        parser.error(f"{args.folder} holds {len(wheels)} wheels of failwell; `make dist` builds one")
    target = args.folder / "failwell.cdx.json"
    target.write_text(json.dumps(bill_of(wheels[0]), indent=2) + "\n", encoding="utf-8")
    print(f"wrote {target}")
    return 0


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603  (our own argv)


if __name__ == "__main__":
    sys.exit(main())
