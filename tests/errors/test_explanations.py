"""Every kind of the runtime is explained, and its example is code that means that kind."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from failwell.adapters.describe import describe
from failwell.errors import faults
from failwell.errors.explanations import Explanation, explanation
from failwell.errors.facts import ResourceShortfall
from failwell.errors.fault import Fault
from failwell.errors.kind_registry import KIND_PATTERN, OWNED_PREFIXES, find_kind
from failwell.errors.kinds_table import CATALOGUE
from tests.specimens import each
from tools.docs.kinds import kinds_page, namespace_page, namespaces

SOURCE = Path(__file__).resolve().parents[2] / "src"
NAMES = [kind.name for kind in CATALOGUE]
FAULTS: dict[str, Any] = {
    **{made.__name__: made for made in faults.FAMILIES},
    **{
        name: made
        for name, made in vars(faults).items()
        if isinstance(made, type) and issubclass(made, Fault)
    },
    "Fault": Fault,
}


def words_for(name: str) -> Explanation:
    words = explanation(name)
    assert words is not None, f"{name} has no explanation"
    return words


def names_with(language: str) -> list[str]:
    return [name for name in NAMES if words_for(name).language == language]


def faults_in(example: str) -> list[Fault]:
    """The faults that an example builds, built."""
    found: list[Fault] = []
    for node in ast.walk(ast.parse(example)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("failwell.") in FAULTS:
            built = ast.unparse(node).removeprefix("failwell.")
            found.append(eval(built, {**FAULTS, "ResourceShortfall": ResourceShortfall}))
    return found


def printed_by(example: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What an example prints. The front door's names are given from the rooms they live in."""
    source = example.replace("import failwell\n", "").replace("failwell.capability", "failwell.errors.faults")
    exec(compile(source, "example", "exec"), {"failwell": SimpleNamespace(describe=describe, Fault=Fault)})
    return capsys.readouterr().out.splitlines()


def routes_of(workflow: Any) -> list[dict[str, Any]]:
    return [route for step in workflow["agents"] for route in step.get("routes", [])]


def kinds_of(route: dict[str, Any]) -> list[str]:
    """The kinds that a route names; none for a success route and for a catch-all."""
    asked: Any = route.get("on_error", True)
    if asked is True:
        return []
    return [asked] if isinstance(asked, str) else asked


@each("name", NAMES)
def test_every_kind_says_why_what_to_do_and_how_it_looks(name: str) -> None:
    words = words_for(name)

    assert 2 <= len(re.findall(r"[.!?](?= |$)", words.cause)) <= 5
    steps = words.remedy.splitlines()
    assert [step.split(" ")[0] for step in steps] == [f"{n}." for n in range(1, len(steps) + 1)]
    assert all(step.endswith(".") for step in steps)
    assert name in words.example


@each("name", NAMES)
def test_the_words_mention_only_kinds_that_exist(name: str) -> None:
    words = words_for(name)

    mentioned = {
        said
        for said in re.findall(r"`([^`]+)`", f"{words.cause} {words.remedy}")
        if KIND_PATTERN.fullmatch(said) and said.startswith(OWNED_PREFIXES)
    }

    assert [said for said in mentioned if find_kind(said) is None] == []
    assert name not in mentioned, "an explanation sets its kind apart from others"


def test_no_explanation_is_left_over_from_a_kind_that_is_gone() -> None:
    files = sorted((SOURCE / "failwell/errors/data/explanations").glob("*.toml"))

    written = [name for path in files for name in tomllib.loads(path.read_text(encoding="utf-8"))]

    assert sorted(written) == sorted(NAMES)


@each("name", names_with("python"))
def test_a_python_example_compiles(name: str) -> None:
    compile(words_for(name).example, name, "exec")


@each("name", names_with("python"))
def test_a_fault_in_an_example_can_be_raised_and_has_the_kind_it_shows(name: str) -> None:
    assert {fault.kind for fault in faults_in(words_for(name).example)} <= {name}


@pytest.mark.parametrize("name", names_with("python"))
def test_an_example_prints_what_it_says_it_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    example = words_for(name).example
    promised = re.findall(r"print\(.*\)  # (.*)", example)

    printed = printed_by(example, capsys)

    assert printed, "an example shows something"
    assert [line for line in promised if line not in printed] == []


def test_most_python_examples_raise_a_fault() -> None:
    plain = {name for name in names_with("python") if not faults_in(words_for(name).example)}

    assert plain == {
        "internal.file_unavailable",
        "internal.io_error",
        "internal.unknown",
        "provider.connection",
        "resource.disk",
        "resource.file_handles",
        "resource.system_memory",
        "validation.path_denied",
        "validation.path_not_found",
        "validation.path_wrong_type",
    }


@each("name", names_with("yaml"))
def test_a_yaml_example_is_a_workflow_whose_routes_name_known_kinds(name: str) -> None:
    workflow = yaml.safe_load(words_for(name).example)

    routed = [kind for route in routes_of(workflow) for kind in kinds_of(route)]
    unknown = [kind for kind in routed if kind.startswith(OWNED_PREFIXES) and find_kind(kind) is None]
    assert [step["name"] for step in workflow["agents"]]
    assert unknown == []


@each("name", names_with("yaml"))
def test_each_route_of_a_yaml_example_has_exactly_one_action(name: str) -> None:
    workflow = yaml.safe_load(words_for(name).example)

    actions = [{"to", "retry", "halt", "propagate"} & set(route) for route in routes_of(workflow)]

    assert [len(action) for action in actions] == [1] * len(actions)


@pytest.mark.parametrize("name", ["external.git.drift", "provider.no_such_kind", "provider", ""])
def test_a_kind_that_the_runtime_does_not_own_has_no_explanation(name: str) -> None:
    assert explanation(name) is None


def test_the_words_are_not_loaded_until_somebody_asks() -> None:
    program = (
        "import sys, failwell.errors.kind_registry, failwell.errors.faults, failwell.errors.faults\n"
        "assert not [m for m in sys.modules if m.startswith('failwell.errors.explanations')]\n"
        "from failwell.errors.explanations import explanation\n"
        "explanation('tool.busy')\n"
        "from failwell.errors import explanations\n"
        "print(explanations._namespace.cache_info().currsize)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )

    assert done.stdout.split() == ["1"], done.stderr


def test_every_link_on_the_page_of_kinds_leads_to_a_heading() -> None:
    pages = {name: namespace_page(name) for name in namespaces()}

    headings = {name: re.findall(r"^## (.+)$", page, re.MULTILINE) for name, page in pages.items()}
    targets = {
        f"kinds/{name}.md#{re.sub(r'[^a-z_-]', '', heading)}"
        for name, found in headings.items()
        for heading in found
    }
    assert set(re.findall(r"\]\((kinds/[^)]+#[^)]+)\)", kinds_page())) == targets
    assert [heading for found in headings.values() for heading in found] == NAMES


def test_the_wheel_holds_the_data_files() -> None:
    from hatchling.builders.wheel import WheelBuilder

    builder = WheelBuilder(str(SOURCE.parent))
    packed = {file.distribution_path for file in builder.recurse_included_files()}

    written = {str(path.relative_to(SOURCE)) for path in (SOURCE / "failwell/errors/data").rglob("*.toml")}
    assert written
    assert written <= packed
