"""Templates that are made of several files."""

from pathlib import Path

import pytest

from failwell.errors.fault import Fault
from failwell.workflows.plan import Template
from failwell.workflows.template.render import FolderParts, render
from tests.workflows.template.rendering import NamesFrom

NAMES = NamesFrom({"a": {"output": "A"}})


def a_project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "prompts").mkdir(parents=True)
    (project / "prompts" / "part.md").write_text("part {{ a.output }}", encoding="utf-8")
    (project / "prompts" / "outer.md").write_text("{% include 'part.md' %}!", encoding="utf-8")
    (project / "prompts" / "macros.md").write_text(
        "{% macro m(x) %}<{{ x }}>{% endmacro %}", encoding="utf-8"
    )
    (project / "prompts" / "frame.md").write_text("[{% block b %}{% endblock %}]", encoding="utf-8")
    (project / "prompts" / "env.md").write_text("home is ${HOME_NAME}", encoding="utf-8")
    (project / "prompts" / "self.md").write_text("{% include 'self.md' %}", encoding="utf-8")
    (tmp_path / "secret.md").write_text("CANARY", encoding="utf-8")
    return project


def rendered(project: Path, text: str) -> str:
    folder = str(project / "prompts")
    parts = FolderParts(str(project), lambda part: part.replace("${HOME_NAME}", "here"))
    return render(Template(text=text, folder=folder), NAMES, parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{% include 'part.md' %}", "part A"),
        ("{% include 'outer.md' %}", "part A!"),
        ("{% from 'macros.md' import m %}{{ m(1) }}", "<1>"),
        ("{% import 'macros.md' as macros %}{{ macros.m(2) }}", "<2>"),
        ("{% extends 'frame.md' %}{% block b %}{{ a.output }}{% endblock %}", "[A]"),
        ("{% include 'env.md' %}", "home is here"),
        ("{% include 'absent.md' ignore missing %}x", "x"),
    ],
)
def test_parts_are_found_beside_the_template(tmp_path: Path, text: str, expected: str) -> None:
    assert rendered(a_project(tmp_path), text) == expected


@pytest.mark.parametrize(
    "name", ["../../secret.md", "../prompts/../../secret.md", "/etc/hostname", "absent.md"]
)
def test_nothing_outside_of_the_project_is_read(tmp_path: Path, name: str) -> None:
    project = a_project(tmp_path)

    with pytest.raises(Fault) as caught:
        rendered(project, "{% include '" + name + "' %}")

    assert "CANARY" not in str(caught.value)


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    project = a_project(tmp_path)
    (project / "prompts" / "link.md").symlink_to(tmp_path / "secret.md")

    with pytest.raises(Fault):
        rendered(project, "{% include 'link.md' %}")


def test_a_part_that_includes_itself_is_stopped(tmp_path: Path) -> None:
    project = a_project(tmp_path)

    with pytest.raises(Fault):
        rendered(project, "{% include 'self.md' %}")
