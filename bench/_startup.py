"""What it costs to have failwell around: loading it, and its command line."""

from bench._measure import cpu_milliseconds
from bench._table import Row, row

BARE = "python -c pass"
LOADS: dict[str, tuple[list[str], float | None]] = {
    "import failwell": (["-c", "import failwell"], 25),
    "import failwell.capability": (["-c", "import failwell.capability"], 25),
    "failwell.describe touched": (["-c", "import failwell; failwell.describe"], 25),
    "a failure described": (["-c", "import failwell; failwell.describe(ValueError('x'))"], None),
    "every root name touched": (["-c", "import failwell as f\nfor n in f.__all__: getattr(f, n)"], None),
}
COMMANDS: dict[str, tuple[list[str], float | None]] = {
    "failwell --version": (["-m", "failwell", "--version"], 40),
    "failwell --help": (["-m", "failwell", "--help"], 60),
    "failwell explain provider.auth": (["-m", "failwell", "explain", "provider.auth"], None),
    "failwell kinds --format json": (["-m", "failwell", "kinds", "--format", "json"], None),
}


def loading(*, quick: bool = False) -> list[Row]:
    """CPU over a bare interpreter."""
    everything = {BARE: ["-c", "pass"], **{name: arguments for name, (arguments, _) in LOADS.items()}}
    spent = cpu_milliseconds(everything, rounds=2 if quick else 15)
    bare = min(spent[BARE])
    rows = [row("import", BARE, "ms", spent[BARE])]
    for name, (_, aim) in LOADS.items():
        over = [max(0.0, one - other) for one, other in zip(spent[name], spent[BARE], strict=True)]
        # Single rounds differ by more than is measured here, so the least is taken of each side by itself.
        made = row("import", f"{name}, over bare", "ms", over, aim=aim)
        least = max(0.0, min(spent[name]) - bare)
        rows.append(
            made._replace(
                least=least, against=((f"bare ({min(spent[name]):.1f} ms)", min(spent[name]) / bare),)
            )
        )
    return rows


def commands(*, quick: bool = False) -> list[Row]:
    """CPU of the whole process."""
    everything = {BARE: ["-c", "pass"], **{name: arguments for name, (arguments, _) in COMMANDS.items()}}
    spent = cpu_milliseconds(everything, rounds=2 if quick else 15)
    return [
        row("cli", name, "ms", spent[name], against={"bare": spent[BARE]}, aim=aim)
        for name, (_, aim) in COMMANDS.items()
    ]
