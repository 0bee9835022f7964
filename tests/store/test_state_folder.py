"""Where records lie, who may read them, and what runs are called."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from failwell.store.faults import BadRunId, StoreFull, StoreUnavailable
from failwell.store.folder import (
    append_line,
    make_private,
    new_run_id,
    run_folder,
    state_folder,
    write_error,
    write_notification,
)
from tests.store.children import ROOT

FAILURE: dict[str, Any] = {
    "envelope": {"kind": "external.git.drift", "message": "moved", "details": {}},
    "report": {"schema": "failwell.error/1"},
    "typed": True,
    "frames": [{"node": "build"}],
}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("named", "environ", "expected"),
    [
        ("/a", {"FAILWELL_STORE": "/b", "XDG_STATE_HOME": "/c"}, "/a"),
        (None, {"FAILWELL_STORE": "/b", "XDG_STATE_HOME": "/c"}, "/b"),
        (None, {"XDG_STATE_HOME": "/c"}, "/c/failwell"),
        (None, {"XDG_STATE_HOME": "relative"}, "~/.local/state/failwell"),
        ("", {"FAILWELL_STORE": ""}, "~/.local/state/failwell"),
        ("~/x", {}, "~/x"),
    ],
)
def test_the_state_folder_is_the_nearest_that_is_named(
    named: str | None, environ: dict[str, str], expected: str
) -> None:
    assert state_folder(named, environ) == Path(expected).expanduser()


def test_what_is_made_is_private_and_what_was_there_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(0)

    try:
        made = make_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    assert [mode_of(folder) for folder in (tmp_path, made.parent, made)] == [0o755, 0o700, 0o700]


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreUnavailable, match="cannot be used"):
        make_private(tmp_path / "file" / "below")


@pytest.mark.acceptance("conductor 70")
def test_runs_of_the_same_moment_have_different_ids_that_sort_by_time() -> None:
    same = {new_run_id(1_700_000_000.25, {}) for _ in range(2_000)}
    later = [new_run_id(1_700_000_000.25 + step / 1000, {}) for step in range(50)]

    assert len(same) == 2_000
    assert [one[:18] for one in sorted(later)] == [one[:18] for one in later]
    assert all(len(one) <= 64 for one in same)


@pytest.mark.acceptance("conductor 70")
def test_two_runs_of_one_moment_have_separate_files(tmp_path: Path) -> None:
    runs = [new_run_id(1_700_000_000.0, {}) for _ in range(2)]

    files = [
        write_error(run_folder(tmp_path, run), at=1.0, run=run, workflow="w", node="build", failure=FAILURE)
        for run in runs
    ]

    assert [len(file.read_text().splitlines()) for file in files] == [1, 1]
    assert files[0] != files[1]


@pytest.mark.parametrize("variable", ["FAILWELL_RUN_ID", "CONDUCTOR_RUN_ID"])
def test_the_environment_can_name_a_run(variable: str) -> None:
    assert new_run_id(1.0, {variable: "ci-42"}) == "ci-42"
    with pytest.raises(BadRunId):
        new_run_id(1.0, {variable: "../ci"})


def test_a_run_started_by_a_script_of_a_run_gets_an_id_of_its_own() -> None:
    inside = {"FAILWELL_RUN_ID": "outer", "FAILWELL_IDEMPOTENCY_KEY": "outer/build/1.1"}

    assert new_run_id(1.0, inside) != "outer"
    assert new_run_id(1.0, {**inside, "FAILWELL_RUN_ID": "chosen"}) == "chosen"


def test_our_own_variable_comes_first() -> None:
    assert new_run_id(1.0, {"CONDUCTOR_RUN_ID": "theirs", "FAILWELL_RUN_ID": "ours"}) == "ours"


@pytest.mark.parametrize("run", ["..", "a/b", ".", "a\x00"])
def test_no_run_has_a_folder_elsewhere(tmp_path: Path, run: str) -> None:
    with pytest.raises(BadRunId):
        run_folder(tmp_path, run)


@pytest.mark.acceptance("conductor 36")
def test_a_failure_is_one_line_with_envelope_frames_and_node(tmp_path: Path) -> None:
    path = write_error(
        tmp_path / "runs" / "r1", at=0.25, run="r1", workflow="nightly", node="build", failure=FAILURE
    )

    lines = path.read_text().splitlines()
    assert json.loads(lines[0]) == {
        "timestamp": "1970-01-01T00:00:00.250+00:00",
        "run_id": "r1",
        "workflow": "nightly",
        "node": "build",
        "envelope": FAILURE["envelope"],
        "frames": [{"node": "build"}],
        "report": {"schema": "failwell.error/1"},
    }
    assert len(lines) == 1
    assert (path.name, mode_of(path), mode_of(path.parent)) == ("errors.jsonl", 0o600, 0o700)


def test_lines_are_added_and_never_replaced(tmp_path: Path) -> None:
    paths = {write_notification(tmp_path, {"number": number}) for number in range(3)}

    lines = (tmp_path / "notifications.jsonl").read_text().splitlines()
    assert paths == {tmp_path / "notifications.jsonl"}
    assert [json.loads(line)["number"] for line in lines] == [0, 1, 2]


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_half_of_itself(tmp_path: Path) -> None:
    append_line(tmp_path / "x.jsonl", {"pad": "x" * 900})
    program = (
        "import sys\nfrom pathlib import Path\nfrom resource import RLIMIT_FSIZE, setrlimit\n"
        "from failwell.store.folder import append_line\n"
        "from failwell.store.faults import StoreFull\n"
        "setrlimit(RLIMIT_FSIZE, (1500, 1500))\n"
        "try:\n    append_line(Path(sys.argv[1]), {'pad': 'y' * 2000})\n"
        "except StoreFull as fault:\n    print(fault.kind)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x.jsonl")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    assert done.stdout.strip() == StoreFull.declared_kind == "resource.disk"
    assert [json.loads(line)["pad"][0] for line in (tmp_path / "x.jsonl").read_text().splitlines()] == ["x"]
