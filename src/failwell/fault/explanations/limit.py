"""Explanations: a limit that a person set was reached."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "limit.budget_exceeded": explain(
        """
        The money already spent plus the estimate for the next call exceeds the budget, so the call
        was not made. Input and output tokens count, failed attempts count, and parallel branches
        reserve before they call, so they cannot overshoot together. It is your own limit; the
        provider's is `provider.quota_exhausted`. With the pausing mode the run waits for approval
        instead, and this kind appears only if approval is refused.
        """,
        """
        1. Look at the ledger: which step and which model spent the money.
        2. Raise the budget and resume; what is finished is not paid again.
        3. Or use a cheaper model for the step that dominates.
        """,
        """
        workflow:
          name: nightly
          entry_point: summarise
          # The call that would pass 2.50 USD is not made: the run ends as limit.budget_exceeded.
          limits: {budget_usd: 2.5, budget_mode: enforce}
        agents:
          - name: summarise
            prompt: "{{ workflow.input.text }}"
        """,
        "yaml",
    ),
    "limit.run_timeout": explain(
        """
        The run reached its overall time limit, or a gate with a deadline and a rejecting default
        ran out. Steps under way are ended with their processes; whether they had finished is not
        always known. Finished steps stay finished. A single script that overruns is
        `internal.script_timeout`, a single job `worker.timeout`.
        """,
        """
        1. Look at the timeline of the run: waiting for a person counts, too.
        2. Raise the limit and resume.
        3. Check the effects of the step that was cut off before it runs again.
        """,
        """
        workflow:
          name: weekly_report
          entry_point: collect
          # After an hour whatever still runs is ended, and the run with it: limit.run_timeout.
          limits: {timeout_seconds: 3600}
        agents:
          - name: collect
            type: workflow
            workflow: collect.yaml
        """,
        "yaml",
    ),
    "limit.turn_limit": explain(
        """
        A conversation made as many turns as it may: calls of the model within one tool loop, or
        turns of a whole session. Models that call tools in circles are the usual cause. Tools that
        were running have finished; their results were not sent on. It is a normal end by your own
        rule, not a cancellation.
        """,
        """
        1. Read the last turns: the same tool with the same arguments means a circle.
        2. Improve the instruction or the tool's answer that sends the model round.
        3. Raise the limit and resume if the work was really progressing.
        """,
        """
        import failwell

        fault = failwell.Fault(
            kind="limit.turn_limit",
            message="the agent made 17 calls without an answer",
            details={"turns": 17},
        )
        report = failwell.describe(fault)
        print(report.category, report.user_action.kind)  # limit raise_limit
        """,
    ),
    "limit.iterations": explain(
        """
        The workflow executed as many steps as `max_iterations` allows, over all steps together.
        Each re-run by a retry route counts, as do the members of groups. One step that was entered
        too often is `limit.visits`. A loop whose exit condition never holds is the usual cause; a
        long but finite workflow is the other.
        """,
        """
        1. Read the list of executed steps and look for a repeating pattern.
        2. Correct the `when` that should have left the loop.
        3. Raise `limits.max_iterations` and resume if the work was only long.
        """,
        """
        workflow:
          name: fix_until_green
          entry_point: fix
          # The step after the twelfth is not taken: the run ends as limit.iterations.
          limits: {max_iterations: 12}
        agents:
          - name: fix
            prompt: "Make the tests pass."
            routes:
              - to: test
          - name: test
            type: script
            command: ./run_tests.sh
            routes:
              - when: "exit_code == 0"
                to: $end
              - to: fix
        """,
        "yaml",
    ),
    "limit.visits": explain(
        """
        One step or stage was entered as often as it may be, while the run as a whole still had
        room. It guards a workflow that goes back and forth between two places, which an overall
        limit notices only much later. The sum over all steps is `limit.iterations`. Automatic
        attempts inside one visit do not count here.
        """,
        """
        1. Look at which route leads back to the step that the details name.
        2. Give that route a condition that can become false.
        3. Raise the visit limit and resume if the repetition is intended.
        """,
        """
        import failwell

        fault = failwell.Fault(
            kind="limit.visits",
            message="`repair` was entered 5 times",
            details={"step": "repair", "visits": 5},
        )
        print(failwell.describe(fault).kind)  # limit.visits
        """,
    ),
}
