"""Run a workflow from Python: it fails with a typed error, is fixed, and is resumed.

Run it: python examples/workflow_from_python.py
"""

import tempfile
from pathlib import Path

from failwell import workflows

FLOW = """\
workflow: {name: publish, entry_point: build}
agents:
  - name: build
    type: script
    command: sh
    args: ["-c", "echo built >> @FOLDER@/log"]
    routes: [{to: upload}]
  - name: upload
    type: script
    command: sh
    args:
      - -c
      - |
        test -e @FOLDER@/token && exit 0
        printf '{"kind": "external.no_token", "message": "there is no token"}' > "$FAILWELL_ERROR_OUT"
        exit 1
    raises: [external.no_token]
    routes: [{to: $end}]
output: {published: "yes"}
"""


def main() -> None:
    """Run, fix the cause, resume."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "publish.yaml"
        file.write_text(FLOW.replace("@FOLDER@", name))

        workflow = workflows.load(file)
        print(f"{workflow.name}: {', '.join(workflow.nodes)}")

        failed = workflows.run(workflow, store=folder / "state")
        assert failed.report is not None
        print(f"first: {failed.status}, {failed.report.kind}: {failed.report.message}")

        (folder / "token").touch()
        resumed = workflows.resume(failed.id, store=folder / "state")
        print(f"then:  {resumed.status}, {resumed.output}")

        builds = (folder / "log").read_text().count("built")
        print(
            f"the build ran {builds} time; {len(workflows.list_runs(store=folder / 'state'))} runs are recorded"
        )


if __name__ == "__main__":
    main()
