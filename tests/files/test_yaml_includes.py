"""`!file`: parts of a workflow that stand in files of their own."""

import os
from pathlib import Path

import pytest

from failwell.files.includes import MAX_FILES
from tests.files.reading import read_file


def write(folder: Path, **files: str) -> Path:
    """Files by name, `__` standing for a dot and `_in_` for a folder; the root is `root.yaml`."""
    for name, text in files.items():
        path = folder / name.replace("_in_", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "root.yaml"


def test_yaml_is_parsed_and_other_files_are_text(tmp_path: Path) -> None:
    root = write(
        tmp_path, root__yaml="a: !file part.yaml\nb: !file parts/prompt.md\n", part__yaml="[1, {x: yes}]",
        parts_in_prompt__md="- not: yaml\n",
    )  # fmt: skip

    tree, mistakes, files = read_file(root)

    assert mistakes == []
    assert tree is not None
    assert tree.plain() == {"a": [1, {"x": "yes"}], "b": "- not: yaml\n"}
    assert tree.value["a"].place.file == str(tmp_path / "part.yaml")
    assert tree.value["b"].folder == str(tmp_path / "parts")
    assert list(files) == [str(tmp_path / name) for name in ("root.yaml", "part.yaml", "parts/prompt.md")]


def test_an_include_starts_from_the_file_it_stands_in(tmp_path: Path) -> None:
    root = write(
        tmp_path, root__yaml="a: !file parts/one.yaml\n", parts_in_one__yaml="b: !file two.yaml", parts_in_two__yaml="3"
    )  # fmt: skip

    tree, mistakes, _ = read_file(root)

    assert mistakes == []
    assert tree is not None
    assert tree.plain() == {"a": {"b": 3}}


def test_a_circle_of_includes_is_named(tmp_path: Path) -> None:
    root = write(tmp_path, root__yaml="a: !file one.yaml\n", one__yaml="b: !file root.yaml\n")

    _, mistakes, _ = read_file(root)

    assert [mistake.message for mistake in mistakes] == ["`!file`: `root.yaml` includes itself"]
    assert mistakes[0].place is not None
    assert mistakes[0].place.file == str(tmp_path / "one.yaml")


def test_a_missing_file_is_named_where_it_is_asked_for(tmp_path: Path) -> None:
    root = write(tmp_path, root__yaml="a:\n  - !file gone.md\n")

    _, mistakes, _ = read_file(root)

    assert mistakes[0].message == "`!file`: `gone.md` does not exist"
    assert (mistakes[0].kind, mistakes[0].path) == ("validation.path_not_found", "a[0]")


@pytest.mark.parametrize("path", ["../outside.md", "/etc/hostname", "link.md"])
def test_a_file_outside_the_project_is_refused_unless_allowed(tmp_path: Path, path: str) -> None:
    project = tmp_path / "project"
    root = write(project, root__yaml=f"a: !file {path}\n")
    (tmp_path / "outside.md").write_text("secret", encoding="utf-8")
    (project / "link.md").symlink_to(tmp_path / "outside.md")

    _, mistakes, files = read_file(root)
    allowed, _, _ = read_file(root, allow_outside=True)

    assert "outside the project" in mistakes[0].message
    assert "--allow-outside" in mistakes[0].hint
    assert len(files) == 1
    assert allowed is not None
    assert path == "/etc/hostname" or allowed.plain() == {"a": "secret"}


def test_the_project_is_the_nearest_folder_with_git(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path, shared__md="text")
    root = write(tmp_path / "flows", root__yaml="a: !file ../shared.md\n")

    tree, mistakes, _ = read_file(root)

    assert mistakes == []
    assert tree is not None
    assert tree.plain() == {"a": "text"}


def test_a_pipe_or_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    root = write(tmp_path, root__yaml="a: !file pipe\nb: !file .\n")
    os.mkfifo(tmp_path / "pipe")

    _, mistakes, _ = read_file(root)

    assert ["not a regular file" in mistakes[0].message, "a folder" in mistakes[1].message] == [True, True]
    assert {mistake.kind for mistake in mistakes} == {"validation.path_wrong_type"}


def test_includes_that_double_each_other_are_stopped(tmp_path: Path) -> None:
    for number in range(40):
        inner = f"[!file f{number + 1}.yaml, !file f{number + 1}.yaml]"
        (tmp_path / f"f{number}.yaml").write_text(inner, encoding="utf-8")
    (tmp_path / "f40.yaml").write_text("[x, x]", encoding="utf-8")
    root = write(tmp_path, root__yaml="a: !file f0.yaml\n")

    _, mistakes, _ = read_file(root)

    assert any("expands to more than" in mistake.message for mistake in mistakes)


def test_a_mistake_in_a_part_stands_in_that_part(tmp_path: Path) -> None:
    root = write(tmp_path, root__yaml="a: !file part.yaml\n", part__yaml="x: 1\nx: 2\n")

    _, mistakes, _ = read_file(root)

    assert mistakes[0].place is not None
    assert (mistakes[0].place.file, mistakes[0].line) == (str(tmp_path / "part.yaml"), "x: 2")


def test_variables_are_put_into_included_texts(tmp_path: Path) -> None:
    root = write(tmp_path, root__yaml="a: !file ${NAME}.md\n", hello__md="to ${WHO:-you}, ${NAME}")

    tree, mistakes, files = read_file(root, NAME="hello")

    assert mistakes == []
    assert tree is not None
    assert tree.plain() == {"a": "to you, hello"}
    assert files[str(tmp_path / "hello.md")][1] == "to ${WHO:-you}, ${NAME}"


def test_more_files_than_a_workflow_needs_are_refused(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        (tmp_path / f"f{number}.md").write_text("x", encoding="utf-8")
    root = write(tmp_path, root__yaml="\n".join(f"- !file f{n}.md" for n in range(MAX_FILES + 1)))

    _, mistakes, files = read_file(root)

    assert len(files) == MAX_FILES
    assert "files or" in mistakes[0].message


@pytest.mark.parametrize("levels", [1, 60])
def test_a_tower_of_includes_is_refused(tmp_path: Path, levels: int) -> None:
    for number in range(100):
        inner = "[" * levels + f"!file f{number + 1}.yaml" + "]" * levels
        (tmp_path / f"f{number}.yaml").write_text(inner, encoding="utf-8")
    root = write(tmp_path, root__yaml="!file f0.yaml\n")

    _, mistakes, _ = read_file(root)

    assert any("are nested more than" in mistake.message for mistake in mistakes)
    assert any("nesting is deeper" in mistake.message for mistake in mistakes) is (levels == 60)
