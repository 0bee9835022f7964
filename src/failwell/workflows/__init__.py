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
    from failwell.workflows.api import RunOptions as RunOptions
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
            "failwell.files.mistakes": "Mistake",
            "failwell.store.event": "Event",
            "failwell.store.faults": "UnknownRun UnknownStatus",
            "failwell.store.output_log": "LogEntry",
            "failwell.store.run_store": "Run",
            "failwell.workflows.api": "RunOptions RunResult Workflow aresume arun load resume run validate",
            "failwell.workflows.gates": "Gate GateRefused NotRunning NotStopped",
            "failwell.workflows.recorded_runs": (
                "answer_gate cancel_run get_run list_gates list_runs read_events read_logs"
            ),
            "failwell.workflows.running.faults": "FileChanged NothingToResume WorkflowInvalid",
            "failwell.workflows.running.settings": "GateAnswer",
            "failwell.workflows.stages.code": "StagePhase Verdict",
            "failwell.workflows.stages.state_machine": "Stage StateMachine",
        },
    )
