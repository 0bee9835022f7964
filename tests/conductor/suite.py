"""Small workflows with the results that conductor documents, and how they are run."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from failwell import workflows
from failwell.store.event import Event
from failwell.workflows.running.faults import WorkflowInvalid
from failwell.workflows.running.settings import GateAnswer

FOLDER = Path(__file__).parent / "cases"
GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "from-conductor.md"
KEYS = frozenset(
    {"title", "cites", "workflow", "files", "inputs", "answers", "conductor_answers", "skip_gates", "env", "differs", "conductor", "expect", "command"}
)  # fmt: skip
EXPECTATIONS = frozenset(
    {
        "output",
        "steps",
        "kind",
        "message",
        "invalid",
        "warning",
        "waiting",
        "hooks",
        "resumed",
        "code",
        "stderr",
    }
)


@dataclass(frozen=True)
class Case:
    """One workflow and what is expected of it."""

    topic: str
    title: str
    cites: str
    workflow: str
    expect: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    skip_gates: bool = False
    differs: str | None = None
    """The row of the guide's table, if conductor does something else."""
    conductor: Mapping[str, Any] | None = None
    """What conductor does, if that differs."""
    command: tuple[str, ...] | None = None
    """More arguments, if the case is also run with the installed command."""

    def write(self, folder: Path) -> Path:
        """Write the files of the case, and return the workflow's."""
        folder.mkdir(parents=True)
        for name, text in {**self.files, "workflow.yaml": self.workflow}.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return folder / "workflow.yaml"


def topics() -> list[str]:
    """The files of cases."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def cases_of(topic: str) -> list[Case]:
    """The cases of one file."""
    entries = yaml.load((FOLDER / f"{topic}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return [_case(topic, entry) for entry in entries]


def _case(topic: str, entry: dict[str, Any]) -> Case:
    unknown = entry.keys() - KEYS | entry["expect"].keys() - EXPECTATIONS
    assert not unknown, f"{entry['title']}: {unknown}"
    fields = {name: value for name, value in entry.items() if name != "conductor_answers"}
    if "command" in fields:
        fields["command"] = tuple(fields["command"])
    return Case(topic=topic, **fields)


@dataclass
class Observation:
    """What a case did."""

    steps: list[str] = field(default_factory=list[str])
    hooks: dict[str, str] = field(default_factory=dict[str, str])
    result: dict[str, Any] = field(default_factory=dict[str, Any])

    def see(self, event: Event) -> None:
        """Note the steps of the root workflow, and the hooks."""
        data = cast("Any", event.data)
        if event.type == "node:started" and not data["scope"] and "parent" not in data:
            self.steps.append(data["node"])
        elif event.type == "hook":
            self.hooks[data["hook"]] = data.get("text", "(failed)")


async def run_case(case: Case, folder: Path, store: Path, engine: Any = None) -> list[str]:
    """Run a case in this process or on another engine, and list what is not as expected."""
    file = case.write(folder)
    seen = Observation()
    answers = {gate: list(_listed(value)) for gate, value in case.answers.items()}

    async def answer(gate: str, question: Mapping[str, Any]) -> GateAnswer | None:
        if case.skip_gates:
            from failwell.cli.terminal_questions import first_option

            return await first_option(gate, question)
        if not answers.get(gate):
            return None
        entry = answers[gate].pop(0)
        if isinstance(entry, str):
            return GateAnswer(decision=entry, by="test")
        return GateAnswer(decision=entry["value"], by="test", payload=entry.get("input"))

    warnings = [mistake.message for mistake in workflows.validate(file) if not mistake.is_error]
    seen.result["warning"] = "\n".join(warnings)
    try:
        done = await workflows.arun(
            file,
            case.inputs,
            store=store,
            on_event=seen.see,
            on_gate=answer if answers or case.skip_gates else None,
            engine=engine,
        )
    except WorkflowInvalid as invalid:
        seen.result["invalid"] = "\n".join(
            mistake.message for mistake in invalid.mistakes if mistake.is_error
        )
    else:
        seen.result["output" if done.ok else done.status] = done.output
        if done.report is not None:
            seen.result["kind"] = done.report.kind
            seen.result["message"] = done.report.message
        if done.status == "waiting":
            seen.result["waiting"] = list(done.gates)
        resumed = case.expect.get("resumed")
        if resumed is not None:
            problems = await _resumed(done.id, store, resumed, folder, engine)
            return problems + differences(case.expect, seen)
    return differences(case.expect, seen)


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


async def _resumed(run: str, store: Path, expect: Mapping[str, Any], folder: Path, engine: Any) -> list[str]:
    """Resume a run after files were changed, and list what is not as expected."""
    for name, text in expect.get("files", {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    seen = Observation()
    done = await workflows.aresume(run, store=store, on_event=seen.see, engine=engine)
    seen.result["output"] = done.output
    return differences({name: value for name, value in expect.items() if name != "files"}, seen)


_TEXTS = ("invalid", "message", "warning")


def differences(expect: Mapping[str, Any], seen: Observation) -> list[str]:
    """Where an observation is not as expected."""
    result = {**seen.result, "steps": seen.steps, "hooks": seen.hooks}
    problems: list[str] = []
    if "kind" not in expect and "kind" in result:
        problems.append(f"failed with {result['kind']}: {result['message']}")
    if "invalid" not in expect and "invalid" in result:
        problems.append(f"refused: {result['invalid']}")
    if "waiting" not in expect and "waiting" in result:
        problems.append(f"waits for {result['waiting']}")
    for name, value in expect.items():
        if name in ("resumed", "code", "stderr"):
            continue
        actual = result.get(name)
        if name in _TEXTS:
            if not isinstance(actual, str) or value not in actual:
                problems.append(f"{name}: {value!r} is not in {actual!r}")
        elif _json(actual) != _json(value):
            problems.append(f"{name}: {_json(actual)} is not {_json(value)}")
    return problems


def _json(value: Any) -> str:
    """A value so that `1`, `1.0` and `true` differ."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def environment(case: Case) -> dict[str, str]:
    """The variables of a case in a process of its own."""
    return {**os.environ, **case.env}
