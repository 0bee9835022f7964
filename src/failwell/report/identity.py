"""Ids of reports: sortable by time, unique without coordination."""

import os
import time


def new_id() -> str:
    """A new id. The first part is the time in milliseconds, the second is random."""
    return f"err_{time.time_ns() // 1_000_000:011x}{os.urandom(8).hex()}"
