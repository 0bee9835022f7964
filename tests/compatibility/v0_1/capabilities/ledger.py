"""What the recorded jobs call. Each call is written into the file `ran` of the ledger's folder."""

import time
from pathlib import Path


def _write(ledger: str, name: str) -> None:
    with (Path(ledger) / "ran").open("a") as lines:
        lines.write(f"{name}\n")


def note(ledger: str, name: str) -> dict[str, str]:
    _write(ledger, name)
    return {"noted": name}


def refuse(ledger: str, name: str) -> None:
    _write(ledger, name)
    raise RuntimeError(f"the ledger refuses {name}")


class Slow:
    def execute(self, ledger: str, name: str) -> dict[str, str]:
        _write(ledger, name)
        while not (Path(ledger) / f"{name}.go").exists():
            time.sleep(0.01)
        return {"noted": name}
