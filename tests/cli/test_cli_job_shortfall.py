"""A workflow goes on where a job says itself that it needs more than the machine has."""

from pathlib import Path

from tests.cli.job_place import Place

MODULE = """
from failwell.capability import CapabilityResourceError, ResourceShortfall

def greedy(value=None):
    raise CapabilityResourceError(
        "the model does not fit", resource_shortfall=ResourceShortfall("system_ram_mb", 900_000_000, 1_000)
    )
"""
WORKFLOW = """
workflow:
  name: jobs
  entry_point: first
agents:
  - name: first
    type: job
    job: greedy
    arguments: {value: 1}
    routes:
      - to: told
        on_error: resource.never_fits
      - to: $end
  - name: told
    type: set
    value: "went on"
    routes:
      - to: $end
"""


def test_a_workflow_goes_on_where_a_job_tells_that_it_needs_more_than_there_is(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "greedy.py").write_text(MODULE)
    (tmp_path / "greedy.toml").write_text('name = "greedy"\nobject = "greedy:greedy"\n')
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    added = place("capabilities", "add", str(tmp_path / "greedy.toml"))

    done = place("run", str(tmp_path / "w.yaml"), "--quiet")
    [job] = place("jobs", "list", "--status", "failed", "--json").data

    assert added.code == 0, added.err
    assert done.code == 0, done.err
    assert done.data["result"] == "went on"
    assert (job["error"]["kind"], job["attempts"]) == ("resource.never_fits", 1)
    assert job["error"]["resource_shortfall"]["needed"] == 900_000_000
