"""`failwell job tail`: what happens to jobs, as it is recorded, and how far those that run have got."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.exits import Exit
from failwell.apps.cli.job_find import find_job, jobs_of
from failwell.apps.cli.job_show import as_json, words
from failwell.apps.cli.job_submit import aside
from failwell.apps.cli.output import say

if TYPE_CHECKING:
    from failwell.jobs.desk import Desk
    from failwell.jobs.store import JobEvent


def tail(asked: Namespace) -> int:
    """Events as they are recorded: of one job until it is over, else of all."""
    with jobs_of(asked, make=True) as desk:
        assert desk is not None
        job = None if asked.job is None else find_job(desk, asked.job).id
        after = asked.after if asked.after is not None else 0 if job is not None else desk.store.last_event()
        beside = _Beside(asked, desk, job)
        beside.look()
        for event in desk.follow(job, after, give_up=beside.look):
            beside.show(event)
    return Exit.DONE


class _Beside:
    """What no record tells: how far running jobs have got, and that nobody runs any."""

    def __init__(self, asked: Namespace, desk: "Desk", job: str | None) -> None:
        self._asked = asked
        self._desk = desk
        self._job = job
        self._seen: dict[str, tuple[float, str]] = {}
        self._is_alone = False

    def show(self, event: "JobEvent") -> None:
        """Print one event."""
        if self._asked.format == "json":
            from failwell.journal.event import encoded

            say(encoded(as_json(event)))
        else:
            say(words(event, self._asked.format))

    def look(self) -> bool:
        """Say what is new. That nothing is, is no reason to give up."""
        is_alone = not self._desk.store.is_hosted()
        if is_alone and not self._is_alone:
            whose = "jobs wait" if self._job is None else f"job {self._job} waits"
            if self._job is None or not self._desk.find(self._job).state.is_final:
                aside(self._asked, f"{whose}: nobody runs jobs here now; `failwell workers run` does")
        self._is_alone = is_alone
        if not is_alone:
            self._progress()
        return False

    def _progress(self) -> None:
        from failwell.jobs.picture import read_picture
        from failwell.jobs.store import JobEvent

        picture: dict[str, Any] = read_picture(self._desk.store.folder) or {}
        for one in picture.get("jobs", ()):
            reached = (one["progress"], one["message"])
            if (self._job is None or one["id"] == self._job) and reached != self._seen.get(
                one["id"], (0.0, "")
            ):
                self._seen[one["id"]] = reached
                told = {"fraction": one["progress"], "message": one["message"]}
                self.show(JobEvent(0, one["id"], "progress", picture["at"], told))
