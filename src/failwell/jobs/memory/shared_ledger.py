"""What all hosts of a store have reserved together.

A host publishes more than it has published before in one transaction, which checks the sum over all hosts, and starts
the job only then. What it no longer needs it gives back once a second, so a busy host publishes nothing.
"""

from collections.abc import Iterable

from failwell.jobs.memory.book import Book
from failwell.jobs.memory.ledger import NOTICEABLE
from failwell.jobs.queue.order import Instance
from failwell.jobs.store.records import Host, HostReserves, Reserved
from failwell.jobs.store.sqlite import JobStore


class SharedLedger:
    """The part of one host in what all hosts have reserved."""

    def __init__(self, store: JobStore, host: Host, book: Book) -> None:
        self._store = store
        self._host = host
        self._book = book
        self._published: dict[str, Reserved] = {}

    def publish(self, instances: Iterable[Instance]) -> bool:
        """Publish what is reserved here; `False` if it does not fit beside what the other hosts have reserved.

        Nothing is written if as much was published before.

        Raises:
            Fault: the store is unavailable.
        """
        totals = self._book.totals()
        for pool, megabytes in totals.items():
            published = self._published.get(pool)
            if megabytes > (0.0 if published is None else published.mb):
                break
        else:
            return True
        usage = self._book.usage(instances)
        reserved = {
            pool: Reserved(max(self._megabytes(pool), totals.get(pool, 0.0)), usage.get(pool, 0.0))
            for pool in {*self._published, *totals}
        }
        booking = self._store.reserve(self._host.key, reserved, self._book.budgets)
        self._book.elsewhere = booking.others
        if booking.is_granted:
            self._published = reserved
        return booking.is_granted

    def refresh(self, instances: Iterable[Instance], elsewhere: HostReserves) -> None:
        """Give back what is not needed any more, and take in what the other hosts have reserved.

        Raises:
            Fault: the store is unavailable.
        """
        totals, usage = self._book.totals(), self._book.usage(instances)
        reserved = {
            pool: Reserved(megabytes, usage.get(pool, 0.0)) for pool, megabytes in totals.items() if megabytes
        }
        if _differ(reserved, self._published):
            self._book.elsewhere = self._store.reserve(self._host.key, reserved, {}).others
            self._published = reserved
        else:
            self._book.elsewhere = elsewhere

    def _megabytes(self, pool: str) -> float:
        return self._published[pool].mb if pool in self._published else 0.0


def _differ(one: dict[str, Reserved], other: dict[str, Reserved]) -> bool:
    return one.keys() != other.keys() or any(
        reserved.mb != other[pool].mb or abs(reserved.used - other[pool].used) > NOTICEABLE
        for pool, reserved in one.items()
    )
