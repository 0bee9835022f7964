"""Starts runs, and takes them up again: from a file's path or a run's name to how it ended.

`run` refuses exactly what `validate` refuses. What a run needs to go on lies in its journal; the
files it was made from are compared with those on disk before a step of it runs again.
"""

import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from failwell.fault.axes import ActionKind
from failwell.fault.base import Fault
from failwell.fault.facts import UserAction
from failwell.fault.frozen import frozen
from failwell.journal.folder import make_private, new_run_id, run_folder
from failwell.journal.store import Store
from failwell.runtime.clock import SYSTEM_CLOCK, Clock
from failwell.workflow.check.files import Checked, check_file
from failwell.workflow.check.given import check_inputs
from failwell.workflow.local.driver import Asker, Driver, Ended, Notes, Watcher, World
from failwell.workflow.local.executor import Executor
from failwell.workflow.machine.advance import Machine, revived
from failwell.workflow.machine.events import Begin, Event, Resume
from failwell.workflow.machine.fold import fold
from failwell.workflow.machine.state import State
from failwell.workflow.mistakes import Mistake, to_json
from failwell.workflow.plan import END, Plan


class WorkflowInvalid(Fault, kind="validation.shape_invalid"):
    """A workflow file, or what it was given, has mistakes; nothing ran."""

    file: str
    mistakes: list[Mistake]

    def summary(self) -> str:
        """How many, and where."""
        errors = [one for one in self.mistakes if one.is_error]
        many = "one mistake" if len(errors) == 1 else f"{len(errors)} mistakes"
        return f"`{self.file}` has {many}"

    def own_fields(self) -> dict[str, Any]:
        """The mistakes as JSON, since a report travels."""
        return {"file": self.file, "mistakes": to_json(self.mistakes)}


class FileChanged(Fault, kind="session.resume_mismatch"):
    """The files of a run are not what they were when it began."""

    run: str
    changed: list[str]
    """One line for each difference that matters."""

    def summary(self) -> str:
        """Which run, and how much."""
        return f"the files of run `{self.run}` have changed: {'; '.join(self.changed)}"


class NothingToResume(Fault, kind="session.no_snapshot"):
    """The run has ended well, or never began."""

    run: str
    status: str

    def summary(self) -> str:
        """Why there is nothing to do."""
        return f"run `{self.run}` is {self.status}; there is nothing to go on with"


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
    luck: Callable[[], float] | None = None
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
    given, secrets = _inputs(file, plan, inputs)
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
    """Take a run up where it was left. One that ended badly is gone on with by a new run.

    Raises:
        NothingToResume: it ended well.
        FileChanged: its files have changed and that was not accepted.
        Locked: another process is at it.
    """
    with settings.store.lock(run):
        state = restored(settings.store, run)
        if state.status in ("new", "completed"):
            raise NothingToResume(run=run, status="not begun" if state.status == "new" else state.status)
        checked, plan = _usable(state.file, settings)
        changed = differences(settings.store.sources(run), checked.files)
        if changed and not accept_changes:
            raise _changed(run, changed)
        plans = checked.plans
        _open_all(state, plans, settings)
        _check_places(run, state, plans)
        secrets = _secrets(state, plan, inputs or {})
        now = settings.clock.now().timestamp()
        if state.is_over:
            return await _go_on(run, state, checked, plans, settings, secrets, limits or {})
        event = Resume(
            at=now, by=by, accepted_changes=bool(changed), limits=limits or {}, luck=_luck(settings)()
        )
        return await _drive(settings, run, plans, state, event, secrets)


def _open_all(state: State, plans: dict[str, Plan], settings: Settings) -> None:
    """Read the sub-workflows whose paths were only known at run time."""
    for scope in state.scopes.values():
        if scope.file not in plans:
            more, _ = _usable(scope.file, settings, as_root=False)
            plans.update(more.plans)


