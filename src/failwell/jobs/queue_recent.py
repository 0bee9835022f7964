"""The latest jobs that are over, for those who ask a moment later. All are in the store; few are in memory."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from failwell.jobs.queue_entry import Entry

ROOM = 8 * 1024 * 1024
"""Characters of requests and results that are held, all jobs together."""


class Recent(Mapping[str, Entry]):
    """No more than `most` jobs, and no more of them than `room` takes: the oldest go first."""

    def __init__(self, most: int, room: int = ROOM) -> None:
        self._most = most
        self._room = room
        self._held: OrderedDict[str, Entry] = OrderedDict()
        self._weight = 0

    def add(self, entry: Entry) -> None:
        """It is over."""
        before = self._held.pop(entry.id, None)
        if before is not None:
            self._weight -= _weight(before)
        self._held[entry.id] = entry
        self._weight += _weight(entry)
        while self._held and (len(self._held) > self._most or self._weight > self._room):
            self._weight -= _weight(self._held.popitem(last=False)[1])

    def __getitem__(self, job: str) -> Entry:
        return self._held[job]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


def _weight(entry: Entry) -> int:
    return len(entry.request_text) + len(entry.result or "")
