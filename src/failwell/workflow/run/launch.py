"""Starts and resumes runs: from a file's path or a run's id to how it ended.

`run` refuses exactly what `validate` refuses. What a run needs to go on lies in its journal; the
files it was made from are compared with those on disk before a step of it runs again.
"""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from failwell.fault.axes import ActionKind
from failwell.fault.facts import UserAction
from failwell.fault.frozen import frozen
from failwell.files.mistakes import Mistake
from failwell.journal.folder import make_private, new_run_id, run_folder
from failwell.journal.status import record_interrupted
from failwell.journal.store import Store
from failwell.runtime.clock import SYSTEM_CLOCK, Clock
from failwell.workflow.check.workflow_tree import Checked, check_file
from failwell.workflow.machine.advance import Machine, revived
from failwell.workflow.machine.protocol import Begin, Event, Resume
from failwell.workflow.machine.state import State
from failwell.workflow.plan import Plan
from failwell.workflow.run.driver import Driver
from failwell.workflow.run.executor import Executor
from failwell.workflow.run.faults import NothingToResume, WorkflowInvalid
from failwell.workflow.run.restoring import check_places, differences, refused_changes, restored
from failwell.workflow.run.secrets import Vault, secrets_again, split_inputs
from failwell.workflow.run.world import Asker, Ended, Notes, Watcher, World


@asynccontextmanager
async def _nothing_around(_driver: Driver, _run: str, _folder: Path) -> AsyncGenerator[None]:
    yield


@frozen
class Settings:
    """How runs are run here."""

    store: Store
    folder: Path
    """The state folder that the store lies in."""
    executors: Mapping[str, Executor]
    environ: Mapping[str, str]
    allow_outside: bool = False
    clock: Clock = SYSTEM_CLOCK
    jitter: Callable[[], float] | None = None
    watchers: tuple[Watcher, ...] = ()
    notes: Notes | None = None
    asker: Asker | None = None
    stays: bool = False
    grace: float = 0.8
    """Seconds between asking a process to end and ending it; a time limit is kept to within a second."""
    around: Callable[[Driver, str, Path], AbstractAsyncContextManager[None]] = _nothing_around
    """Entered with the driver, the run's name and its folder while the run goes on, to let others speak to it."""

    @property
    def available(self) -> frozenset[str]:
        """The types of node that something here can run."""
        return frozenset(self.executors)


