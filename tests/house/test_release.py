"""What a release rests on: tested bounds, pinned tools, a bill of materials, attested files."""

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import sbom

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / ".github/workflows"


def workflow(name: str) -> dict[str, Any]:
    # YAML reads the key `on` as true.
    return yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_ci_runs_the_tests_with_the_oldest_dependencies() -> None:
    more = workflow("test.yml")["jobs"]["more"]

    assert re.search(r"^exec make .*\btest-lowest\b", (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE)
    assert "test-lowest" in more["strategy"]["matrix"]["target"]
    assert commands(more).strip() == "make ${{ matrix.target }}"


def test_templates_need_a_jinja2_whose_sandbox_holds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    [bound] = [entry for entry in project["optional-dependencies"]["engine"] if entry.startswith("jinja2>=")]

    assert tuple(map(int, bound.partition(">=")[2].split("."))) >= (3, 1, 6)


def test_security_says_how_to_report_and_what_is_protected() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[a-z]+)`", text))

    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[:3] == [
        "Report a vulnerability",
        "Supported versions",
        "What failwell protects",
    ]
    assert "Do not open a public issue." in text
    assert named >= {"tests/hostile", "tests/canary"}
    assert [folder for folder in sorted(named) if not (ROOT / folder).is_dir()] == []


def test_nothing_is_installed_that_is_not_pinned() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    installs = [
        line
        for line in makefile.splitlines()
        if re.match(r"\t@?.*(\$\(call install|pip .*\binstall\b)", line)
    ]

    assert len(installs) >= 5
    # Without its dependencies a requirement brings nothing but the releases that it names.
    assert [line for line in installs if "requirements/locks/" not in line and "--no-deps" not in line] == []


def test_the_tests_run_on_every_python_from_the_oldest_on() -> None:
    tests = workflow("test.yml")["jobs"]["test"]

    assert tests["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert "make PYTHON=python test" in commands(tests)


def test_a_release_attests_the_files_and_the_bill_before_it_publishes_them() -> None:
    jobs = workflow("release.yml")["jobs"]
    build, publish = jobs["build"], jobs["publish"]
    attested = [step["with"] for step in build["steps"] if step.get("uses", "").startswith("actions/attest@")]

    assert re.search(r"^make .*\bcheck test dist$", commands(build), re.MULTILINE)
    assert {"dist/*.whl", "dist/*.tar.gz"} <= set(attested[0]["subject-path"].split())
    assert attested[1] == {"subject-path": "dist/*.whl", "sbom-path": "dist/failwell.cdx.json"}
    assert (build["permissions"]["id-token"], build["permissions"]["attestations"]) == ("write", "write")
    assert publish["needs"] == "build"
    assert publish["steps"][-1]["with"] == {"attestations": True}


@pytest.mark.slow
def test_the_bill_of_a_wheel_lists_it_and_everything_that_it_brings(tmp_path: Path) -> None:
    wheels = pytest.importorskip("hatchling.builders.wheel", reason="hatchling comes with `make check`")
    pytest.importorskip("cyclonedx_py", reason="cyclonedx-bom comes with `make check`")
    [wheel] = wheels.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])

    bill = sbom.bill_of(Path(wheel))

    subject = bill["metadata"]["component"]
    components = {part["name"].lower().replace("_", "-"): part for part in bill["components"]}
    assert bill["bomFormat"] == "CycloneDX"
    assert subject["name"] == "failwell"
    assert subject["hashes"] == [
        {"alg": "SHA-256", "content": hashlib.sha256(Path(wheel).read_bytes()).hexdigest()}
    ]
    assert components.keys() >= {"cronsim", "jsonschema-rs", "jinja2", "pyyaml", "rich", "markdown-it-py"}
    assert [
        name
        for name, part in components.items()
        if not (part["version"] and part["purl"] and part["licenses"])
    ] == []
