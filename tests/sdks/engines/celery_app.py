"""The app of a Celery worker that runs as a process of its own: its queue and its results are files."""

import os
from pathlib import Path
from typing import Any

from celery import Celery  # type: ignore[import-untyped,unused-ignore]

from failwell.integrations.celery import reliability
from failwell.testing.builders import make_fault

FOLDER = Path(os.environ["CELERY_LAB"])
SECRET = "the-text-nobody-may-see"
app: Any = reliability(
    Celery("lab", broker="filesystem://", backend=f"file://{FOLDER}/results"), jitter=lambda: 0.5
)
app.conf.broker_transport_options = {
    "data_folder_in": str(FOLDER / "queue"),
    "data_folder_out": str(FOLDER / "queue"),
    "control_folder": str(FOLDER / "control"),
}


@app.task(name="lab.act")
def act() -> None:
    """Fail as a provider that is overloaded, while another exception is handled."""
    with (FOLDER / "calls").open("a") as calls:
        calls.write("called\n")
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        raise make_fault(kind="provider.overloaded") from error