async def start(
    file: str,
    inputs: Mapping[str, Any],
    settings: Settings,
    *,
    run: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Ended:
    """Run a workflow file.

    Raises:
        WorkflowInvalid: the file or the inputs have mistakes.
        Validation: the file cannot be read.
    """
    checked, plan = _usable(file, settings)
    given, secrets = split_inputs(file, plan, inputs)
    now = settings.clock.now().timestamp()
    name = run or new_run_id(now, settings.environ)
    folder = run_folder(settings.folder, name)
    told = {**(metadata or {}), "errors_file": str(folder / "errors.jsonl"), "cwd": str(Path.cwd())}
    begin = Begin(at=now, run=name, file=plan.file, inputs=given, metadata=told)
    with settings.store.lock(name):
        _create(settings, name, now, checked, plan, metadata)
        return await _drive(settings, name, checked.plans, State(), begin, secrets)


async def resume(
    run: str,
    settings: Settings,
    *,
    inputs: Mapping[str, Any] | None = None,
    accept_changes: bool = False,
    limits: Mapping[str, Any] | None = None,
    by: str = "",
) -> Ended:
    """Resume a run where it was left. One that failed or was cancelled is continued by a new run.

    Raises:
        NothingToResume: it ended well.
        FileChanged: its files have changed and that was not accepted.
        Locked: another process is at it.
    """
    with settings.store.lock(run):
        state = restored(settings.store, run)
        if state.status == "new":
            record_interrupted(settings.store, run, at=settings.clock.now().timestamp())
            raise NothingToResume(run=run, status="not begun")
        if state.status == "completed":
            raise NothingToResume(run=run, status=state.status)
        checked, plan = _usable(state.file, settings)
        changed = differences(settings.store.sources(run), checked.files)
        if changed and not accept_changes:
            raise refused_changes(run, changed)
        plans = checked.plans
        _open_all(state, plans, settings)
        check_places(run, state, plans)
        secrets = secrets_again(state, plan, inputs or {})
        now = settings.clock.now().timestamp()
        if state.is_over:
            return await _go_on(run, state, checked, plans, settings, secrets, limits or {})
        event = Resume(
            at=now, by=by, accepted_changes=bool(changed), limits=limits or {}, jitter=_jitter(settings)()
        )
        return await _drive(settings, run, plans, state, event, secrets)


def _open_all(state: State, plans: dict[str, Plan], settings: Settings) -> None:
    """Read the sub-workflows whose paths were only known at run time."""
    for scope in state.scopes.values():
        if scope.file not in plans:
            more, _ = _usable(scope.file, settings, as_root=False)
            plans.update(more.plans)


async def _go_on(
    run: str,
    state: State,
    checked: Checked,
    plans: dict[str, Plan],
    settings: Settings,
    secrets: Mapping[str, str],
    limits: Mapping[str, Any],
) -> Ended:
    """Continue a run that ended badly, under a name of its own: what has ended stays as it is."""
    plan = plans[state.file]
    now = settings.clock.now().timestamp()
    name = new_run_id(now, {})
    told = {**state.metadata, "errors_file": str(run_folder(settings.folder, name) / "errors.jsonl")}
    kept = {**revived(state), "limits": {**state.limits, **limits}}
    if "timeout_seconds" in limits or (state.ending or {}).get("error_type") == "LimitReached":
        kept["active"] = 0.0
    inputs = state.scopes[""].inputs
    continues = {"run": run, "seq": state.seq, "state": kept}
    begin = Begin(at=now, run=name, file=plan.file, inputs=inputs, metadata=told, continues=continues)
    with settings.store.lock(name):
        _create(settings, name, now, checked, plan, {**state.metadata, "continues": run})
        return await _drive(settings, name, plans, State(), begin, secrets)


def _create(
    settings: Settings,
    name: str,
    now: float,
    checked: Checked,
    plan: Plan,
    metadata: Mapping[str, Any] | None,
) -> None:
    make_private(run_folder(settings.folder, name))
    settings.store.create(
        name,
        at=now,
        workflow=plan.name,
        file=plan.file,
        digest=plan.digest,
        sources={path: text for path, (_, text) in checked.files.items()},
        metadata=metadata,
    )


async def _drive(
    settings: Settings,
    run: str,
    plans: dict[str, Plan],
    state: State,
    first: Event,
    secrets: Mapping[str, str],
) -> Ended:

    async def open_file(file: str, folder: str) -> Plan:
        from asyncio import to_thread
        from posixpath import join, normpath

        found = await to_thread(_usable, normpath(join(folder, file)), settings, as_root=False)
        plans.update(found[0].plans)
        return found[1]

    world = World(
        store=settings.store,
        run_folder=run_folder(settings.folder, run),
        executors=settings.executors,
        opener=open_file,
        clock=settings.clock,
        jitter=_jitter(settings),
        secret=Vault(secrets),
        watchers=settings.watchers,
        asker=settings.asker,
        stays=settings.stays,
        grace=settings.grace,
        notes=settings.notes or _unheard,
    )
    driver = Driver(Machine(plans), plans, world, state)
    try:
        async with settings.around(driver, run, world.run_folder):
            return await driver.drive(first)
    finally:
        for executor in dict.fromkeys(settings.executors.values()):
            await executor.close(run, grace=settings.grace)


def _unheard(_kind: str, _data: dict[str, Any]) -> None:
    """Nobody listens."""


def _usable(file: str, settings: Settings, *, as_root: bool = True) -> tuple[Checked, Plan]:
    checked = check_file(
        str(Path(file).absolute()),
        environ=settings.environ,
        allow_outside=settings.allow_outside,
        available=settings.available,
        as_root=as_root,
    )
    if checked.plan is None or not checked.is_usable:
        mistakes = [_as_typed(one, file) for one in checked.mistakes]
        raise WorkflowInvalid(file=file, mistakes=mistakes, user_action=_look(file))
    return checked, checked.plan


def _as_typed(mistake: Mistake, file: str) -> Mistake:
    """A mistake whose file is named as it was typed: a run keeps the whole path, people do not."""
    if mistake.place is None or Path(file).is_absolute():
        return mistake
    return replace(mistake, place=replace(mistake.place, file=os.path.relpath(mistake.place.file)))


def _look(file: str) -> UserAction:
    return UserAction(
        ActionKind.CHANGE_INPUT, f"correct the file; `failwell validate {file}` shows the mistakes again"
    )


def _jitter(settings: Settings) -> Callable[[], float]:
    if settings.jitter is not None:
        return settings.jitter
    from failwell.runtime.clock import random_jitter

    return random_jitter
