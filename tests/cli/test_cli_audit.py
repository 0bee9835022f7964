"""`failwell audit`: an operator reads, checks and exports the audit of a store."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from failwell.cli.main import main
from failwell.store.sqlite.run_store import SqliteStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder with four records of two runs."""
    store = SqliteStore(tmp_path)
    for run in ("20260101-a", "20260102-b"):
        audit = store.audit.bind(run, node="answer")
        audit.record("tool:called", tool="send\x1b[31m")
        audit.record("model:failed", kind="provider.auth", text="one\ntwo")
    store.close()
    return tmp_path


def audit(folder: Path, *arguments: str) -> list[str]:
    return ["audit", *arguments, "--store", str(folder)]


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "journal.db")) as connection, connection:
        connection.execute("DROP TRIGGER audit_is_never_changed")
        connection.execute("DROP TRIGGER audit_is_never_deleted")
        connection.execute(statement)


def test_records_are_shown_in_every_format_without_what_a_terminal_would_act_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for style in ("text", "markdown", "json"):
        assert main([*audit(folder, "show"), "--format", style]) == 0
        shown = capsys.readouterr().out
        assert "\x1b" not in shown
        assert shown.count("tool:called") == 2
    rows = json.loads(shown)
    assert [row["id"] for row in rows] == [1, 2, 3, 4]
    assert rows[1]["data"] == {"node": "answer", "kind": "provider.auth", "text": "one\ntwo"}


def test_records_are_filtered_by_run_type_number_and_count(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = {
        ("20260101",): [1, 2],
        ("last",): [3, 4],
        ("--type", "tool"): [1, 3],
        ("--type", "tool:called", "--type", "model"): [1, 2, 3, 4],
        ("--after", "2", "--type", "model:failed"): [4],
        ("--limit", "1"): [4],
    }
    for options, ids in expected.items():
        assert main([*audit(folder, "show", *options), "--format", "json"]) == 0
        assert [row["id"] for row in json.loads(capsys.readouterr().out)] == ids

    assert main(audit(folder, "show", "2026")) == 2
    assert "several" in capsys.readouterr().err
    assert main(audit(folder, "show", "nothing")) == 2


def test_verify_prints_the_head_and_exits_with_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*audit(folder, "verify"), "--format", "json"]) == 0

    result = json.loads(capsys.readouterr().out)
    assert (result["ok"], result["records"], result["problems"]) == (True, 4, [])
    assert main(audit(folder, "verify", "--expect", f"4:{result['head']}")) == 0
    assert f"4:{result['head']}" in capsys.readouterr().out


def test_verify_names_a_changed_record_and_exits_with_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder, "UPDATE audit SET data = '{}' WHERE seq = 3")

    for style in ("text", "markdown", "json"):
        assert main([*audit(folder, "verify"), "--format", style]) == 1
        out = capsys.readouterr().out
        assert "record 3 was changed" in out
    assert [problem["id"] for problem in json.loads(out)["problems"]] == [3]


def test_verify_names_removed_records_and_exits_with_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder, "DELETE FROM audit WHERE seq > 2")

    assert main(audit(folder, "verify")) == 1

    assert capsys.readouterr().out == "records 3 to 4 are missing\n"


def test_verify_refuses_an_expectation_that_is_no_number_and_hash(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(audit(folder, "verify", "--expect", "4:abc")) == 2
    assert "SEQ:HASH" in capsys.readouterr().err


def test_an_export_is_lines_an_array_or_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(audit(folder, "export")) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main([*audit(folder, "export", "20260102-b"), "--format", "json"]) == 0
    array = json.loads(capsys.readouterr().out)
    assert main([*audit(folder, "export"), "--format", "markdown"]) == 0
    table = capsys.readouterr().out

    assert [line["id"] for line in lines] == [1, 2, 3, 4]
    assert array == lines[2:]
    assert table.startswith("| seq | at |")

    target = folder / "audit.jsonl"
    assert main(audit(folder, "export", "-o", str(target))) == 0
    assert target.stat().st_mode & 0o777 == 0o600
    assert len(target.read_text().splitlines()) == 4
    assert main(audit(folder, "export", "-o", str(target))) == 2


def test_a_store_that_does_not_exist_has_an_empty_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "none"

    assert main(audit(folder, "show")) == 0
    assert main(audit(folder, "verify")) == 0
    assert main(audit(folder, "export")) == 0
    assert main(audit(folder, "verify", "--expect", f"1:{'a' * 64}")) == 1

    assert not folder.exists()
    assert "no records" in capsys.readouterr().err
