"""How the work of an agent ended: done, partial or failed, with what it found until then.

A sub-agent that fails often comes back as a text like any other, and the agent that called it reports success. An
`Outcome` cannot be told wrongly: its status follows from what it holds, and its text begins with it.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from failwell.adapters.describe import describe
from failwell.adapters.revival import revive
from failwell.agents.messages.formats import plain_value
from failwell.calls.gather import Partial
from failwell.calls.operation import collect_ledgers
from failwell.calls.suppress import catch, catch_async
from failwell.delivery.plain_text import json_text
from failwell.errors.axes import Category
from failwell.errors.foreign_objects import safe_call
from failwell.errors.frozen import frozen
from failwell.errors.report import Attempt, ErrorReport
from failwell.errors.wire_fields import ATTEMPT, dump, load

Status = Literal["done", "partial", "failed"]
_P = ParamSpec("_P")
_R = TypeVar("_R")
_MOST = 1_000
"""Findings and children that an outcome keeps."""
_MOST_ATTEMPTS = 256
_SHOWN = 50
"""Findings that a text lists."""
_DEEPEST = 64
_LONGEST = 2_000
"""Characters of a value or a finding in a text."""


@frozen
class Outcome:
    """How the work of an agent ended, and everything that it leaves.

    `status` is computed: `failed` where a report says so and nothing is left, `partial` where something is, or where a child is not
    done, and else `done`.
    """

    name: str
    """The agent."""
    value: Any = None
    """What it returned; `None` if it failed."""
    findings: tuple[Any, ...] = ()
    """What it noted on the way, which is there although it failed."""
    report: ErrorReport | None = None
    """Why it is not done."""
    attempts: tuple[Attempt, ...] = ()
    """The ledger: its calls that failed and those after them, and the calls of its chains."""
    children: tuple["Outcome", ...] = ()
    """The outcomes of the agents that it ran."""
    status: Status = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", self._status())

    def _status(self) -> Status:
        statuses = {child.status for child in self.children}
        if self.report is None:
            return "partial" if statuses - {"done"} else "done"
        is_empty = self.value is None and not self.findings and not statuses - {"failed"}
        return "failed" if is_empty else "partial"

    @property
    def all_findings(self) -> tuple[Any, ...]:
        """The findings of this agent and of those below it."""
        return (*self.findings, *(finding for child in self.children for finding in child.all_findings))

    def result(self) -> Any:
        """The value of an agent that is done.

        Raises:
            Fault: it is not; the failure of the agent, or of the first child that is not done.
        """
        if self.status != "done":
            raise revive(self._first_report())
        return self.value

    def _first_report(self) -> ErrorReport:
        if self.report is not None:
            return self.report
        child = next(child for child in self.children if child.status != "done")
        return child._first_report()  # noqa: SLF001  (the same class)

    def view(self) -> dict[str, Any]:
        """What a model may see of it, as JSON-safe values: of a failure its kind and advice, and no text of an exception."""
        shown: dict[str, Any] = {"agent": self.name, "status": self.status}
        if self.value is not None:
            shown["value"] = _json_safe(self.value)
        if self.findings:
            shown["findings"] = [_json_safe(finding) for finding in self.findings]
        if self.report is not None:
            shown["error"] = self.report.view("model")
        if self.children:
            shown["children"] = [child.view() for child in self.children]
        return shown

    def text(self) -> str:
        """The same in lines, for the result of the tool call that ran the agent. Each agent's line begins with its status."""
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> list[str]:
        lines = [f"{indent}{_STATUS_TEXT[self.status]} {_shown(self.name)}{self._reason()}"]
        if self.value is not None:
            lines.append(
                f"{indent}  {'result' if self.status == 'done' else 'part of a result'}: {_shown(self.value)}"
            )
        if self.findings:
            lines.append(f"{indent}  findings{'' if self.status == 'done' else ' before it ended'}:")
            lines += [f"{indent}  - {_shown(finding)}" for finding in self.findings[:_SHOWN]]
            if len(self.findings) > _SHOWN:
                lines.append(f"{indent}  - and {len(self.findings) - _SHOWN} more")
        for child in self.children:
            lines += child._lines(f"{indent}  ")  # noqa: SLF001  (the same class)
        return lines

    def _reason(self) -> str:
        if self.report is not None:
            error = self.report.view("model")
            advice = f" {error['advice']}" if "advice" in error else ""
            return f": {error['title']} ({error['kind']}).{advice}"
        missing = [child.name for child in self.children if child.status != "done"]
        return f": {', '.join(missing)} did not finish." if missing else ""

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON-safe values. A value that is no JSON is written as the name of its type."""
        data: dict[str, Any] = {"agent": self.name, "status": self.status}
        if self.value is not None:
            data["value"] = _json_safe(self.value)
        if self.findings:
            data["findings"] = [_json_safe(finding) for finding in self.findings]
        if self.report is not None:
            data["report"] = self.report.to_dict()
        if self.attempts:
            data["attempts"] = dump(ATTEMPT, self.attempts)
        if self.children:
            data["children"] = [child.to_dict() for child in self.children]
        return data

    def to_json(self) -> str:
        """The outcome as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Outcome":
        """The outcome that `to_dict` wrote.

        Raises:
            ValueError: it did not; the member that is wrong is named.
            Validation: the report in it is none.
        """
        return _read(data, 0)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Outcome":
        """The outcome that `to_json` wrote; see `from_dict`."""
        return cls.from_dict(json.loads(text))


