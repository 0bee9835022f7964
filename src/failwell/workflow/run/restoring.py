"""From a journal back to a state, and whether the files on disk still fit it."""

import json
from collections.abc import Mapping

from failwell.fault.axes import ActionKind
from failwell.fault.facts import UserAction
from failwell.journal.folder import store_option
from failwell.journal.store import Store
from failwell.workflow.machine.fold import fold
from failwell.workflow.machine.state import State
from failwell.workflow.plan import END, Plan
from failwell.workflow.run.faults import FileChanged
from failwell.workflow.run.settings import Settings


def restored(store: Store, run: str) -> State:
    """The state of a run: its newest snapshot, and what was recorded since."""
    snapshot = store.latest_snapshot(run)
    before = None if snapshot is None else State.from_dict(json.loads(snapshot.state))
    events = list(store.read(run, -1 if snapshot is None else snapshot.seq))
    return fold([(event.type, event.at, dict(event.data)) for event in events], before)


def check_places(run: str, state: State, plans: Mapping[str, Plan]) -> None:
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


def differences(before: Mapping[str, str], now: Mapping[str, tuple[str, str]]) -> list[str]:
    """What changed between the texts that a run was made from and those on disk, a line each."""
    from difflib import SequenceMatcher

    lines: list[str] = []
    for path in sorted({*before, *now}):
        was, text = before.get(path), now[path][1] if path in now else None
        if was == text:
            continue
        if was is None or text is None:
            lines.append(f"{path} is {'new' if was is None else 'gone'}")
            continue
        added = gone = first = 0
        matcher = SequenceMatcher(None, was.splitlines(), text.splitlines(), autojunk=False)
        for tag, one, two, three, four in matcher.get_opcodes():
            if tag != "equal":
                added, gone, first = added + four - three, gone + two - one, first or three + 1
        lines.append(f"{path}: +{added} −{gone} lines, first at line {first}")
    return lines


def refused_changes(run: str, changed: list[str], settings: Settings) -> FileChanged:
    """The refusal to resume with files that have changed."""
    command = f"failwell resume {run} --accept-changes{store_option(settings.folder, settings.environ)}"
    return FileChanged(
        run=run,
        changed=changed,
        user_action=UserAction(
            ActionKind.CHANGE_INPUT,
            f"put the files back, or run `{command}` to resume with the new ones",
        ),
    )
