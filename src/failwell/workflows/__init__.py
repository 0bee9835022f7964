"""Workflows from Python: load, validate, run, resume and list them.

The `failwell` commands use this module, so both behave alike: `run` accepts exactly what `validate`
accepts, every run is recorded in the journal of a state folder, and a run that stopped can be resumed.

Example:
    from failwell import workflows

    result = workflows.run("release.yaml", inputs={"version": "1.2.0"})
    if result.status == "failed":
        print(result.report.kind, result.report.message)
        result = workflows.resume(result.id)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwell.files.mistakes import Mistake as Problem
    from failwell.journal.event import Event as Event
    from failwell.journal.faults import UnknownRun as UnknownRun
    from failwell.journal.store import Run as Run
    from failwell.workflow.run.faults import FileChanged as FileChanged
    from failwell.workflow.run.faults import NothingToResume as NothingToResume
    from failwell.workflow.run.faults import WorkflowInvalid as WorkflowInvalid
    from failwell.workflow.run.world import Said as Answer
    from failwell.workflows.api import RunResult as RunResult
    from failwell.workflows.api import Workflow as Workflow
    from failwell.workflows.api import aresume as aresume
    from failwell.workflows.api import arun as arun
    from failwell.workflows.api import load as load
    from failwell.workflows.api import resume as resume
    from failwell.workflows.api import run as run
    from failwell.workflows.api import validate as validate
    from failwell.workflows.gates import Gate as Gate
    from failwell.workflows.gates import GateRefused as GateRefused
    from failwell.workflows.gates import NotRunning as NotRunning
    from failwell.workflows.records import answer_gate as answer_gate
    from failwell.workflows.records import cancel_run as cancel_run
    from failwell.workflows.records import get_run as get_run
    from failwell.workflows.records import list_gates as list_gates
    from failwell.workflows.records import list_runs as list_runs
    from failwell.workflows.records import read_events as read_events

_HOMES = {
    "Answer": "failwell.workflow.run.world:Said",
    "Event": "failwell.journal.event:Event",
    "FileChanged": "failwell.workflow.run.faults:FileChanged",
    "Gate": "failwell.workflows.gates:Gate",
    "GateRefused": "failwell.workflows.gates:GateRefused",
    "NotRunning": "failwell.workflows.gates:NotRunning",
    "NothingToResume": "failwell.workflow.run.faults:NothingToResume",
    "Problem": "failwell.files.mistakes:Mistake",
    "Run": "failwell.journal.store:Run",
    "RunResult": "failwell.workflows.api:RunResult",
    "UnknownRun": "failwell.journal.faults:UnknownRun",
    "Workflow": "failwell.workflows.api:Workflow",
    "WorkflowInvalid": "failwell.workflow.run.faults:WorkflowInvalid",
    "answer_gate": "failwell.workflows.records:answer_gate",
    "aresume": "failwell.workflows.api:aresume",
    "arun": "failwell.workflows.api:arun",
    "cancel_run": "failwell.workflows.records:cancel_run",
    "get_run": "failwell.workflows.records:get_run",
    "list_gates": "failwell.workflows.records:list_gates",
    "list_runs": "failwell.workflows.records:list_runs",
    "load": "failwell.workflows.api:load",
    "read_events": "failwell.workflows.records:read_events",
    "resume": "failwell.workflows.api:resume",
    "run": "failwell.workflows.api:run",
    "validate": "failwell.workflows.api:validate",
}
__all__ = [
    "Answer",
    "Event",
    "FileChanged",
    "Gate",
    "GateRefused",
    "NotRunning",
    "NothingToResume",
    "Problem",
    "Run",
    "RunResult",
    "UnknownRun",
    "Workflow",
    "WorkflowInvalid",
    "answer_gate",
    "aresume",
    "arun",
    "cancel_run",
    "get_run",
    "list_gates",
    "list_runs",
    "load",
    "read_events",
    "resume",
    "run",
    "validate",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        home, _, attribute = _HOMES[name].partition(":")
        value = getattr(import_module(home), attribute)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
