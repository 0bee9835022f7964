"""A payment as an effect: the processes of the tests that kill, and the ledger that counts payments.

The ledger is a file that stands for the provider. A payment is one line, written in one system call, so a process that
is killed has either paid or not.
"""

import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import failwell
from failwell.store import Done, SqliteClaims
from failwell.store.effects.claims import Claim

POINTS = ("before_claim", "before_effect", "after_effect", "before_result", "after_result", "random")


def payments(ledger: Path) -> Counter[str]:
    """How often each key was paid."""
    return Counter(ledger.read_text().splitlines() if ledger.exists() else ())


def payer(ledger: Path, store: SqliteClaims, *, reconcile: bool = False, point: str = "") -> Any:
    """The tool of an agent that pays an order once; the process dies at `point`."""

    def was_paid(order: str) -> Done | bool:
        return Done({"paid": order}) if payments(ledger)[failwell.idempotency_key()] else False

    @failwell.effect(key="{order}", name="pay", store=store, reconcile=was_paid if reconcile else None)
    def pay(order: str) -> dict[str, str]:
        if point == "before_effect":
            die()
        line = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(line, f"{failwell.idempotency_key()}\n".encode())
        os.close(line)
        if point == "after_effect":
            die()
        return {"paid": order}

    return pay


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingClaims(SqliteClaims):
    """The store, of a process that dies right before or right after a result is written."""

    point = ""

    def complete(self, claim: Claim, result: str | None, keep: float | None) -> bool:
        if self.point == "before_result":
            die()
        is_stored = super().complete(claim, result, keep)
        if self.point == "after_result":
            die()
        return is_stored


def main(folder: str, ledger: str, order: str, point: str, delay: str) -> None:
    store = DyingClaims(folder)
    store.point = point
    store.claims()  # opens the database, so that a random moment falls into the work itself
    if point == "before_claim":
        die()
    if point == "random":
        end = time.perf_counter() + float(delay)

        def die_in_time() -> None:
            while time.perf_counter() < end:
                pass
            die()

        threading.Thread(target=die_in_time, daemon=True).start()
    payer(Path(ledger), store, point=point)(order)
    if point == "random":
        threading.Event().wait()


def serve() -> None:
    """Run each line of stdin as arguments of `main` in a process of its own, and print how that ended.

    The processes are forked from this one, which has opened nothing: importing takes longer than all they do.
    """
    for line in sys.stdin:
        child = os.fork()
        if not child:
            main(*line.split())
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
