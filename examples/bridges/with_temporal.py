"""An activity tells Temporal what may be repeated and when; the workflow gets the whole report.

The activity runs in Temporal's own test environment, so no server is needed.

    python examples/bridges/with_temporal.py
"""

from collections.abc import Callable
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.testing import ActivityEnvironment

import failwell
from failwell.errors import NotBefore
from failwell.temporal.plugin import retry_policy, to_application_error


def call_model(question: str) -> str:
    """Stands for a provider that is overloaded, whatever it is asked."""
    told = NotBefore(after=8, source="header retry-after")
    raise failwell.Fault(
        kind="provider.overloaded", provider="acme", not_before=told, details={"asked": question}
    )


@activity.defn
def ask(question: str) -> str:
    """Ask a model, and tell Temporal what a failure means."""
    try:
        return call_model(question)
    except CancelledError:
        raise
    except Exception as error:
        raise to_application_error(error) from error


@workflow.defn
class Asking:
    """A workflow that asks once; Temporal repeats with our numbers, or sooner gives up as the error says."""

    @workflow.run
    async def run(self, question: str) -> str:
        """Ask."""
        return await workflow.execute_activity(
            ask, question, start_to_close_timeout=timedelta(minutes=2), retry_policy=retry_policy()
        )


def fails(run: Callable[[], object]) -> ApplicationError:
    """What the activity tells Temporal."""
    try:
        run()
    except ApplicationError as error:
        return error
    raise AssertionError("the call was meant to fail")


def main() -> None:
    """Run the activity and show what Temporal is told."""
    error = fails(lambda: ActivityEnvironment().run(ask, "why?"))

    print("type:", error.type)
    print("may be repeated:", not error.non_retryable)
    print("next attempt after:", error.next_retry_delay)
    report = failwell.describe(error)
    print("the report in the workflow:", report.kind, "of", report.provider)


if __name__ == "__main__":
    main()