def _check_places(run: str, state: State, plans: Mapping[str, Plan]) -> None:
    """Everything that the run is at must still be in its files."""
    gone: list[str] = []
    for scope in state.scopes.values():
        nodes = plans[scope.file].nodes
        if scope.cursor not in (None, END) and scope.cursor not in nodes:
            gone.append(f"{scope.file} has no `{scope.cursor}` any more, where the run is")
    for group in state.groups.values():
        task = state.tasks[group.path]
        nodes = plans[state.scopes[task.scope].file].nodes
        if group.type == "parallel":
            missing = [key for key in group.keys if key not in nodes]
            gone += [f"`{task.node}` has no member `{key}` any more" for key in missing]
    if gone:
        raise FileChanged(
            run=run,
            changed=gone,
            user_action=UserAction(
                ActionKind.CHANGE_INPUT, "put these nodes back; the run cannot go on without them"
            ),
        )


def restored(store: Store, run: str) -> State:
    """The state of a run: its newest snapshot, and what was recorded since."""
    kept = store.latest_snapshot(run)
    before = None if kept is None else State.from_dict(json.loads(kept.state))
    events = store.read(run, -1 if kept is None else kept.seq)
    return fold(((event.type, event.at, dict(event.data)) for event in events), before)


def differences(before: Mapping[str, str], now: Mapping[str, tuple[str, str]]) -> list[str]:
    """What changed between the texts that a run was made from and those on disk, a line each."""
    from difflib import SequenceMatcher

    told: list[str] = []
    for path in sorted({*before, *now}):
        was, text = before.get(path), now[path][1] if path in now else None
        if was == text:
            continue
        if was is None or text is None:
            told.append(f"{path} is {'new' if was is None else 'gone'}")
            continue
        added = gone = first = 0
        matcher = SequenceMatcher(None, was.splitlines(), text.splitlines(), autojunk=False)
        for tag, one, two, three, four in matcher.get_opcodes():
            if tag != "equal":
                added, gone, first = added + four - three, gone + two - one, first or three + 1
        told.append(f"{path}: +{added} −{gone} lines, first at line {first}")
    return told


def _changed(run: str, changed: list[str]) -> FileChanged:
    return FileChanged(
        run=run,
        changed=changed,
        user_action=UserAction(
            ActionKind.CHANGE_INPUT,
            f"put the files back, or run `failwell resume {run} --accept-changes` to go on with the new ones",
        ),
    )


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
        luck=_luck(settings),
        secret=_Vault(secrets),
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


class _Vault:
    """The values of a run's secret inputs, by reference."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets

    def __call__(self, ref: str) -> str:
        return self._secrets[ref]


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


def _inputs(file: str, plan: Plan, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    inputs, mistakes = check_inputs(plan, given)
    if mistakes:
        raise WorkflowInvalid(file=file, mistakes=mistakes)
    secrets: dict[str, str] = {}
    for name, declared in plan.inputs.items():
        if declared.secret:
            ref = f"workflow.input.{name}"
            value = inputs[name]
            secrets[ref] = value if isinstance(value, str) else json.dumps(value)
            inputs[name] = {"secret": True, "ref": ref}
    return inputs, secrets


def _secrets(state: State, plan: Plan, given: Mapping[str, Any]) -> dict[str, str]:
    """Secrets are in no journal, so they are given anew, or come from the file's own defaults."""
    secrets: dict[str, str] = {}
    mistakes: list[Mistake] = []
    for name, declared in plan.inputs.items():
        if not declared.secret or name not in state.scopes[""].inputs:
            continue
        one = Plan(name=plan.name, entry=plan.entry, nodes={}, inputs={name: declared})
        found, wrong = check_inputs(one, {name: given[name]} if name in given else {})
        mistakes += wrong
        if name in found:
            secrets[f"workflow.input.{name}"] = str(found[name])
    if mistakes:
        raise WorkflowInvalid(
            file=plan.file,
            mistakes=mistakes,
            user_action=UserAction(
                ActionKind.CHANGE_INPUT, "give the secret inputs again with `--input`: they are not kept"
            ),
        )
    return secrets


def _luck(settings: Settings) -> Callable[[], float]:
    if settings.luck is not None:
        return settings.luck
    from failwell.runtime.luck import draw

    return draw
