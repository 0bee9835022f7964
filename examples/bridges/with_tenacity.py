"""tenacity makes the calls and waits; failwell says what may be repeated, and when.

python examples/bridges/with_tenacity.py
"""

import tenacity

import failwell
from failwell.errors import NotBefore
from failwell.integrations.tenacity import retry_if_failwell, wait_failwell

OVERLOADED = failwell.Fault(
    kind="provider.overloaded", not_before=NotBefore(after=0.05, source="header retry-after")
)
WRONG_KEY = failwell.Fault(kind="provider.auth")


class Model:
    """Stands for a provider: it fails as told, then answers."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.calls = 0

    @tenacity.retry(
        retry=retry_if_failwell(), wait=wait_failwell(), stop=tenacity.stop_after_attempt(3), reraise=True
    )
    def ask(self, question: str) -> str:
        """Ask it; the retries are around this."""
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return f"an answer to {question!r}"


def main() -> None:
    """One failure that goes away, and one that does not."""
    busy = Model(OVERLOADED)
    print(busy.ask("why?"), "after", busy.calls, "calls")

    locked = Model(WRONG_KEY, WRONG_KEY)
    try:
        locked.ask("why?")
    except failwell.Fault as error:
        print(failwell.describe(error).kind, "after", locked.calls, "call")


if __name__ == "__main__":
    main()
