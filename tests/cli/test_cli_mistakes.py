"""Mistakes on the command line: each exits with 2, prints no data, and says what is wrong and what to write instead."""

from pathlib import Path

import pytest

from failwell.cli.exit_codes import Exit
from tests.cli.running import failwell

PRUNE = "failwell jobs prune --help"
CASES: list[tuple[str, tuple[str, ...]]] = [
    ("explain", ("error: missing KIND\n", "failwell explain --help")),
    ("explain a.b c.d", ("error: unexpected argument `c.d`\n", "failwell explain --help")),
    ("explain qqqqqqqq", ("error: nothing is called `qqqqqqqq`\n", "hint: run `failwell kinds`\n")),
    (
        "explain provider.rate_limted",
        ("no kind is called `provider.rate_limted`; did you mean `provider.rate_limited`?",),
    ),
    ("explain provider.auth --policy x.toml", ("about a saved failure",)),
    ("kinds --prefix", ("error: argument --prefix: expected one argument\n", "failwell kinds --help")),
    (
        "schema --format markdown --error-format text",
        ("error: unknown value for --format `markdown`\n", "write `json`, or run `failwell schema --help`"),
    ),
    (
        "--format markdown schema --error-format text",
        ("error: unknown value for --format `markdown`\n", "failwell schema --help"),
    ),
    ("schema --format text", ("error: unknown value for --format `text`\n", "write `json`")),
    ("--color never", ("error: no command was given\n",)),
    ("classify", ("--jsonl",)),
    ("classify --text - --jsonl -", ("not allowed with argument",)),
    ("helpers copy --to x", ("missing LANGUAGE",)),
    ("helpers copy sh", ("missing --to",)),
    ("helpers copy pythn --to x", ("did you mean `python`?",)),
    ("helpers list --to x", ("`--to` is for `failwell helpers copy`",)),
    ("helpers path sh node", ("unexpected argument `node`",)),
    ("helpers remove", ("unknown action `remove`",)),
    ("lab", ("error: missing ACTION\n", "failwell lab --help")),
    ("jobs cancle last", ("error: unknown action `cancle`; did you mean `cancel`?\n",)),
    ("jobs list --instance", ("argument --instance: expected one argument",)),
    (
        "jobs list --older-than 3d",
        ("error: `--older-than` is for `failwell jobs prune`, not for `list`\n",),
    ),
    (
        "jobs prune",
        ("choose which jobs to delete: `--older-than 30d`, `--keep 100` or `--status failed`", PRUNE),
    ),
    ("jobs prune --yes", ("choose which jobs to delete", PRUNE)),
    (
        "jobs prune --older-than soon",
        ("`--older-than` takes a span such as `90s`, `2h` or `7d`, not `soon`", PRUNE),
    ),
    (
        "jobs prune --status running --yes",
        ("a job that is running has not ended and cannot be deleted", PRUNE),
    ),
    ("jobs prune --keep -1", ("`-1` is too small; it is at least 0", PRUNE)),
    ("jobs prune last --keep 1", ("unexpected argument `last`", PRUNE)),
    ("jobs prune --limit 3 --keep 1", ("`--limit` is for `failwell jobs list`", PRUNE)),
    ("jobs submit many --stream --wait", ("`--stream` and `--wait` exclude each other",)),
    ("jobs submit many --stream --key k", ("`--stream` and `--key` exclude each other",)),
    ("workers run --memory 0", ("`--memory` must be more than 0",)),
    ("workers run --gpu-memory nan", ("`--gpu-memory` must be more than 0",)),
    ("workers list --disk 5", ("`--disk` is for `failwell workers run`",)),
    ("capabilities add", ("missing FILE",)),
    ("capabilities check", ("missing FILE",)),
    ("capabilities list greeter", ("unexpected argument `greeter`",)),
    ("capabilities enable greeter x=1", ("unexpected argument `x=1`",)),
    ("capabilities list --force", ("`--force` is for `failwell capabilities add`",)),
    ("capabilities frobnicate", ("unknown action `frobnicate`",)),
]


@pytest.mark.parametrize(("line", "told"), CASES, ids=[line for line, _ in CASES])
def test_a_mistake_says_what_is_wrong_and_what_to_write(
    line: str, told: tuple[str, ...], tmp_path: Path
) -> None:
    done = failwell(*line.split(), cwd=tmp_path, env={"FAILWELL_STORE": str(tmp_path / "state")})

    assert (done.code, done.out) == (Exit.INVALID_USAGE, "")
    assert all(words in done.err for words in told), done.err
