"""`failwell explain`: what a kind means and what to do about it, or why a saved failure was classified so."""

from argparse import Namespace
from typing import Any, NamedTuple

from failwell.calls.policy import Policy, Retry, RetryState, decide, decision_text
from failwell.calls.policy import reason as why
from failwell.cli.errors.describe import PastedInput, read_input, recognise
from failwell.cli.faults import Unreadable, reason
from failwell.cli.output import bold, print_data, wrapped
from failwell.cli.parser import Parser, usage_error
from failwell.errors.axes import Category, Repeat
from failwell.errors.context import Ledger
from failwell.errors.kinds_table import Kind
from failwell.errors.report import ErrorReport, Evidence
from failwell.files import read_policy

_RETRY = {
    Repeat.AFTER_WAITING: "yes, after a wait",
    Repeat.AFTER_FREEING: "yes, once something was freed",
    Repeat.AFTER_CHECKING: "only if the work is known to be safe to repeat",
    Repeat.NEVER: "no",
}
_WHO_ACTS = {
    Category.TRANSIENT: "the runtime: it waits and repeats",
    Category.RESOURCE: "the runtime: it frees what is in the way",
    Category.AMBIGUOUS: "a reconcile hook, or a person who checks what happened",
    Category.CAPACITY: "the owner of the account",
    Category.CONFIGURATION: "the operator",
    Category.CONTENT: "the caller, with other content",
    Category.USER_INPUT: "the caller, with other input",
    Category.DENIED: "the owner of the policy",
    Category.LIMIT: "a person, who raises the limit and resumes",
    Category.CANCELLED: "nobody: it was stopped on purpose",
    Category.FATAL: "a developer",
    Category.UNKNOWN: "a developer",
}


def add_options(parser: Parser) -> None:
    """Declare what is explained, and by which policy a saved failure is judged."""
    parser.add_argument(
        "kind",
        metavar="KIND",
        help="a kind, another system's name for one, or the file of a saved failure (`-`: stdin)",
    )
    parser.add_argument(
        "--policy", metavar="FILE", help="a policy in TOML, to show what it would make of the failure"
    )
    parser.add_argument(
        "--idempotent",
        action="store_const",
        const=True,
        help="judge the failure as that of a call that may be repeated",
    )


def run(args: Namespace) -> int:
    """Print the explanation of one kind, of each that a foreign name corresponds to, or of a failure."""
    from failwell.errors.kind_registry import find_kind

    known = find_kind(args.kind)
    if known is None and _is_file(args.kind):
        return _explain_report(args)
    for option in ("policy", "idempotent"):
        if getattr(args, option) is not None:
            raise usage_error(
                f"`--{option}` is about a saved failure, not a kind", see="failwell explain --help"
            )
    meanings = {known.name: ()} if known is not None else _foreign(args.kind)
    matches = [(find_kind(name), systems) for name, systems in meanings.items()]
    explained = [(kind, systems) for kind, systems in matches if kind is not None]
    objects = [_object(kind, args.kind, systems) for kind, systems in explained]
    return print_data(
        args,
        # A foreign name may mean several kinds, so its answer is a list even when it means one.
        objects if known is None else objects[0],
        lambda: [line for kind, systems in explained for line in ("", "", *_text(kind, systems, args))][2:],
        lambda: "\n\n".join(_markdown(kind, args.kind, systems) for kind, systems in explained),
    )


def _is_file(name: str) -> bool:
    """Whether a saved failure is meant: it is there, or it is written as only files are."""
    from os.path import isfile

    from failwell.errors.explanations import translate_name

    looks_so = name == "-" or "/" in name or name.endswith((".json", ".txt", ".log"))
    return (looks_so or isfile(name)) and not translate_name(name)  # noqa: PTH113  (as in `intake`: pathlib is slow to load)


def _foreign(name: str) -> dict[str, tuple[str, ...]]:
    """Kind → the systems that call it `name`."""
    from failwell.errors.explanations import translate_name
    from failwell.errors.kind_registry import kinds, near_kinds

    meanings: dict[str, tuple[str, ...]] = {}
    for system, kind in translate_name(name):
        meanings[kind] = (*meanings.get(kind, ()), system)
    if not meanings:
        near = near_kinds(name.lower()) or [kind.name for kind in kinds() if name.lower() in kind.name][:5]
        if not near:
            raise usage_error(f"nothing is called `{name}`", see="failwell kinds")
        raise usage_error(f"no kind is called `{name}`", value=near[0], valid=near, see="failwell kinds")
    return meanings


def _follows(kind: Kind) -> list[tuple[str, str]]:
    from failwell.cli.errors.kinds import repeat

    policy = "" if kind.policy == "none" else f" (policy `{kind.policy}`)"
    return [
        ("category", kind.category.value),
        ("retry", f"{_RETRY[repeat(kind)]}{policy}"),
        ("resubmit", "yes" if kind.resubmit else "no"),
        ("HTTP status", str(kind.status)),
        ("who acts", _WHO_ACTS[kind.category]),
        ("blame", kind.blame.value),
        ("certainty", kind.certainty.value),
        ("next step", kind.advice),
    ]


def _sections(kind: Kind) -> list[tuple[str, str]]:
    from failwell.errors.explanations import explanation

    words = explanation(kind.name)
    if words is None:
        return []
    return [("Cause", words.cause), ("Remedy", words.remedy), ("Example", words.example)]


def _object(kind: Kind, name: str, systems: tuple[str, ...]) -> dict[str, Any]:
    from failwell.cli.errors.kinds import summary

    data = summary(kind) | {section.lower(): text for section, text in _sections(kind)}
    return data | ({"asked": name, "known_there_as": list(systems)} if systems else {})


def _text(kind: Kind, systems: tuple[str, ...], args: Namespace) -> list[str]:
    lines = [bold(f"{kind.name}: {kind.title}", args)]
    if systems:
        lines.append(f"`{args.kind}` in {' and '.join(systems)}")
    lines += ["", wrapped(kind.summary), ""]
    lines += [f"  {label.ljust(11)}  {value}" for label, value in _follows(kind) if value]
    for heading, text in _sections(kind):
        body = (
            "\n".join(f"  {line}" for line in text.splitlines())
            if heading == "Example"
            else wrapped(text, "  ")
        )
        lines += ["", bold(heading, args), body]
    return lines


def _markdown(kind: Kind, name: str, systems: tuple[str, ...]) -> str:
    from failwell.errors.explanations import explanation

    parts = [f"# {kind.name}: {kind.title}"]
    if systems:
        parts.append(f"`{name}` in {' and '.join(systems)}.")
    parts += [kind.summary, "\n".join(f"- {label}: {value}" for label, value in _follows(kind) if value)]
    words = explanation(kind.name)
    if words is not None:
        parts += ["## Cause", words.cause, "## Remedy", words.remedy]
        parts += ["## Example", f"```{words.language}\n{words.example}\n```"]
    return "\n\n".join(parts)


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


def _explain_report(args: Namespace) -> int:
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
