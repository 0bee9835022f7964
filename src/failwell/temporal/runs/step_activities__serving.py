"""What a Temporal worker needs in order to serve workflow runs."""

from datetime import timedelta
from typing import Any

from temporalio.worker import UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from failwell.temporal.runs.run_workflow import RunWorkflow
from failwell.temporal.runs.step_activities import StepActivities

_BEAT = timedelta(seconds=1)
"""How often heartbeats reach the server at most. A cancelled step learns of it by one."""
PASSED_THROUGH = ("failwell", "jsonschema_rs", "minijinja", "yaml")
"""Modules that the workflow's sandbox does not load again: ours, which are pure there, and compiled ones."""


def workflow_runner() -> SandboxedWorkflowRunner:
    """Runs workflow code in Temporal's sandbox."""
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    )


def run_worker_options(
    steps: StepActivities, *workflows: type[Any], is_sandboxed: bool = True
) -> dict[str, Any]:
    """Options of a `temporalio.worker.Worker` on the task queue of workflow runs. Close `steps` after it has ended.

    The sandbox finds workflow code that is not deterministic. Workers of users do without it: it costs a fifth of the
    processor time of a step, and the code that it would check is the same as in the tests.
    """
    return {
        "workflows": [RunWorkflow, *workflows],
        "activities": steps.activities,
        "workflow_runner": workflow_runner() if is_sandboxed else UnsandboxedWorkflowRunner(),
        "max_heartbeat_throttle_interval": _BEAT,
        "default_heartbeat_throttle_interval": _BEAT,
    }
