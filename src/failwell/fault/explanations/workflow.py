"""Explanations: what a workflow's routes and sub-workflows end in."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "subworkflow.failed": explain(
        """
        A sub-workflow failed and left no typed error behind: it could not be loaded, or its run was
        lost. A typed error of the child keeps its own kind when it reaches the parent, with one
        frame added per boundary, so parents route on the original kind and meet this one only when
        there is nothing better. A child that ended itself as failed is `subworkflow.terminated`.
        """,
        """
        1. Open the child's own record; the report names its run.
        2. Validate the child's file.
        3. Route on the kinds that the child declares, and on this one as the last resort.
        """,
        """
        agents:
          - name: import_customer
            type: workflow
            workflow: import.yaml
            routes:
              - on_error: external.crm.duplicate
                to: merge
              - on_error: subworkflow.failed
                halt: {message: "import.yaml left no typed error"}
              - to: $end
        """,
        "yaml",
    ),
    "subworkflow.terminated": explain(
        """
        A sub-workflow reached a `terminate` step with `status: failed`. Its author decided that
        this is a failure and gave a reason, which is in the details with the child's output. It is
        not repeated, because it was a decision. A child that broke without one is
        `subworkflow.failed`; a `halt` ends the run where it stands and is `halt.intentional`.
        """,
        """
        1. Read `reason` in the details.
        2. Route on this kind where the parent can do something else instead.
        """,
        """
        agents:
          - name: check_credit
            type: workflow
            workflow: credit.yaml
            routes:
              - on_error: subworkflow.terminated
                to: refuse_order
              - to: $end
          - name: refuse_order
            type: set
            value: "refused: {{ check_credit.error.details.reason }}"
        """,
        "yaml",
    ),
    "retry.exhausted": explain(
        """
        Every re-run that a `retry` route allows was made, the last one failed as well, and no later
        route took the error. The last failure is kept as the cause, with its own kind. `max` counts
        re-runs, so `max: 3` means four executions. The retries of a provider call lie below and end
        in `provider.exhausted`.
        """,
        """
        1. Act on the kind of the cause.
        2. Put a route after the retry route that says what follows when it is spent.
        3. Raise `max` only if the failure really passes with time.
        """,
        """
        agents:
          - name: publish
            type: script
            command: ./publish.sh
            routes:
              - on_error: internal.script_error
                retry: {max: 3, backoff: exponential, initial_seconds: 1, jitter: 0}
              # Taken once the retries are spent. Without it the run ends as retry.exhausted.
              - on_error: internal.script_error
                to: tell_the_author
              - to: $end
        """,
        "yaml",
    ),
    "halt.intentional": explain(
        """
        A route with `halt` was taken: the workflow's author decided that the run ends here, with a
        message. The error that led to it, if any, is under `details.cause`. A halt is not passed on
        to a parent as the original kind and is never retried. A person's stop from outside is
        `cancel.run`.
        """,
        """
        1. Read the author's message; it should say what to do.
        2. Do it, then resume or start the run again.
        """,
        """
        agents:
          - name: deploy
            type: script
            command: ./deploy.sh
            raises: [external.deploy.frozen]
            routes:
              # The run ends as halt.intentional with this message.
              - on_error: external.deploy.frozen
                halt: {message: "Deploys are frozen until {{ error.details.until }}."}
              - to: $end
        """,
        "yaml",
    ),
}
