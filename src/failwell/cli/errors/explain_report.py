"""`failwell explain` of a saved failure: why it was classified so, and what a policy would make of it."""

from argparse import Namespace
from typing import Any, NamedTuple

from failwell.calls.policy import Policy, Retry, RetryState, decide, decision_text
from failwell.calls.policy import reason as why
from failwell.cli.errors.describe import PastedInput, read_input, recognise
from failwell.cli.faults import Unreadable, reason
from failwell.cli.output import bold, print_data
from failwell.errors.context import Ledger
from failwell.errors.report import ErrorReport, Evidence
from failwell.files import read_policy

_MOST_CALLS = 20


class _PolicyOutcome(NamedTuple):
    """What one policy makes of a report."""

    policy: str
    rule: str
    others: tuple[str, ...]
    decision: str
    calls: int
    """How many calls it would make in all, if every one failed like this."""
    waits: tuple[float, ...]


def explain_report(args: Namespace) -> int:
    """Read the report, judge it, show it."""
    report = recognise(PastedInput(read_input(args.kind)))
    outcomes = [_judge(Policy(), report, args)]
    if args.policy is not None:
        outcomes.append(_judge(_policy(args.policy), report, args))
    return print_data(
        args,
        lambda: _report_object(report, outcomes),
        lambda: _report_text(report, outcomes, args),
        lambda: _report_markdown(report, outcomes),
    )


def _policy(path: str) -> Policy:
    try:
        return read_policy(path)
    except OSError as error:
        raise Unreadable.wrap(error, f"cannot read `{path}`: {reason(error)}", caller_facing=True) from error


def _judge(policy: Policy, report: ErrorReport, args: Namespace) -> _PolicyOutcome:
    spent = max(1, len(report.attempts))
    idempotent: bool | None = args.idempotent
    reasoned = why(policy, report, RetryState(spent, idempotent=idempotent))
    waits: list[float] = []
    while len(waits) < _MOST_CALLS:
        step = decide(policy, report, RetryState(len(waits) + 1, idempotent=idempotent))
        if not isinstance(step, Retry):
            break
        waits.append(step.after)
    return _PolicyOutcome(
        policy.name,
        reasoned.rule,
        reasoned.others,
        decision_text(reasoned.decision),
        len(waits) + 1,
        tuple(waits),
    )


def _evidence(report: ErrorReport) -> tuple[list[Evidence], list[Evidence]]:
    """What the classification rests on, and the rules that fitted as well."""
    reasons = [evidence for evidence in report.evidence if evidence.basis != "runner_up"]
    return reasons, [evidence for evidence in report.evidence if evidence.basis == "runner_up"]


def _report_object(report: ErrorReport, outcomes: list[_PolicyOutcome]) -> dict[str, Any]:
    deciding, near = _evidence(report)
    return {
        "id": report.id,
        "kind": report.kind,
        "category": report.category.value,
        "certainty": report.certainty.value,
        "evidence": [
            {"rule": evidence.rule, "basis": evidence.basis, "saw": evidence.saw} for evidence in deciding
        ],
        "runners_up": [{"rule": evidence.rule, "kind": evidence.saw} for evidence in near],
        "attempts": len(report.attempts),
        "decisions": [
            {
                "policy": outcome.policy,
                "rule": outcome.rule,
                "others": list(outcome.others),
                "decision": outcome.decision,
                "calls": outcome.calls,
                "waits": list(outcome.waits),
            }
            for outcome in outcomes
        ],
    }


def _lines(report: ErrorReport) -> list[tuple[str, list[str]]]:
    """Headings with the facts below each."""
    deciding, near = _evidence(report)
    reasons = [
        f"{evidence.rule}, by its {evidence.basis}{f': {evidence.saw}' if evidence.saw else ''}"
        for evidence in deciding
    ]
    alternatives = [f"{evidence.rule} would give {evidence.saw}" for evidence in near]
    facts = [f"category {report.category}", f"certainty {report.certainty}", f"blame {report.blame}"]
    if report.not_before is not None:
        facts.append(f"not before {report.not_before.after:g} s, says {report.not_before.source}")
    sections = [
        ("What it is", facts),
        ("Why it is called that", reasons or ["nothing was recorded"]),
        ("What it nearly was", alternatives),
    ]
    return [(heading, facts) for heading, facts in sections if facts]


def _verdicts(report: ErrorReport, outcomes: list[_PolicyOutcome]) -> list[tuple[str, list[str]]]:
    spent = len(report.attempts)
    after = f" after {spent} attempts" if spent > 1 else ""
    sections: list[tuple[str, list[str]]] = []
    for outcome in outcomes:
        lines = [f"decision{after}: {outcome.decision}", f"rule: {outcome.rule}"]
        if outcome.others:
            lines.append(f"next in line: {', '.join(outcome.others)}")
        lines.append(_plan(outcome))
        sections.append((f"Under the policy `{outcome.policy}`", lines))
    return sections


def _plan(outcome: _PolicyOutcome) -> str:
    if not outcome.waits:
        return "if it always failed like this: one call"
    waits = ", ".join(f"{wait:g}" for wait in outcome.waits)
    return f"if it always failed like this: {outcome.calls} calls, {waits} s apart"


def _report_text(report: ErrorReport, outcomes: list[_PolicyOutcome], args: Namespace) -> list[str]:
    text = [bold(f"{report.kind}: {report.title}", args), "", report.message]
    for heading, lines in [*_lines(report), *_verdicts(report, outcomes)]:
        text += ["", bold(heading, args), *(f"  {line}" for line in lines)]
    if report.attempts:
        table = Ledger(layer="", attempts=report.attempts).table()
        text += ["", bold("What was tried", args), *(f"  {line}" for line in table.splitlines())]
    return text


def _report_markdown(report: ErrorReport, outcomes: list[_PolicyOutcome]) -> str:
    from failwell.delivery.agent_output import escaped

    parts = [f"# {escaped(f'{report.kind}: {report.title}')}", escaped(report.message)]
    for heading, lines in [*_lines(report), *_verdicts(report, outcomes)]:
        parts += [f"## {escaped(heading)}", "\n".join(f"- {escaped(line)}" for line in lines)]
    return "\n\n".join(parts)
