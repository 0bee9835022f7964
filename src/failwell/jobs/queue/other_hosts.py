"""Jobs that this host does not have yet: those that wait in the store, and those of hosts that died.

A host claims jobs from the store as it can start them, and a few more if they are short. The rest stays in the
store, where every host can claim it. `PeerWatch` notices when another host dies.
"""

import asyncio
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from failwell.calls.policy import Match, Policy, Preemption, Retry, RetryState, Rule, decide
from failwell.errors.axes import Certainty
from failwell.errors.fault import Fault
from failwell.jobs.cancelled_job import cancel_unowned
from failwell.jobs.faults import HostDied, LeaseLost, NoStreamLeft, NotReadable
from failwell.jobs.job import JobState
from failwell.jobs.queue.admission import waits_for_memory
from failwell.jobs.queue.attempts import FREEING
from failwell.jobs.queue.ends import Ends
from failwell.jobs.queue.entry import Entry
from failwell.jobs.queue.order import Instance
from failwell.jobs.queue.record import Record
from failwell.jobs.queue.state import QueueState
from failwell.jobs.store.records import ControlRequest, Host, Want
from failwell.jobs.store.rows import job_values
from failwell.store.event import Event


class PeerWatch:
    """Watches the processes of other hosts where the system can tell that one has ended.

    That only saves time: whether a host is dead is decided by its lock, which is tested every second.
    """

    def __init__(self, host: Host, on_end: Callable[[], None]) -> None:
        self._host = host
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._watched: dict[int, int] = {}
        """Host → the descriptor that becomes readable when its process ends."""

    def follow(self, live: Sequence[Host]) -> None:
        """Watch these hosts, and no others."""
        for key in self._watched.keys() - {peer.key for peer in live}:
            self._forget(key)
        for peer in live:
            if peer.key not in self._watched and peer.pid != self._host.pid:
                self._watch(peer)

    def close(self) -> None:
        """Watch none of them."""
        for key in list(self._watched):
            self._forget(key)

    def _watch(self, peer: Host) -> None:
        try:
            descriptor = os.pidfd_open(peer.pid)
        except (AttributeError, OSError):
            # Not on this system, or the process is in another container.
            return
        self._watched[peer.key] = descriptor
        self._loop.add_reader(descriptor, self._ended, peer.key)

    def _ended(self, key: int) -> None:
        self._forget(key)
        self._on_end()

    def _forget(self, key: int) -> None:
        descriptor = self._watched.pop(key)
        self._loop.remove_reader(descriptor)
        os.close(descriptor)


MOST_LOSSES = 5
"""How often the host may die under a job before the job is suspected of killing it."""
_HOST_DEATHS = Policy(name="host deaths", rules=(Rule(match=Match(), retryable=False),))
"""A job that has lost its host too often is not tried again, whatever the queue's policy repeats."""
_AHEAD = 0.05
"""Seconds of work that a host claims beyond what it can start at once."""
_MOST_AHEAD = 128
_MOST_RELEASED = 1_000
"""Jobs that are released at a time."""
_STEP = 60.0
"""Seconds of waiting that outweigh one step of priority where jobs are claimed. The index of the store has the same."""
_FIRST_HOLD, _LONGEST_HOLD = 1.0, 8.0
"""Seconds for which the jobs of an instance are left to other hosts after one has waited for memory here."""
_PAUSE = 0.02
"""Seconds after which a claim is repeated that another process kept from the store."""
_LONGEST_TIMER = 3600.0


