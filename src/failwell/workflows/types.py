"""Names of the public module for types of the rooms below."""

from failwell.files.mistakes import Mistake as Problem
from failwell.workflow.run.settings import GateAnswer as Answer

__all__ = ["Answer", "Problem"]
