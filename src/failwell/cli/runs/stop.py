"""`failwell stop`: the verb beside `run` and `resume`; the same as `failwell runs cancel`."""

from failwell.cli.runs.runs import add_cancel_options as add_options
from failwell.cli.runs.runs import run_cancel as run

__all__ = ["add_options", "run"]
