"""`run --dry-run` and `show`: the plan, the inputs, the limits and what sub-workflows hold, before anything runs."""

from pathlib import Path

import pytest

from tests.cli.running import failwell

FLOW = """
workflow:
  name: release
  entry_point: test
  limits: {timeout_seconds: 600, budget_usd: 2, max_iterations: 30}
  input:
    version: {type: string, description: what to release}
    regions: {type: array, default: [eu, us]}
    token: {type: string, secret: true, default: tok-5f8a11c09d}
agents:
  - name: test
    type: script
    command: sh
    args: [-c, "make test V={{ workflow.input.version }}"]
    timeout: 90s
    routes:
      - {to: deploy}
      - {on_error: {category: transient}, retry: {max: 2}}
      - {on_error: true, to: report}
  - {name: push, type: workflow, workflow: push.yaml, timeout_seconds: 60}
  - {name: report, type: set, value: failed}
for_each:
  - {name: deploy, source: workflow.input.regions, as: region, agent: push, max_concurrent: 2, timeout_seconds: 5m}
"""
PUSH = """
workflow: {name: push, entry_point: upload}
agents:
  - {name: upload, type: script, command: upload, routes: [{to: verify, when: "{{ output.more }}"}, {to: $end}]}
  - {name: verify, type: workflow, workflow: push.yaml, max_depth: 3}
"""


@pytest.fixture
def flow(tmp_path: Path) -> str:
    (tmp_path / "push.yaml").write_text(PUSH)
    (tmp_path / "flow.yaml").write_text(FLOW)
    return str(tmp_path / "flow.yaml")


def test_a_person_reads_the_whole_plan_and_nothing_runs(flow: str, tmp_path: Path) -> None:
    done = failwell("run", flow, "--dry-run", "-i", "version=1.2", "--store", str(tmp_path / "store"))

    assert done.code == 0
    for line in (
        '  version  "1.2"',
        '  regions  ["eu", "us"]',
        '  token    "(secret)"',
        "  timeout_seconds     600",
        "├── test [script] (entry)",
        "│   │   runs: sh -c 'make test V={{ workflow.input.version }}'",
        "│   │   limits: timeout_seconds 90",
        "│   ├─↻ transient, retry ×2 after 5 s",
        "│   └─✗ any error: report",
        "└── deploy [for_each, region in workflow.input.regions]",
        "    │   limits: timeout_seconds 300, failure_mode fail_fast, max_concurrent 2",
        "    ├── push [workflow, push.yaml]",
        "    │   ├── upload [script] (entry)",
        "    │   │   ├─→ when output.more: verify",
        "nothing was run",
    ):
        assert any(each.startswith(line) for each in done.out.splitlines()), f"{line}\n{done.out}"
    assert "5f8a11c09d" not in done.out
    assert not (tmp_path / "store").exists()


def test_a_program_gets_it_as_data(flow: str) -> None:
    data = failwell("run", flow, "--dry-run", "-i", "version=1.2", "--json").data

    assert (data["workflow"], data["entry"]) == ("release", "test")
    assert data["inputs"] == {"version": "1.2", "regions": ["eu", "us"], "token": "(secret)"}
    assert data["limits"]["max_iterations"] == 30
    nodes = {node["id"]: node for node in data["nodes"]}
    assert list(nodes) == [
        "test",
        "report",
        "deploy",
        "deploy/push",
        "deploy/push/upload",
        "deploy/push/verify",
    ]
    assert nodes["test"]["routes"][2] == {
        "to": "report",
        "way": "error",
        "for": "any error",
        "on_error": True,
    }
    assert nodes["deploy/push/upload"]["routes"][0]["to"] == "deploy/push/verify"
    assert nodes["deploy/push"]["limits"]["timeout_seconds"] == 60


def test_an_agent_gets_tables(flow: str) -> None:
    out = failwell("run", flow, "--dry-run", "-i", "version=1.2", "--agent").out

    assert '| `token` | "(secret)" |' in out
    assert "| `deploy/push/upload` | script | upload |" in out
    assert "Nothing was run." in out


def test_a_mistake_is_told_instead_of_a_plan(flow: str) -> None:
    done = failwell("run", flow, "--dry-run")

    assert (done.code, done.out) == (2, "")
    assert "version" in done.err


def test_show_has_the_inputs_and_what_sub_workflows_hold(flow: str) -> None:
    text = failwell("show", flow).out
    data = failwell("show", flow, "--json").data
    markdown = failwell("show", flow, "--format", "markdown").out
    mermaid = failwell("show", flow, "--picture", "mermaid").out

    assert "version  string  required" in text
    assert 'regions  array   default ["eu", "us"]' in text
    assert 'default "(secret)", secret' in text
    assert "    │   ├── upload [script] (entry)" in text
    # A file that runs itself is unfolded once.
    assert text.count("upload [script]") == 1
    assert [entry["id"] for entry in data if entry["sort"] == "input"] == ["version", "regions", "token"]
    assert {"deploy/push/upload", "deploy/push/verify"} <= {entry["id"] for entry in data}
    assert "| `version` | string | required | what to release |" in markdown
    assert "upload" in mermaid
    for output in (text, str(data), markdown, mermaid):
        assert "5f8a11c09d" not in output


def test_a_sub_workflow_that_cannot_be_read_is_one_step_and_a_picture_is_drawn(
    flow: str, tmp_path: Path
) -> None:
    assert failwell("show", flow, "-o", str(tmp_path / "flow.svg")).code == 0
    (tmp_path / "push.yaml").unlink()

    shown = failwell("show", flow)

    assert shown.code == 0
    assert "push [workflow, push.yaml]" in shown.out
