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

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.files.mistakes import Mistake as Mistake
    from failwell.store.event import Event as Event
    from failwell.store.faults import UnknownRun as UnknownRun
    from failwell.store.faults import UnknownStatus as UnknownStatus
    from failwell.store.output_log import LogEntry as LogEntry
    from failwell.store.run_store import Run as Run
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
    from failwell.workflows.gates import NotStopped as NotStopped
    from failwell.workflows.recorded_runs import answer_gate as answer_gate
    from failwell.workflows.recorded_runs import cancel_run as cancel_run
    from failwell.workflows.recorded_runs import get_run as get_run
    from failwell.workflows.recorded_runs import list_gates as list_gates
    from failwell.workflows.recorded_runs import list_runs as list_runs
    from failwell.workflows.recorded_runs import read_events as read_events
    from failwell.workflows.recorded_runs import read_logs as read_logs
    from failwell.workflows.running.faults import FileChanged as FileChanged
    from failwell.workflows.running.faults import NothingToResume as NothingToResume
    from failwell.workflows.running.faults import WorkflowInvalid as WorkflowInvalid
    from failwell.workflows.running.settings import GateAnswer as GateAnswer
    from failwell.workflows.stages.code import StagePhase as StagePhase
    from failwell.workflows.stages.code import Verdict as Verdict
    from failwell.workflows.stages.state_machine import Stage as Stage
    from failwell.workflows.stages.state_machine import StateMachine as StateMachine
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Event": "failwell.store.event",
            "FileChanged": "failwell.workflows.running.faults",
            "Gate": "failwell.workflows.gates",
            "GateAnswer": "failwell.workflows.running.settings",
            "GateRefused": "failwell.workflows.gates",
            "LogEntry": "failwell.store.output_log",
            "Mistake": "failwell.files.mistakes",
            "NotRunning": "failwell.workflows.gates",
            "NotStopped": "failwell.workflows.gates",
            "NothingToResume": "failwell.workflows.running.faults",
            "Run": "failwell.store.run_store",
            "RunResult": "failwell.workflows.api",
            "Stage": "failwell.workflows.stages.state_machine",
            "StagePhase": "failwell.workflows.stages.code",
            "StateMachine": "failwell.workflows.stages.state_machine",
            "UnknownRun": "failwell.store.faults",
            "UnknownStatus": "failwell.store.faults",
            "Verdict": "failwell.workflows.stages.code",
            "Workflow": "failwell.workflows.api",
            "WorkflowInvalid": "failwell.workflows.running.faults",
            "answer_gate": "failwell.workflows.recorded_runs",
            "aresume": "failwell.workflows.api",
            "arun": "failwell.workflows.api",
            "cancel_run": "failwell.workflows.recorded_runs",
            "get_run": "failwell.workflows.recorded_runs",
            "list_gates": "failwell.workflows.recorded_runs",
            "list_runs": "failwell.workflows.recorded_runs",
            "load": "failwell.workflows.api",
            "read_events": "failwell.workflows.recorded_runs",
            "read_logs": "failwell.workflows.recorded_runs",
            "resume": "failwell.workflows.api",
            "run": "failwell.workflows.api",
            "validate": "failwell.workflows.api",
        },
    )
