"""Names and limits that workers and submitters share. Workflow code imports this module too."""

LARGEST = 1_800_000
"""Bytes of a payload, with room for what Temporal adds."""
JOB_WORKFLOW = "failwell.job"
"""The workflow type of one job, on the queue of workflow runs."""
JOB_PREFIX = "failwell-job/"
"""How the id of the workflow of a job begins; the id of the job follows."""
JOB_ACTIVITY = "failwell.job"
"""The activity type that runs one job, on the queue of its instance."""
HEARTBEAT_TIMEOUT = 20.0
"""Seconds without a heartbeat after which the machine of a job counts as lost."""
BEAT = 2.0
"""Seconds between two heartbeats. A worker learns from the reply that a job was cancelled."""
MOST_STARTS = 5
"""How often a job is started at most if its machine is lost each time. The local queue has the same limit."""
LONGEST = 30 * 86_400.0
"""Seconds that a job may run in all, its attempts and the waits between them included."""


def instance_queue(task_queue: str, instance: str) -> str:
    """The task queue of a capability or of one of its instances.

    Every machine that has the instance polls it, so a capability that needs an accelerator runs where there is one.
    """
    return f"{task_queue}/{instance}"
