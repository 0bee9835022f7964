"""Restores the state of a run from its journal, and compares its files with those on disk."""

import json
from collections.abc import Mapping

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.store.faults import damaged_record_fault
from failwell.store.folder import store_option
from failwell.store.run_store import Store
from failwell.workflows.machine.context import is_secret
from failwell.workflows.machine.fold import fold
from failwell.workflows.machine.run_state import State
from failwell.workflows.plan import END, Plan
from failwell.workflows.running.faults import FileChanged
from failwell.workflows.running.settings import Settings


def restore(store: Store, run: str) -> State:
    """The state of a run: its newest snapshot, and the events since.

    Raises:
        StoreCorrupt: what is recorded is not what a run records.
    """
    snapshot = store.latest_snapshot(run)
    events = list(store.read(run, -1 if snapshot is None else snapshot.seq))
    try:
        state = None if snapshot is None else State.from_dict(json.loads(snapshot.state))
        return fold([(event.type, event.at, event.data) for event in events], state)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise damaged_record_fault(f"run `{run}`", error) from error


def check_nodes_exist(run: str, state: State, plans: Mapping[str, Plan]) -> None:
    """Refuse to resume a run whose current nodes are no longer in its files.

    Raises:
        FileChanged: a node is missing.
    """
    changes: list[str] = []
    for scope in state.scopes.values():
        nodes = plans[scope.file].nodes
        if scope.cursor not in (None, END) and scope.cursor not in nodes:
            changes.append(f"{scope.file} no longer has `{scope.cursor}`, the current node of the run")
    for group in state.groups.values():
        task = state.tasks[group.path]
        nodes = plans[state.scopes[task.scope].file].nodes
        if group.type == "parallel":
            members = [key for key in group.keys if key not in nodes]
            changes += [f"`{task.node}` no longer has the member `{key}`" for key in members]
    if changes:
        raise FileChanged(
            run=run,
            changed=changes,
            user_action=UserAction(
                ActionKind.CHANGE_INPUT, "put these nodes back; the run cannot be resumed without them"
            ),
        )


def differences(recorded: Mapping[str, str], on_disk: Mapping[str, tuple[str, str]]) -> list[str]:
    """The changes of a workflow's files on disk since a run recorded them, one line per file."""
    from difflib import SequenceMatcher

    lines: list[str] = []
    for path in sorted({*recorded, *on_disk}):
        old, new = recorded.get(path), on_disk[path][1] if path in on_disk else None
        if old == new:
            continue
        if old is None or new is None:
            lines.append(f"{path} is {'new' if old is None else 'missing'}")
            continue
        added = removed = line = 0
        matcher = SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
        for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
            if tag != "equal":
                added, removed = added + new_end - new_start, removed + old_end - old_start
                line = line or new_start + 1
        lines.append(f"{path}: +{added} −{removed} lines, first at line {line}")
    return lines


def file_changed(run: str, changed: list[str], state: State, settings: Settings) -> FileChanged:
    """The fault for a run whose files have changed, with the command that accepts the changes."""
    options = ["--accept-changes"]
    options += [f"-i {name}=VALUE" for name, value in state.scopes[""].inputs.items() if is_secret(value)]
    if settings.allow_outside:
        options.append("--allow-outside")
    store = store_option(settings.folder, settings.environ)
    command = f"failwell resume {run} {' '.join(options)}{store}"
    return FileChanged(
        run=run,
        changed=changed,
        user_action=UserAction(
            ActionKind.CHANGE_INPUT,
            f"put the files back, or run `{command}` to resume with the new ones",
        ),
    )
