"""A Celery task is sent again when its failure allows it, after the wait that the provider told.

Here the tasks run in this process (`task_always_eager`), where Celery skips the waits.

    python examples/bridges/with_celery.py
"""

from typing import Any

from celery import Celery  # pyright: ignore[reportMissingTypeStubs]

import failwell
from failwell.errors import NotBefore
from failwell.integrations.celery import retry_task

app: Any = Celery("example", broker="memory://", backend="cache+memory://")
app.conf.task_always_eager = True

FAILURES: list[Exception] = []
CALLS: list[int] = []


@app.task(bind=True, name="ask", max_retries=None)
def ask(self: Any, question: str) -> str:
    """Ask a model; it fails as `FAILURES` say, then answers."""
    CALLS.append(self.request.retries)
    try:
        if FAILURES:
            raise FAILURES.pop(0)
    except failwell.Fault as error:
        retry_task(self, error)
    return f"an answer to {question!r}"


def main() -> None:
    """One failure that goes away, and one that does not."""
    FAILURES[:] = [
        failwell.Fault(kind="provider.overloaded", not_before=NotBefore(after=8, source="retry-after"))
    ]
    CALLS.clear()
    print(ask.delay("why?").get(), "after", len(CALLS), "calls")

    FAILURES[:] = [failwell.Fault(kind="provider.auth")]
    CALLS.clear()
    try:
        ask.delay("why?").get()
    except failwell.Fault as error:
        print(failwell.describe(error).kind, "after", len(CALLS), "call")


if __name__ == "__main__":
    main()
