"""Adds up a file of orders, or says by name what is wrong with it."""

import csv
import json
import os
import sys
from pathlib import Path


def raise_error(kind: str, message: str, **details: object) -> None:
    """The file named by FAILWELL_ERROR_OUT is the error; how the script ends does not matter."""
    error = {"kind": kind, "message": message, "details": details}
    Path(os.environ["FAILWELL_ERROR_OUT"]).write_text(json.dumps(error), encoding="utf-8")


def main(path: Path) -> None:
    if not path.exists():
        raise_error("external.orders.missing", f"there is no {path.name}", file=path.name)
        return
    total = 0.0
    with path.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines), 2):
            try:
                total += float(row["amount"])
            except ValueError:
                raise_error("external.orders.malformed", f"line {number} has no amount", line=number)
                return
    # One JSON object on stdout becomes the output of the step.
    print(json.dumps({"total": total}))


main(Path(sys.argv[1]))
