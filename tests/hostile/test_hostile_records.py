"""What is stored about failures of jobs and runs, under each policy: real workers, real runs, every byte of the state folder."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from tests.hostile.planted_records import KEY, OUTPUT, Planted, sources_in

REPRS = frozenset({"message", "argument", "member", "odd", "initialize", "imported"})
MESSAGES = REPRS | {"cause", "context", "note", "below_a_fault"}
NOTHING: frozenset[str] = frozenset()
TABLE: dict[str, tuple[str | None, str | None, frozenset[str], frozenset[str]]] = {
    # FAILWELL_TRACEBACK, `traceback` of the manifest, what records hold, what the output holds beside what was printed.
    "unset": (None, None, NOTHING, NOTHING),
    "strict": ("strict", None, NOTHING, NOTHING),
    "nonsense": ("everything", "full", NOTHING, NOTHING),
    "none": ("none", None, REPRS, NOTHING),
    "repr_only": ("repr_only", None, MESSAGES | {"death"}, frozenset({"hook"})),
    "full": ("full", None, MESSAGES | {"death", "source"}, frozenset({"hook", "logged", "threaded"})),
    "manifest": (None, "full", MESSAGES | {"death", "source"}, frozenset({"hook", "logged", "threaded"})),
    "operator": ("strict", "full", NOTHING, NOTHING),
}
"""Source × policy → stored or not. Variables and keys of results are stored under none."""


SLOW = ("strict", "nonsense", "none", "repr_only", "full", "manifest", "operator")


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=pytest.mark.slow) if row in SLOW else row for row in TABLE]
)
def test_records_of_jobs_hold_foreign_text_as_far_as_the_policy_says(tmp_path: Path, row: str) -> None:
    variable, manifest, recorded, logged = TABLE[row]
    planted = Planted(tmp_path, variable, manifest)

    planted.run_jobs()

    assert planted.recorded() == recorded
    assert planted.printed() == OUTPUT | logged
    assert sources_in(planted.shown()) == recorded
    assert KEY not in planted.all_bytes()


def test_operators_keep_type_file_line_and_our_own_words_when_text_is_withheld(tmp_path: Path) -> None:
    planted = Planted(tmp_path, None)

    planted.run_jobs()

    plain = planted.report("message")
    assert (plain["kind"], plain["error_type"], plain["scene"]["capability"]) == (
        "internal.bug",
        "RuntimeError",
        "tool",
    )
    assert (
        f'File "{tmp_path / "tool.py"}", line 27, in message\nRuntimeError: [withheld]'
        in plain["internal"]["traceback"]
    )
    assert [cause["type"] for cause in planted.report("cause")["causes"]] == ["KeyError"]
    assert planted.report("below_a_fault")["message"] == "the model file is damaged"
    assert (
        planted.report("key")["message"]
        == "result[…] is of type object, which JSON does not have; return plain values or bytes"
    )
    assert planted.report("death")["details"] == {"capability_name": "tool", "exit_code": 3}
    for source, function in (("initialize", "initialize"), ("imported", "<module>")):
        assert f"in {function}\nRuntimeError: [withheld]" in planted.report(source)["internal"]["traceback"]
    shown = planted("jobs", "show", planted.jobs["message"]).out
    assert 'set FAILWELL_TRACEBACK=full, or traceback = "full" in the manifest' in shown
    assert "told by death" in planted("jobs", "show", planted.jobs["death"]).out


@pytest.mark.parametrize(
    ("policy", "is_kept"),
    [
        (None, False),
        *(pytest.param(*row, marks=pytest.mark.slow) for row in (("strict", False), ("full", True))),
    ],
)
def test_what_a_script_prints_is_output_and_not_part_of_the_record(
    tmp_path: Path, policy: str | None, is_kept: bool
) -> None:
    planted = Planted(tmp_path, policy)

    unhandled = planted.run(handled=False)
    handled = planted.run(handled=True)

    files = [file.read_text() for file in planted.state.rglob("errors.jsonl")]
    records = json.dumps([_without_output(data) for data in planted.events()])
    assert (unhandled.code, handled.code) == (3, 3)
    # The route of the second run was taken, so its template saw the end of stderr.
    assert '"node": "tool"' in handled.err
    assert len(files) == 2
    assert sources_in("".join(files)) == ({"stderr", "node"} if is_kept else set())
    assert sources_in(records) == ({"stderr", "node"} if is_kept else set())
    assert sources_in(unhandled.err + handled.err) == ({"stderr"} if is_kept else set())
    assert KEY not in "".join((*files, records, unhandled.err, handled.err))
    # The person at the terminal sees what the script printed, as its output.
    assert "told by stderr" in planted("runs", "show", _first_run(planted)).out


def _first_run(planted: Planted) -> str:
    return planted("runs", "list", "--json").data[-1]["id"]


def _without_output(value: Any) -> Any:
    """An event without the output of its node."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        kept = {name: inner for name, inner in table.items() if name not in ("output", "stderr_tail")}
        return {name: _without_output(inner) for name, inner in kept.items()}
    return (
        [_without_output(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value
    )
