"""Ordinary trouble with the state folder is told as what it is: never as a defect of the program."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.job_place import Place
from tests.cli.running import Done
from tests.cli.sealed import needs_mounts, on_full, on_sealed


def a_place(folder: Path) -> Place:
    place = Place(folder, "echo")
    assert place("jobs", "submit", "echo", "value=1", "--wait").code == 0
    return place


def sealed(place: Place, *arguments: str) -> Done:
    state = place.path("state")
    return on_sealed(state, *arguments, "--store", str(state))


@needs_mounts
@pytest.mark.parametrize(
    "arguments",
    [
        ("capabilities", "config", "echo", "a=1"),
        ("jobs", "submit", "echo"),
        ("workers", "run", "--until-empty"),
        *(
            pytest.param(arguments, marks=pytest.mark.slow)
            for arguments in (
                ("capabilities", "disable", "echo"),
                ("capabilities", "remove", "echo"),
                ("capabilities", "add", "echo.toml", "--force"),
                ("jobs", "submit", "echo", "--wait"),
            )
        ),
    ],
    ids=" ".join,
)
def test_what_has_to_write_says_that_it_may_not(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    place = a_place(tmp_path)
    given = [str(tmp_path / one) if one == "echo.toml" else one for one in arguments]

    done = sealed(place, *given, "--json")

    assert done.error["kind"] == "session.store_unavailable"
    assert "may not be written to" in done.error["message"] or "read-only" in done.error["message"]
    assert "--store DIR" in done.error["hint"]


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv, so that root obeys modes")
@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "list"),
        ("jobs", "submit", "echo"),
        *(
            pytest.param(arguments, marks=pytest.mark.slow)
            for arguments in (
                ("jobs", "stats"), ("workers", "run"), ("workers", "list"), ("capabilities", "list"), ("runs", "list"), ("top", "--once"),
            )
        ),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_store_of_somebody_else_is_no_defect(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    place = a_place(tmp_path)
    state = place.path("state")
    state.chmod(0o000)

    words = [sys.executable, "-m", "failwell", *arguments, "--store", str(state), "--error-format", "json"]
    if os.geteuid() == 0:
        words = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    state.chmod(0o700)

    error = json.loads(done.stderr.splitlines()[-1])
    assert error["kind"] == "session.store_unavailable", error
    assert "permission denied" in error["message"]


@needs_mounts
def test_what_only_reads_works_where_nothing_may_be_written(tmp_path: Path) -> None:
    place = a_place(tmp_path)

    listed = sealed(place, "jobs", "list", "--json")
    shown = sealed(place, "jobs", "show", "last", "--json")
    known = sealed(place, "capabilities", "list", "--json")
    told = sealed(place, "jobs", "tail", "last")

    assert [one["status"] for one in listed.data] == ["completed"]
    assert shown.data["result"] == 1
    assert [one["name"] for one in known.data] == ["echo"]
    assert "completed" in told.out


@needs_mounts
def test_jobs_that_another_process_runs_can_be_read_where_nothing_may_be_written(tmp_path: Path) -> None:
    place = a_place(tmp_path)

    with place.start("workers", "run"):
        place.until_hosted(place.path("state"))
        waited = place("jobs", "submit", "echo", "value=2", "--wait")
        log = place.path("state") / "journal.db-wal"
        size = log.stat().st_size
        listed = sealed(place, "jobs", "list", "--json")

    assert (waited.out, size > 0) == ("2\n", True)
    assert [one["status"] for one in listed.data] == ["completed", "completed"]


@needs_mounts
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("capabilities", "disable", "echo"), marks=pytest.mark.slow),
        ("capabilities", "add", "echo.toml", "--force"),
        ("jobs", "submit", "echo", "--wait"),
        pytest.param(("workers", "run", "--until-empty"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_told_as_one(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    place = a_place(tmp_path)
    given = [str(tmp_path / one) if one == "echo.toml" else one for one in arguments]
    full = tmp_path / "full"

    done = on_full(full, place.path("state"), *given, "--store", str(full), "--json")

    assert done.error["kind"] == "resource.disk"
    assert "no space left" in done.error["message"]


@pytest.mark.parametrize("text", ['name = "broken\n', "name = 3\n"])
def test_a_broken_manifest_is_named_with_its_line_and_can_be_removed(tmp_path: Path, text: str) -> None:
    place = Place(tmp_path, "echo")
    broken = place.path("state") / "capabilities" / "broken.toml"
    broken.write_text(text)

    listed = place("capabilities", "list", "--json")
    switched = place("jobs", "submit", "broken", "--json")
    removed = place("capabilities", "remove", "broken")

    [row] = [one for one in listed.data if one["name"] == "broken"]
    assert str(broken) in row["problem"]
    assert ("line 1" in row["problem"]) is ('"' in text)
    assert switched.error["kind"] == "validation.config_invalid"
    assert (removed.code, broken.exists()) == (0, False)
    assert [one["name"] for one in place("capabilities", "list", "--json").data] == ["echo"]


@pytest.mark.parametrize("text", ["{", "[]", '{"echo": 3}'])
def test_a_broken_file_of_settings_is_named(tmp_path: Path, text: str) -> None:
    place = Place(tmp_path, "echo")
    (place.path("state") / "instances.json").write_text(text)

    done = place("capabilities", "list", "--json")

    assert done.error["kind"] == "validation.config_invalid"
    assert "instances.json" in done.error["message"]
    assert "correct the file" in done.error["hint"]


@pytest.mark.skipif(os.name != "posix", reason="the limit is set by a shell")
def test_without_a_file_handle_every_step_of_a_run_names_the_resource(tmp_path: Path) -> None:
    """The limits end the run while it loads modules, opens the store, starts its loop, and starts the script."""
    file = tmp_path / "w.yaml"
    file.write_text(
        "workflow: {name: w, entry_point: a}\nagents: [{name: a, type: script, command: 'true'}]\n",
        encoding="utf-8",
    )

    for limit in (6, 8, 10, 12, 14):
        command = f'ulimit -n {limit}; exec "$0" -m failwell run "$1" --store "$2" --format json'
        done = subprocess.run(
            ["sh", "-c", command, sys.executable, str(file), str(tmp_path / f"store-{limit}")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

        assert (done.returncode, done.stdout) == (1, ""), (limit, done.stderr)
        assert json.loads(done.stderr.splitlines()[-1])["kind"] == "resource.file_handles", (
            limit,
            done.stderr,
        )
