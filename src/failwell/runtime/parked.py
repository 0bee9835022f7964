"""Work that has to wait longer than anybody should sleep: put aside, with a time to come back."""

from datetime import datetime

from failwell.fault.base import Fault


class Parked(Fault):
    """The work is put aside until a later time. It inherits everything from the failure that parked it."""

    resume_at: datetime
    """When it may make sense to try again."""
    waits_for: str = ""
    """What it waits for, in a few words."""

    def summary(self) -> str:
        return f"blocked until {self.resume_at.isoformat(timespec='seconds')}: {self.waits_for}"
