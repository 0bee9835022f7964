"""Starts and resumes runs: from a file's path or a run's id to the result.

`run` refuses exactly what `validate` refuses. What a run needs in order to resume lies in its journal;
the files of the run are compared with those on disk before a step runs again. Files that have not changed
were validated when the run started, and only the executors are checked again.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.files.mistakes import Mistake
from failwell.store.folder import check_new_run_id, make_private, new_run_id, run_folder
from failwell.store.status import record_interrupted
from failwell.workflows.check.workflow_tree import Checked, check_file
from failwell.workflows.machine.advance import revive
from failwell.workflows.machine.messages import Begin, Event, Resume
from failwell.workflows.machine.run_state import State
from failwell.workflows.plan import Plan
from failwell.workflows.running.audit import audit_suppressed
from failwell.workflows.running.driver import Driver
from failwell.workflows.running.faults import NothingToResume, WorkflowInvalid
from failwell.workflows.running.files import copy_conversations
from failwell.workflows.running.restoring import check_nodes_exist, differences, file_changed, restore
from failwell.workflows.running.secrets import resumed_secrets, split_inputs, warn_of_short
from failwell.workflows.running.settings import DriveResult, RunDriver, Settings


async def start(
    file: str,
    inputs: Mapping[str, Any],
    settings: Settings,
    *,
    run: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> DriveResult:
    """Run a workflow file.

    Raises:
        WorkflowInvalid: the file or the inputs have mistakes.
        Validation: the file cannot be read.
    """
    checked, plan = _usable(file, settings)
    plain_inputs, secrets = split_inputs(file, plan, inputs)
    now = settings.clock.now().timestamp()
    name = check_new_run_id(run) if run else new_run_id(now, settings.environ)
    folder = run_folder(settings.folder, name)
    notes: dict[str, Any] = {
        **(metadata or {}),
        "errors_file": str(folder / "errors.jsonl"),
        "cwd": str(Path.cwd()),
    }
    if settings.allow_outside:
        notes["allow_outside"] = True
    begin = Begin(at=now, run=name, file=plan.file, inputs=plain_inputs, metadata=notes)
    return await _begin(settings, folder, begin, checked, checked.plans, secrets, metadata)


async def resume(
    run: str,
    settings: Settings,
    *,
    inputs: Mapping[str, Any] | None = None,
    accept_changes: bool = False,
    limits: Mapping[str, Any] | None = None,
    by: str = "",
) -> DriveResult:
    """Resume a run where it stopped. A failed or cancelled run is continued by a new run.

    Raises:
        NothingToResume: it has completed, or never began.
        FileChanged: its files have changed, and `accept_changes` is not set.
        Locked: another process drives it.
    """
    with settings.store.lock(run):
        sources = settings.store.sources(run)
        state = restore(settings.store, run)
        if state.status == "new":
            record_interrupted(settings.store, run, at=settings.clock.now().timestamp())
            raise NothingToResume(run=run, status="not begun")
        if state.status == "completed":
            raise NothingToResume(run=run, status=state.status)
        checked, plan = _usable(state.file, settings, validated=sources)
        changed = differences(sources, checked.files)
        if changed and not accept_changes:
            raise file_changed(run, changed, state, settings)
        plans = checked.plans
        _open_all(state, plans, settings)
        check_nodes_exist(run, state, plans)
        secrets = resumed_secrets(state, plan, inputs or {})
        now = settings.clock.now().timestamp()
        if state.is_over:
            return await _continue(run, state, checked, plans, settings, secrets, limits or {})
        if changed:
            settings.store.replace_sources(run, _texts(checked))
        event = Resume(
            at=now, by=by, accepted_changes=bool(changed), limits=limits or {}, jitter=settings.jitter()
        )
        return await _drive(settings, run_folder(settings.folder, run), run, plans, state, event, secrets)


def _open_all(state: State, plans: dict[str, Plan], settings: Settings) -> None:
    """Read the sub-workflows whose paths were only known at run time."""
    for scope in state.scopes.values():
        if scope.file not in plans:
            checked, _ = _usable(scope.file, settings, as_root=False)
            plans.update(checked.plans)


async def _continue(
    run: str,
    state: State,
    checked: Checked,
    plans: dict[str, Plan],
    settings: Settings,
    secrets: Mapping[str, str],
    limits: Mapping[str, Any],
) -> DriveResult:
    """Continue a failed or cancelled run with a new run. Completed nodes are not run again."""
    plan = plans[state.file]
    now = settings.clock.now().timestamp()
    name = new_run_id(now, {})
    folder = run_folder(settings.folder, name)
    copy_conversations(run_folder(settings.folder, run), folder)
    notes = {**state.metadata, "errors_file": str(folder / "errors.jsonl")}
    state.limits = {**state.limits, **limits}
    if "timeout_seconds" in limits or (state.ending or {}).get("error_type") == "LimitReached":
        state.active = 0.0
    revive(state)
    begin = Begin(
        at=now,
        run=name,
        file=plan.file,
        inputs=state.scopes[""].inputs,
        metadata=notes,
        continues={"run": run, "seq": state.seq},
        state=state.to_dict(),
    )
    metadata = {**state.metadata, "continues": run}
    return await _begin(settings, folder, begin, checked, plans, secrets, metadata)


async def _begin(
    settings: Settings,
    folder: Path,
    begin: Begin,
    checked: Checked,
    plans: dict[str, Plan],
    secrets: Mapping[str, str],
    metadata: Mapping[str, Any] | None,
) -> DriveResult:
    """Create a run and drive it."""
    plan = plans[begin.file]
    with settings.store.lock(begin.run):
        make_private(folder)
        settings.store.create(
            begin.run,
            at=begin.at,
            workflow=plan.name,
            file=plan.file,
            digest=plan.digest,
            sources=_texts(checked),
            metadata=metadata,
        )
        return await _drive(settings, folder, begin.run, plans, State(), begin, secrets)


async def _drive(
    settings: Settings,
    folder: Path,
    run: str,
    plans: dict[str, Plan],
    state: State,
    event: Event,
    secrets: Mapping[str, str],
) -> DriveResult:

    async def open_file(file: str, base: str) -> Plan:
        from asyncio import to_thread
        from posixpath import join, normpath

        checked, plan = await to_thread(_usable, normpath(join(base, file)), settings, as_root=False)
        plans.update(checked.plans)
        return plan

    warn_of_short(secrets)
    make_driver = settings.engine or Driver
    driver = make_driver(plans, settings, folder, opener=open_file, secrets=secrets, state=state)
    settings.started(driver, run)
    from asyncio import get_running_loop

    # A task of its own: each wake-up resumes the driver and nothing around it.
    return await get_running_loop().create_task(_driven(driver, folder, run, event))


async def _driven(driver: RunDriver, folder: Path, run: str, event: Event) -> DriveResult:
    settings = driver.settings
    try:
        audit_suppressed(settings.store, run)
        if not settings.listens:
            return await driver.drive(event)
        from failwell.workflows.running.control import listening

        async with listening(driver, folder):
            return await driver.drive(event)
    finally:
        for executor in dict.fromkeys(settings.executors.values()):
            await executor.close(run, grace=settings.grace)


def _usable(
    file: str, settings: Settings, *, as_root: bool = True, validated: Mapping[str, str] | None = None
) -> tuple[Checked, Plan]:
    checked = check_file(
        str(Path(file).absolute()),
        environ=settings.environ,
        allow_outside=settings.allow_outside,
        available=settings.available,
        as_root=as_root,
        validated=validated,
    )
    if checked.plan is None or not checked.is_usable:
        mistakes = [_with_relative_path(mistake, file) for mistake in checked.mistakes]
        raise WorkflowInvalid(file=file, mistakes=mistakes, user_action=_advice(file))
    return checked, checked.plan


def _texts(checked: Checked) -> dict[str, str]:
    return {path: text for path, (_, text) in checked.files.items()}


def _with_relative_path(mistake: Mistake, file: str) -> Mistake:
    """A mistake with a relative path, if the path of the workflow was relative."""
    if mistake.place is None or Path(file).is_absolute():
        return mistake
    return replace(mistake, place=replace(mistake.place, file=os.path.relpath(mistake.place.file)))


def _advice(file: str) -> UserAction:
    return UserAction(
        ActionKind.CHANGE_INPUT, f"correct the file; `failwell validate {file}` shows the mistakes again"
    )
