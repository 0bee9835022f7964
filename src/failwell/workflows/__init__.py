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
    from failwell.journal.event import Event as Event
    from failwell.journal.journal_faults import UnknownRun as UnknownRun
    from failwell.journal.journal_faults import UnknownStatus as UnknownStatus
    from failwell.journal.output_log import LogEntry as LogEntry
    from failwell.journal.store import Run as Run
    from failwell.workflow.run.run_faults import FileChanged as FileChanged
    from failwell.workflow.run.run_faults import NothingToResume as NothingToResume
    from failwell.workflow.run.run_faults import WorkflowInvalid as WorkflowInvalid
    from failwell.workflow.run.run_settings import GateAnswer as GateAnswer
    from failwell.workflow.state_machine import Stage as Stage
    from failwell.workflow.state_machine import StateMachine as StateMachine
    from failwell.workflows.api import RunResult as RunResult
    from failwell.workflows.api import Workflow as Workflow
    from failwell.workflows.api import aresume as aresume
    from failwell.workflows.api import arun as arun
    from failwell.workflows.api import load as load
    from failwell.workflows.api import resume as resume
    from failwell.workflows.api import run as run
    from failwell.workflows.api import validate as validate
    from failwell.workflows.gate_answers import Gate as Gate
    from failwell.workflows.gate_answers import GateRefused as GateRefused
    from failwell.workflows.gate_answers import NotRunning as NotRunning
    from failwell.workflows.gate_answers import NotStopped as NotStopped
    from failwell.workflows.recorded_runs import answer_gate as answer_gate
    from failwell.workflows.recorded_runs import cancel_run as cancel_run
    from failwell.workflows.recorded_runs import get_run as get_run
    from failwell.workflows.recorded_runs import list_gates as list_gates
    from failwell.workflows.recorded_runs import list_runs as list_runs
    from failwell.workflows.recorded_runs import read_events as read_events
    from failwell.workflows.recorded_runs import read_logs as read_logs
    from failwell.workflows.stage_code import StagePhase as StagePhase
    from failwell.workflows.stage_code import Verdict as Verdict
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Event": "failwell.journal.event",
            "FileChanged": "failwell.workflow.run.run_faults",
            "Gate": "failwell.workflows.gate_answers",
            "GateAnswer": "failwell.workflow.run.run_settings",
            "GateRefused": "failwell.workflows.gate_answers",
            "LogEntry": "failwell.journal.output_log",
            "Mistake": "failwell.files.mistakes",
            "NotRunning": "failwell.workflows.gate_answers",
            "NotStopped": "failwell.workflows.gate_answers",
            "NothingToResume": "failwell.workflow.run.run_faults",
            "Run": "failwell.journal.store",
            "RunResult": "failwell.workflows.api",
            "Stage": "failwell.workflow.state_machine",
            "StagePhase": "failwell.workflows.stage_code",
            "StateMachine": "failwell.workflow.state_machine",
            "UnknownRun": "failwell.journal.journal_faults",
            "UnknownStatus": "failwell.journal.journal_faults",
            "Verdict": "failwell.workflows.stage_code",
            "Workflow": "failwell.workflows.api",
            "WorkflowInvalid": "failwell.workflow.run.run_faults",
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