_STATUS_TEXT: dict[str, str] = {"done": "DONE", "partial": "PARTIAL, NOT DONE:", "failed": "FAILED:"}


class _Notes:
    """What the agent that is running has noted so far."""

    __slots__ = ("children", "findings")

    def __init__(self) -> None:
        self.findings: list[Any] = []
        self.children: list[Outcome] = []


_notes: ContextVar[_Notes | None] = ContextVar("failwell_agent", default=None)


def note_finding(finding: Any) -> None:
    """Keep a finding of the agent that is running: it survives if the agent fails. Outside `run_agent` it does nothing.

    Args:
        finding: Anything that becomes JSON.
    """
    notes = _notes.get()
    if notes is not None and len(notes.findings) < _MOST:
        notes.findings.append(finding)


@overload
def run_agent(
    function: Callable[_P, Awaitable[_R]], *args: _P.args, **kwargs: _P.kwargs
) -> Awaitable[Outcome]: ...


@overload
def run_agent(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> Outcome: ...


def run_agent(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run an agent and return how it ended, instead of raising.

    What it noted with `note_finding` is in the outcome, and so are the outcomes of the agents that it ran itself, also in tasks and in
    the threads of `gather`. An async function is awaited: `await run_agent(...)`. Its name is that of the function.

    Args:
        function: The agent, plain or async.
        args: Passed to it.
        kwargs: Passed to it.

    Raises:
        Cancellation: it was cancelled, which is no failure of the agent. Interrupts are raised too.

    Example:
        >>> from failwell import Fault
        >>> from failwell.agents import note_finding, run_agent
        >>> def research(topic):
        ...     note_finding(f"{topic}: 12 pages")
        ...     raise Fault(kind="provider.overloaded")
        >>> outcome = run_agent(research, "cats")
        >>> outcome.status, outcome.findings
        ('partial', ('cats: 12 pages',))
    """
    from inspect import iscoroutinefunction

    inner: Any = function
    while type(inner) is partial:
        inner = inner.func
    name = getattr(inner, "__name__", type(inner).__name__)
    called = inner if hasattr(inner, "__code__") else type(inner).__call__
    if iscoroutinefunction(called):
        return _run_async(name, function, args, kwargs)
    notes, outer = _Notes(), _notes.get()
    token = _notes.set(notes)
    try:
        with collect_ledgers() as ledgers:
            value, error = catch(partial(function, *args, **kwargs))
    finally:
        _notes.reset(token)
    return _outcome(name, notes, outer, value, error, [row for ledger in ledgers for row in ledger.attempts])


async def _run_async(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Outcome:
    notes, outer = _Notes(), _notes.get()
    token = _notes.set(notes)
    try:
        with collect_ledgers() as ledgers:
            value, error = await catch_async(partial(function, *args, **kwargs))
    finally:
        _notes.reset(token)
    return _outcome(name, notes, outer, value, error, [row for ledger in ledgers for row in ledger.attempts])


def _outcome(
    name: str, notes: _Notes, outer: _Notes | None, value: Any, error: Exception | None, rows: list[Attempt]
) -> Outcome:
    report = None
    if error is not None:
        report = describe(error)
        if report.category is Category.CANCELLED:
            raise error
    elif isinstance(value, Partial) and value.errors:
        # A batch of which items failed: the first of them is why it is not complete.
        batch = cast("Partial[Any]", value)
        report, value = next(iter(batch.errors.values())), list(batch.results.values()) or None
    outcome = Outcome(
        name=name,
        value=value,
        findings=tuple(notes.findings),
        report=report,
        attempts=tuple(rows[-_MOST_ATTEMPTS:]),
        children=tuple(notes.children),
    )
    if isinstance(value, Outcome):
        outcome = _passed_on(outcome, value)
    if outer is not None and len(outer.children) < _MOST:
        outer.children.append(outcome)
    return outcome


def _passed_on(outcome: Outcome, inner: Outcome) -> Outcome:
    """The outcome of an agent that returned that of another: as good as that one, and no better."""
    children = tuple(child for child in outcome.children if child is not inner)
    return replace(
        outcome,
        value=inner.value,
        findings=(*outcome.findings, *inner.findings),
        report=inner.report,
        children=(*children, *inner.children),
    )


def _read(data: object, depth: int) -> Outcome:
    if not isinstance(data, Mapping) or depth > _DEEPEST:
        raise ValueError(f"an outcome is a JSON object with at most {_DEEPEST} agents below each other")
    members = cast("Mapping[str, Any]", data)
    name = members.get("agent")
    if not isinstance(name, str):
        raise ValueError("`agent` of an outcome must be a text")  # noqa: TRY004  (the text is wrong, not its type)
    report = members.get("report")
    outcome = Outcome(
        name=name,
        value=members.get("value"),
        findings=tuple(_list_in(members, "findings")),
        report=None if report is None else ErrorReport.read(report),
        attempts=tuple(_attempt(row) for row in _list_in(members, "attempts")),
        children=tuple(_read(child, depth + 1) for child in _list_in(members, "children")),
    )
    if members.get("status") != outcome.status:
        # What failed must not come back as done because its report was lost.
        raise ValueError(
            f"`status` of outcome `{name}` is {members.get('status')!r}, but what it holds is {outcome.status}"
        )
    return outcome


def _attempt(row: object) -> Attempt:
    known = load(ATTEMPT, cast("dict[str, Any]", row), strict=False) if isinstance(row, dict) else {}
    members: dict[str, Any] = {"number": 0, **known}
    return Attempt(**members)


def _list_in(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f"`{name}` of an outcome must be a list")  # noqa: TRY004  (the text is wrong, not its type)
    return cast("list[Any]", value)


def _json_safe(value: Any) -> Any:
    return json.loads(safe_call(_dumped, '"<unreadable>"', value))


def _dumped(value: Any) -> str:
    return json_text(plain_value(value))


def _shown(value: Any) -> str:
    safe = _json_safe(value)
    text = safe if isinstance(safe, str) else json.dumps(safe, ensure_ascii=False)
    # A value that spans lines could pass for the line of another agent.
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
