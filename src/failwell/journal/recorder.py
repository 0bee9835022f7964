"""One run's way into its journal: what happens is written first, and told to listeners after that.

Listeners hear events in the order of their numbers, whoever records them. One that fails is passed over
and the failure is reported; neither the run nor the other listeners notice.
"""

from collections.abc import Callable, Sequence
from threading import RLock

from failwell.fault.base import Fault
from failwell.journal.event import Event, Fact
from failwell.journal.store import Store
from failwell.runtime.observer import suppressed, tell

Listener = Callable[[Event], None]


class Recorder:
    """Records for one run and tells its listeners."""

    def __init__(self, store: Store, run: str, listeners: Sequence[Listener] = ()) -> None:
        self._store = store
        self._run = run
        self._listeners = list(listeners)
        self._turn = RLock()
        self._next = store.run(run).events

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of everything from now on; call what comes back to stop."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def record(self, facts: Sequence[Fact]) -> list[Event]:
        """Write, then tell. What cannot be written is not told.

        Raises:
            Fault: the store refuses; nothing was recorded.
        """
        with self._turn:
            events = self._store.append(self._run, facts)
            self._next = events[-1].seq + 1 if events else self._next
            self._tell(events)
        return events

    def end(self, fact: Fact) -> Event:
        """Record the terminal fact and tell it even if the store refuses: nobody waits for an end in vain.

        A refusal is reported as suppressed, and the run is found interrupted by whoever looks later.
        """
        with self._turn:
            try:
                return self.record((fact,))[0]
            except Fault as refusal:
                tell(suppressed(refusal, "the end of a run could not be recorded and was told anyway"))
                event = Event(self._next, *fact)
                self._tell([event])
                return event

    def _tell(self, events: Sequence[Event]) -> None:
        for event in events:
            for listener in list(self._listeners):
                try:
                    listener(event)
                except Exception as problem:  # noqa: BLE001  (a listener must not break the run it listens to)
                    tell(suppressed(problem, "a listener failed and was passed over"))
