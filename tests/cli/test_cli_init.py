"""`failwell init`: each starter is valid, runs as it is, and never replaces a file by itself."""

from pathlib import Path
from typing import Any

import pytest

from failwell.cli.runs.init import STARTERS
from tests.cli.running import Done, failwell


def run(folder: Path, *arguments: str) -> Done:
    return failwell(*arguments, cwd=folder, env={"FAILWELL_STORE": str(folder / "store")})


@pytest.mark.parametrize("starter", STARTERS)
def test_a_starter_is_valid_without_a_warning_and_the_printed_commands_work(
    starter: str, tmp_path: Path
) -> None:
    written = run(tmp_path, "init", starter, "-o", "my flow.yaml")

    first, second = [line.removeprefix("next: ") for line in written.out.splitlines()[1:]]
    assert first == "failwell validate 'my flow.yaml'"
    assert second == "failwell run 'my flow.yaml'"
    assert run(tmp_path, "validate", "--strict", "my flow.yaml").code == 0
    assert run(tmp_path, "run", "my flow.yaml", "--skip-gates", "-q").code == 0


@pytest.mark.parametrize(
    ("starter", "inputs", "result"),
    [
        ("pipeline", ["source=orders"], {"published": True, "rows": 3}),
        ("pipeline", ["source=missing"], {"published": False, "why": "there is no missing"}),
        ("pipeline", ["source=busy"], {"published": False, "why": "busy is busy"}),
        ("review", [], {"text": "Draft about release notes."}),
        ("batch", [], {"processed": 2, "failed": ["south"]}),
        ("batch", ['items=[{"id": "a", "size": 0}]'], {"processed": 0, "failed": ["a"]}),
    ],
)
def test_what_the_head_of_a_starter_says_happens(
    starter: str, inputs: list[str], result: dict[str, Any], tmp_path: Path
) -> None:
    run(tmp_path, "init", starter)
    options = [option for value in inputs for option in ("-i", value)]

    done = run(tmp_path, "run", "workflow.yaml", "--skip-gates", *options)

    assert done.data == result
    assert ("again in" in done.err) == ("source=busy" in inputs)


def test_the_loop_of_the_review_goes_round_with_a_comment(tmp_path: Path) -> None:
    run(tmp_path, "init", "review")
    run(tmp_path, "run", "workflow.yaml", "--run-id", "r")

    run(tmp_path, "gates", "answer", "r", "review", "again", "--payload", '{"comment": "Shorter."}')
    run(tmp_path, "resume", "r")
    run(tmp_path, "gates", "answer", "r", "review#2", "approve")

    assert run(tmp_path, "resume", "r", "-q").data == {"text": "Draft about release notes. Shorter."}


def test_an_existing_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    target = tmp_path / "workflow.yaml"
    target.write_text("mine")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "elsewhere.yaml")

    refused, linked = run(tmp_path, "init"), run(tmp_path, "init", "-o", "link.yaml")
    assert (refused.code, linked.code) == (2, 2)
    assert "`workflow.yaml` exists; `--force` replaces it" in refused.err
    assert target.read_text() == "mine"
    assert not (tmp_path / "elsewhere.yaml").exists()

    forced = run(tmp_path, "init", "--force", "--json")
    assert forced.data["next"] == ["failwell validate workflow.yaml", "failwell run workflow.yaml"]
    assert target.read_text().startswith("# A pipeline")


def test_bad_arguments_say_what_is_valid(tmp_path: Path) -> None:
    unknown, missing = run(tmp_path, "init", "pipline"), run(tmp_path, "init", "-o", "no/such/folder.yaml")
    listed = run(tmp_path, "init", "--list", "--json")

    assert unknown.code == 2
    assert "did you mean `pipeline`?" in unknown.err
    assert "cannot write `no/such/folder.yaml`" in missing.err
    assert [entry["id"] for entry in listed.data] == list(STARTERS)
    assert list(tmp_path.iterdir()) == []
