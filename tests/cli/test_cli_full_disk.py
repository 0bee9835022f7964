"""Old records can be deleted on a disk that is full, and the store can be used again afterwards."""

from collections.abc import Callable
from pathlib import Path

import pytest

from failwell.store.reserved_space import RESERVE, SIZE
from tests.cli.job_place import Place
from tests.cli.running import failwell
from tests.cli.sealed import needs_mounts, on_crowded, on_full

LONG = "x" * 20_000


def used_queue(folder: Path) -> Path:
    place = Place(folder, "echo")
    for _ in range(6):
        assert place("jobs", "submit", "echo", f"value={LONG}").code == 0
    assert place("workers", "run", "--until-empty").code == 0
    return folder / "state"


def used_journal(folder: Path) -> Path:
    workflow = folder / "workflow.yaml"
    workflow.write_text(
        "workflow: {name: long, entry_point: one}\n"
        f"agents: [{{name: one, type: set, values: {{text: {LONG}}}}}]\n"
        "output: {text: '{{ one.output.text }}'}\n"
    )
    for _ in range(6):
        done = failwell("run", str(workflow), "--store", str(folder / "state"))
        assert done.code == 0, done.err
    return folder / "state"


@needs_mounts
@pytest.mark.parametrize(("noun", "fill"), [("jobs", used_queue), ("runs", used_journal)])
def test_pruning_works_and_makes_room(tmp_path: Path, noun: str, fill: Callable[[Path], Path]) -> None:
    state = fill(tmp_path)
    full = tmp_path / "full"
    command = (noun, "prune", "--keep", "1", "--yes", "--json", "--store", str(full))

    done = on_full(full, state, *command, then=("jobs", "list", "--json", "--store", str(full)))

    assert done.code == 0, done.err
    pruned, _, listed = done.out.partition("\n}\n")
    assert '"deleted": true' in pruned
    assert listed.startswith("["), "the store can be opened again"


def test_a_state_folder_reserves_space_for_deleting(tmp_path: Path) -> None:
    state = used_journal(tmp_path)

    assert (state / RESERVE).stat().st_size == SIZE
    assert (state / RESERVE).stat().st_mode & 0o777 == 0o600

    done = failwell("runs", "prune", "--keep", "1", "--yes", "--store", str(state))

    assert done.code == 0
    assert (state / RESERVE).stat().st_size == SIZE, "the reserve is there for the next time"


def waiting_and_failed(folder: Path) -> Path:
    gate = folder / "gate.yaml"
    gate.write_text(
        "workflow: {name: gate, entry_point: ask}\n"
        "agents: [{name: ask, type: human_gate, prompt: Go on?, options: [{label: a, value: a, route: $end}]}]\n"
    )
    broken = folder / "broken.yaml"
    broken.write_text(
        "workflow: {name: broken, entry_point: a}\nagents: [{name: a, type: set, value: '{{ 1 // 0 }}'}]\n"
    )
    store = ("--no-input", "-q", "--store", str(folder / "state"))
    assert failwell("run", str(gate), "--run-id", "waits", *store).code == 4
    assert failwell("run", str(broken), "--run-id", "failed", *store).code == 1
    return folder / "state"


@needs_mounts
def test_listings_work_without_any_space_left(tmp_path: Path) -> None:
    state = waiting_and_failed(tmp_path)
    full = tmp_path / "full"
    store = ("--json", "--store", str(full))

    done = on_full(full, state, "runs", "list", *store, then=("gates", "list", *store))
    shown = on_full(full, state, "runs", "show", "failed", *store, then=("jobs", "list", *store))

    assert (done.code, shown.code) == (0, 0), done.err + shown.err
    assert '"id": "waits"' in done.out
    assert '"prompt": "Go on?"' in done.out
    assert '"kind": "internal.template_error"' in shown.out


@needs_mounts
@pytest.mark.parametrize(
    "words",
    [("resume", "failed"), ("resume", "waits"), ("gates", "answer", "waits", "ask", "a")],
    ids=" ".join,
)
def test_what_has_to_write_says_that_the_disk_is_full(tmp_path: Path, words: tuple[str, ...]) -> None:
    state = waiting_and_failed(tmp_path)
    full = tmp_path / "full"

    done = on_full(full, state, *words, "--format", "json", "--store", str(full))

    assert (done.code, done.out) == (1, ""), done.err
    assert done.error["kind"] == "resource.disk"
    assert "failwell runs prune" in done.error["hint"]


@needs_mounts
def test_a_disk_that_takes_no_more_files_is_full_too(tmp_path: Path) -> None:
    state = waiting_and_failed(tmp_path)
    full = tmp_path / "full"
    files = 2 + sum(1 for _ in state.rglob("*"))

    for room in (0, 3):
        done = on_crowded(
            full, state, files + room, "resume", "failed", "--format", "json", "--store", str(full)
        )

        assert (done.code, done.out) == (1, ""), done.err
        assert done.error["kind"] == "resource.disk", room