class OutsideJobs:
    """Claims jobs from the store, and takes over those of dead hosts."""

    def __init__(self, state: QueueState, record: Record, ends: Ends, cancel: Callable[[str], bool]) -> None:
        self._state = state
        self._record = record
        self._ends = ends
        self._cancel = cancel
        self.is_closed = False
        """Whether no more jobs are claimed."""
        self._is_dry = False
        """Whether no job was in the store, at the last claim, that this host could run."""
        self._is_due = True
        """Whether the next turn claims jobs, whatever this host has to do."""
        self._peers = PeerWatch(state.host, self.tick)
        self._timer: asyncio.TimerHandle | None = None
        self._blocked: frozenset[str] = frozenset()
        """Jobs that waited for memory at the last tick."""
        self._holds: dict[str, tuple[float, float]] = {}
        """Instance → until when its jobs are left to other hosts, and for how long."""
        self._most_ahead = 0
        """How many jobs the last claim could take beyond those that could start."""

    def close(self) -> None:
        """Claim no more jobs."""
        self.is_closed = True
        self._peers.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def tick(self) -> None:
        """Take over the jobs of dead hosts, then look for waiting jobs."""
        if self.is_closed:
            return
        try:
            look = self._state.store.look(self._state.host.key)
            self._peers.follow(look.live)
            self._state.peers = look.live
            self._state.book.lanes = self._state.rules.lanes + sum(peer.lanes for peer in look.live)
            if look.dead:
                self._take_over(look.dead)
            if look.live or look.dead or self._state.book.elsewhere:
                dead = {host.key for host in look.dead}
                elsewhere = {host: pools for host, pools in look.elsewhere.items() if host not in dead}
                self._state.shared_ledger.refresh(self._state.instances.values(), elsewhere)
            self._state.book.add(look.profiles)
        except Fault:
            # The store is unavailable for a moment. The next tick follows in a second.
            return
        self._share()
        self._look_at_requests(look.requests)

    def look(self) -> None:
        """Apply the requests of other processes; the next turn claims the jobs that this host can run."""
        if not self.is_closed:
            self._look_at_requests()

    def _look_at_requests(self, requests: Sequence[ControlRequest] | None = None) -> None:
        try:
            self._apply(self._state.store.control_requests() if requests is None else requests)
        except Fault:
            self._look_at(self._state.loop.time() + _PAUSE)
        self.claim_soon()

    def claim_soon(self) -> None:
        """Claim the jobs that this host can run, with the next turn."""
        self._is_due = True
        self._state.wake()

    def refill(self) -> None:
        """Claim jobs, after a look or if this host has less to do than it can start.

        Costs nothing while the store has no job for this host.
        """
        state = self._state
        if self.is_closed or (self._is_dry and not self._is_due):
            return
        if state.is_paused or state.is_stopping or self._record.trouble is not None:
            return
        if not self._is_due and self._room()[0] <= 0 and state.line.size * 2 >= self._most_ahead:
            return
        try:
            self._claim()
        except LeaseLost:
            self.close()
        except Fault:
            # Another process uses the store.
            self._look_at(state.loop.time() + _PAUSE)
        finally:
            # Afterwards: an instance that was loaded for this claim needs no other one.
            self._is_due = False

    # -------------------------------------------------------------- dead hosts

    def _take_over(self, dead: Sequence[Host]) -> None:
        for job in self._state.store.take_over(self._state.host.key, dead):
            self._resume(
                Entry.of(job, self._state.number()), began=job.state is JobState.RUNNING, adopted=True
            )

    def _resume(self, entry: Entry, *, began: bool, adopted: bool = False) -> None:
        self._state.live[entry.id] = entry
        if entry.request.key is not None:
            self._state.once[entry.request.key] = entry
        if entry.cancelled is not None:
            # It was to be cancelled, and ended with the host.
            self._ends.cancel(entry, Certainty.UNKNOWN if began else None)
            return
        if entry.request.stream:
            self._ends.fail(entry, self._state.described(entry, NoStreamLeft(job=entry.id, retryable=False)))
            return
        if began and not self._is_repeated(entry):
            return
        if adopted:
            # Which host runs it next is decided as for every other job.
            self._record.release(entry)
            self._state.wake()
            return
        self._ends.expect(entry)
        self._ends.wait_until_due(entry)

    def _is_repeated(self, entry: Entry) -> bool:
        """Record that the host of a job died while the job ran; `False` if the job fails because of it."""
        entry.losses += 1
        # The attempt stays recorded and does not count against the attempts of the job.
        entry.charged = max(0, entry.charged - 1)
        report = self._state.described(entry, HostDied(job=entry.id, losses=entry.losses, retryable=False))
        lost = Preemption("the host died while it ran", before=entry.losses - 1, most=MOST_LOSSES - 1)
        decision = decide(_HOST_DEATHS, report, RetryState(attempts=entry.charged, lost=lost))
        if not isinstance(decision, Retry):
            self._ends.fail(entry, report)
            return False
        entry.state, entry.started = JobState.PENDING, None
        self._record.say(
            entry, "requeued", {"reason": decision.why, "attempt": entry.attempt, "losses": entry.losses}
        )
        return True

    # -------------------------------------------------------------- requests of other processes

    def _apply(self, requests: Sequence[ControlRequest]) -> None:
        for control in requests:
            if control.key in self._record.granted:
                continue
            if control.action == "cancel" and control.job not in self._state.live:
                stored = self._state.store.find(control.job)
                if stored is None or stored.state.is_final:
                    self._record.granted.add(control.key)
                    continue
                if not cancel_unowned(self._state.store, [stored], self._state.now()):
                    # It belongs to another host, which cancels it.
                    continue
            elif control.action == "cancel":
                self._cancel(control.job)
            # It is deleted together with the record of its result, and not before.
            self._record.granted.add(control.key)

    def cancel(self, job: str) -> bool:
        """Cancel a job that this host does not have; `False` if it has ended or does not exist."""
        store, now = self._state.store, self._state.now()
        stored = store.find(job)
        while stored is not None and not stored.state.is_final:
            if cancel_unowned(store, [stored], now):
                return True
            if store.request_control(job, "cancel", now):
                store.wake_host()
                return True
            # Its owner has just released it, or has ended it.
            stored = store.find(job)
        return False

    def reorder(self, job: str, priority: int) -> bool:
        """Change the priority of a job that no host owns."""
        stored = self._state.store.find(job)
        if stored is None or stored.state.is_final:
            return False
        changed = replace(stored, request=replace(stored.request, priority=priority))
        event = Event(0, "reordered", self._state.now(), {"priority": priority}, job)
        return bool(self._state.store.commit_unowned([(job_values(changed, stored.state.value), event)]))

    # -------------------------------------------------------------- sharing

    def _share(self) -> None:
        """Release jobs that other hosts can start sooner: those beyond what this host would claim."""
        state = self._state
        if not state.line.size or not any(peer.serves_all for peer in state.peers):
            return
        self._release_blocked()
        room = state.rules.lanes - state.running
        places: dict[str, int] = {}
        ahead: dict[str, int] = {}
        released = 0
        for entry in state.line.best():
            name = entry.request.instance
            if name not in places:
                ahead[name], places[name] = self._capacity(name)
            if places[name] > 0 and room + ahead[name] > 0:
                places[name] -= 1
                room -= 1
            elif (
                entry.key is not None
                and entry.items is None
                and not entry.waiters
                and released < _MOST_RELEASED
            ):
                # A job with waiters stays: they hear of its end at once.
                released += 1
                self._record.release(entry)
        if released:
            state.wake()

    def _release_blocked(self) -> None:
        """Release the jobs that have waited for memory since the last tick.

        Another host may be able to make room for them: it can evict its own workers, and this one cannot.
        """
        blocked = {entry.id: entry for entry in self._state.line.firsts() if waits_for_memory(entry)}
        now = self._state.loop.time()
        for job in blocked.keys() & self._blocked:
            entry = blocked[job]
            if entry.key is None or entry.items is not None:
                continue
            self._record.release(entry)
            name = entry.request.instance
            length = min(_LONGEST_HOLD, 2 * self._holds[name][1] if name in self._holds else _FIRST_HOLD)
            self._holds[name] = now + length, length
            self._state.wake()
        self._blocked = frozenset(blocked)
        self._holds = {
            name: (until, length) for name, (until, length) in self._holds.items() if until + length > now
        }

    def _capacity(self, name: str) -> tuple[int, int]:
        """How many jobs of an instance are claimed ahead, and how many wait here at most."""
        instance = self._state.instances.get(name)
        if instance is None or not instance.is_enabled or self._state.is_paused:
            return 0, 0
        ahead = self._ahead(instance)
        return ahead, self._places(instance) + ahead

    def release_all(self) -> None:
        """Let the other hosts have all jobs that wait here. The end of this host may take some seconds."""
        if not self._state.peers:
            return
        for entry in list(self._state.live.values()):
            is_later = entry.state is JobState.WAITING and entry.due is not None and entry.block != FREEING
            if (entry.is_queued or is_later) and entry.key is not None and entry.items is None:
                self._record.release(entry)
        self._state.wake()

    # -------------------------------------------------------------- claiming

    def _claim(self) -> None:
        state = self._state
        unowned, now = state.store.unowned(), state.now()
        wants, most = self._wants(unowned.instances)
        if wants or unowned.next_time <= now:
            for job, ready in state.store.claim(state.host.key, wants, most, now):
                entry = Entry.of(job, state.number())
                entry.since = state.since(ready)
                self._resume(entry, began=job.state is JobState.RUNNING)
        if unowned.next_time > now:
            self._look_at(state.loop.time() + unowned.next_time - now)

    def _wants(self, names: Sequence[str]) -> tuple[dict[str, Want], int]:
        """How many jobs of each of these instances this host claims, and how many in all."""
        room, best = self._room()
        wants: dict[str, Want] = {}
        most = self._most_ahead = 0
        self._is_dry = True
        for name in names:
            instance = self._state.find_for_job(name)
            if isinstance(instance, Fault) and not isinstance(instance, NotReadable):
                # Its configuration is not valid, so its jobs fail.
                wants[name] = Want(_MOST_AHEAD)
                most = max(most, _MOST_AHEAD)
                continue
            if not isinstance(instance, Instance) or not instance.is_enabled:
                self._say_why(name, instance)
                continue
            self._is_dry = False
            if name in self._holds and self._holds[name][0] > self._state.loop.time():
                continue
            queued = self._state.line.queued(name)
            ahead = self._ahead(instance)
            self._most_ahead = max(self._most_ahead, ahead)
            number = 0 if instance.is_closed else self._places(instance) + ahead - queued
            if number > 0 and room + ahead > 0:
                wants[name] = Want(number)
                most = max(most, room + ahead)
            else:
                # Only a job that comes before those that are here already.
                first = self._state.line.first(name)
                before = best if first is None else self._rank(first)
                if before < math.inf:
                    wants[name] = Want(self._state.rules.lanes, before)
                    most = max(most, self._state.rules.lanes)
        return wants, most

    def _room(self) -> tuple[int, float]:
        """How many lanes have nothing to do, and the rank of the best job that this host has and can start."""
        startable, best = 0, math.inf
        for entry in self._state.line.firsts():
            name = entry.request.instance
            instance = self._state.instances.get(name)
            if instance is None or not instance.is_enabled or instance.is_closed:
                continue
            free = self._places(instance)
            if free > 0:
                startable += min(free, self._state.line.queued(name))
                best = min(best, self._rank(entry))
        return self._state.rules.lanes - self._state.running - startable, best

    def _places(self, instance: Instance) -> int:
        """How many further jobs of an instance may run, whatever lanes are free."""
        lanes, name = self._state.rules.lanes, instance.manifest.name
        places = instance.manifest.concurrency - len(instance.entries)
        if lanes > 1 and self._state.has_other_capability(name):
            # One lane is kept for other capabilities.
            places = min(places, lanes - 1 - self._state.running_of(name))
        return max(0, places)

    def _ahead(self, instance: Instance) -> int:
        """How many jobs of an instance are claimed beyond those that can start at once: many only if they are short."""
        profile = self._state.book.profile(instance)
        if profile is None:
            return 0
        lanes = min(self._state.rules.lanes, instance.manifest.concurrency)
        return min(_MOST_AHEAD, int(lanes * _AHEAD / max(profile.seconds, 1e-4)))

    def _rank(self, entry: Entry) -> float:
        """Where the store would have a job; smaller is earlier."""
        return self._state.wall(entry.since) - entry.request.priority * _STEP

    def _say_why(self, name: str, instance: Instance | Fault | None) -> None:
        """Record why the next job of an instance does not start, though no host owns it."""
        if instance is None:
            reason = f"`{name}` is not loaded here"
        elif isinstance(instance, Fault):
            reason = str(instance)
        else:
            reason = f"`{name}` is disabled"
        jobs = self._state.store.unowned_jobs(1, name)
        if not jobs or jobs[0].block_reason == reason or (jobs[0].block_reason and self._state.peers):
            # Where several hosts have different reasons, the first one stays.
            return
        event = Event(0, "blocked", self._state.now(), {"reason": reason}, jobs[0].id)
        blocked = replace(jobs[0], block_reason=reason)
        self._state.store.commit_unowned([(job_values(blocked, jobs[0].state.value), event)])

    def _look_at(self, at: float) -> None:
        """Look again at this time of the event loop's clock."""
        at = min(at, self._state.loop.time() + _LONGEST_TIMER)
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = self._state.loop.call_at(at, self._timer_rang)

    def _timer_rang(self) -> None:
        self._timer = None
        self.look()
