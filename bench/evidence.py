"""How many verdicts on the corpus each source of evidence decides: it is switched off, and the rows that change are counted.

    python bench/evidence.py

A source that changes no row, and that no guide promises, should go. The corpus lies beside the checkout (or at $FAILWELL_CORPUS)
and is not part of it.
"""

import json
import sys
from collections.abc import Callable
from operator import ne
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from bench._leave_out import forget_words  # noqa: E402  (a script is started without its parent on the path)
from bench.corpus import CORPUS, LABELS  # noqa: E402
from failwell.adapters import rules  # noqa: E402
from failwell.adapters.log_records.log_record import classify  # noqa: E402
from failwell.adapters.protocols import devices, rpc  # noqa: E402
from failwell.adapters.text import class_names, commands, printed_body, protocol_words  # noqa: E402

FUNCTIONS: tuple[Callable[..., Any], ...] = (
    protocol_words.status_in, protocol_words.grpc_in, protocol_words.database_kind_in, protocol_words.close_code_in,
    protocol_words.errno_in, protocol_words.exit_in, class_names.kind_of_class, class_names.phase_of_class, class_names.phase_in,
    commands.tool_facts, printed_body.body_in, devices.device_status, rpc.read_rpc,
)  # fmt: skip
TABLES: dict[str, dict[Any, Any]] = {
    "rules.CODES": rules.CODES,
    "rules.CLASSES": rules.CLASSES,
    "rules.STATUS_CODES": rules.STATUS_CODES,
    "rules.STATUS_WORDS": rules.STATUS_WORDS,
}


def _nothing(*_: Any, **__: Any) -> None:
    return None


def verdicts(rows: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """The kind of every row, and whether it may be repeated."""
    forget_words()
    return [(report.kind, report.retryable) for report in map(classify, rows)]


def without(source: Callable[..., Any], rows: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """The verdicts while a function finds nothing, wherever it was imported."""
    homes = [
        (vars(module), name)
        for key, module in list(sys.modules.items())
        if key.startswith("failwell.adapters")
        for name, value in list(vars(module).items())
        if value is source
    ]
    for names, name in homes:
        names[name] = _nothing
    try:
        return verdicts(rows)
    finally:
        for names, name in homes:
            names[name] = source


def without_table(table: dict[Any, Any], rows: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """The verdicts while a table is empty."""
    entries = dict(table)
    table.clear()
    try:
        return verdicts(rows)
    finally:
        table.update(entries)


def main() -> None:
    if not CORPUS.is_file():
        print("corpus: not here, so nothing is switched off")
        return
    every = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    rows = [{name: value for name, value in row.items() if name not in LABELS} for row in every]
    whole = verdicts(rows)
    changed = {
        **{f"{one.__module__}.{one.__qualname__}": without(one, rows) for one in FUNCTIONS},
        **{name: without_table(table, rows) for name, table in TABLES.items()},
    }
    print(f"verdicts of {len(rows)} rows that change without the source")
    for name, said in sorted(changed.items()):
        print(f"  {sum(map(ne, whole, said)):5} {name.removeprefix('failwell.adapters.')}")


if __name__ == "__main__":
    main()
