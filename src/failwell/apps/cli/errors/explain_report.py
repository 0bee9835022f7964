"""`failwell explain REPORT`: why a saved failure was classified so, and what a policy decides.

The decision is worked out again from the report alone, so another policy can be tried on a failure
that is long past.
"""

from argparse import Namespace
from typing import Any, NamedTuple

from failwell.apps.cli.errors.pasted_input import PastedInput, read_input, recognise
from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.faults import Unreadable, reason
from failwell.apps.cli.output import bold, print_json, print_text
from failwell.decision.policy import Policy, Tries, decide
from failwell.decision.policy import reason as why
from failwell.decision.verdict import Retry, decision_text
from failwell.report.failure_context import Ledger
from failwell.report.record import ErrorReport, Evidence

_MOST_CALLS = 20


class _Judged(NamedTuple):
    """What one policy makes of a report."""

    policy: str
    rule: str
    others: tuple[str, ...]
    decision: str
    calls: int
    """How many calls it would make in all, if every one failed like this."""
    waits: tuple[float, ...]


def run(args: Namespace) -> int:
    """Read the report, judge it, show it."""
    report = recognise(PastedInput(read_input(args.kind)))
    judged = [_judge(Policy(), report, args)]
    if args.policy is not None:
        judged.append(_judge(_policy(args.policy), report, args))
    if args.format == "json":
        print_json(_object(report, judged))
    elif args.format == "markdown":
        print_text(_markdown(report, judged))
    else:
        print_text(_text(report, judged, args))
    return Exit.DONE


def _policy(path: str) -> Policy:
    try:
        return Policy.from_file(path)
    except OSError as error:
        raise Unreadable.wrap(error, f"cannot read `{path}`: {reason(error)}", caller_facing=True) from error


def _judge(policy: Policy, report: ErrorReport, args: Namespace) -> _Judged:
    spent = max(1, len(report.attempts))
    idempotent: bool | None = args.idempotent
    reasoned = why(policy, report, Tries(spent, idempotent=idempotent))
    waits: list[float] = []
    while len(waits) < _MOST_CALLS:
        step = decide(policy, report, Tries(len(waits) + 1, idempotent=idempotent))
        if not isinstance(step, Retry):
            break
        waits.append(step.after)
    return _Judged(
        policy.name,
        reasoned.rule,
        reasoned.others,
        decision_text(reasoned.decision),
        len(waits) + 1,
        tuple(waits),
    )


def _evidence(report: ErrorReport) -> tuple[list[Evidence], list[Evidence]]:
    """What the classification rests on, and the rules that fitted as well."""
    spoke = [one for one in report.evidence if one.basis != "runner_up"]
    return spoke, [one for one in report.evidence if one.basis == "runner_up"]


def _object(report: ErrorReport, judged: list[_Judged]) -> dict[str, Any]:
    spoke, near = _evidence(report)
    return {
        "id": report.id,
        "kind": report.kind,
        "category": report.category.value,
        "certainty": report.certainty.value,
        "evidence": [{"rule": one.rule, "basis": one.basis, "saw": one.saw} for one in spoke],
        "runners_up": [{"rule": one.rule, "kind": one.saw} for one in near],
        "attempts": len(report.attempts),
        "decisions": [
            {
                "policy": one.policy,
                "rule": one.rule,
                "others": list(one.others),
                "decision": one.decision,
                "calls": one.calls,
                "waits": list(one.waits),
            }
            for one in judged
        ],
    }


def _lines(report: ErrorReport) -> list[tuple[str, list[str]]]:
    """Headings with the facts below each."""
    spoke, near = _evidence(report)
    reasons = [f"{one.rule}, by its {one.basis}{f': {one.saw}' if one.saw else ''}" for one in spoke]
    alternatives = [f"{one.rule} would give {one.saw}" for one in near]
    facts = [f"category {report.category}", f"certainty {report.certainty}", f"blame {report.blame}"]
    if report.not_before is not None:
        facts.append(f"not before {report.not_before.after:g} s, says {report.not_before.source}")
    sections = [
        ("What it is", facts),
        ("Why it is called that", reasons or ["nothing was recorded"]),
        ("What it nearly was", alternatives),
    ]
    return [(heading, facts) for heading, facts in sections if facts]


def _verdicts(report: ErrorReport, judged: list[_Judged]) -> list[tuple[str, list[str]]]:
    spent = len(report.attempts)
    after = f" after {spent} attempts" if spent > 1 else ""
    sections: list[tuple[str, list[str]]] = []
    for one in judged:
        lines = [f"decision{after}: {one.decision}", f"rule: {one.rule}"]
        if one.others:
            lines.append(f"next in line: {', '.join(one.others)}")
        lines.append(_plan(one))
        sections.append((f"Under the policy `{one.policy}`", lines))
    return sections


def _plan(one: _Judged) -> str:
    if not one.waits:
        return "if it always failed like this: one call"
    waits = ", ".join(f"{wait:g}" for wait in one.waits)
    return f"if it always failed like this: {one.calls} calls, {waits} s apart"


def _text(report: ErrorReport, judged: list[_Judged], args: Namespace) -> list[str]:
    text = [bold(f"{report.kind}: {report.title}", args), "", report.message]
    for heading, lines in [*_lines(report), *_verdicts(report, judged)]:
        text += ["", bold(heading, args), *(f"  {line}" for line in lines)]
    if report.attempts:
        table = Ledger(layer="", attempts=report.attempts).table()
        text += ["", bold("What was tried", args), *(f"  {line}" for line in table.splitlines())]
    return text


def _markdown(report: ErrorReport, judged: list[_Judged]) -> str:
    from failwell.delivery.agent_output import escaped

    parts = [f"# {escaped(f'{report.kind}: {report.title}')}", escaped(report.message)]
    for heading, lines in [*_lines(report), *_verdicts(report, judged)]:
        parts += [f"## {escaped(heading)}", "\n".join(f"- {escaped(line)}" for line in lines)]
    return "\n\n".join(parts)
