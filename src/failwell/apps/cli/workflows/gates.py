"""`failwell gate`: list the questions that runs wait with, and answer them."""

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from failwell.apps.cli.commands import JSON, MARKDOWN
from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import say, say_json
from failwell.apps.cli.parser import wrong
from failwell.apps.cli.workflows.runs_find import add_store, find_run, journal

if TYPE_CHECKING:
    from failwell.journal.store import Run, Store

_ACTIONS = ("list", "respond")


def add_options(parser: ArgumentParser) -> None:
    """Declare what can be done with gates."""
    parser.usage = (
        "%(prog)s [list] [RUN] [options]\n"
        "       %(prog)s respond RUN GATE VALUE [--comment TEXT] [--payload JSON] [options]"
    )
    parser.add_argument(
        "action", nargs="?", default="list", choices=_ACTIONS, help="what to do (default: list)"
    )
    parser.add_argument("run", nargs="?", metavar="RUN", help="an id, the beginning of one, or `last`")
    parser.add_argument("gate", nargs="?", metavar="GATE", help="the gate, as `gate list` names it")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="the chosen option's value")
    parser.add_argument("--comment", default="", metavar="TEXT", help="a remark that is kept with the answer")
    parser.add_argument(
        "--payload", metavar="JSON", help="more input, or the answers of a questions step by id"
    )
    parser.add_argument("--by", metavar="NAME", help="who answers (default: the user)")
    add_store(parser)
    parser.epilog = "An answer to a run that nobody drives is kept, and counts when the run is resumed."


def run(args: Namespace) -> int:
    """List or respond."""
    if args.action == "list":
        return _list(args)
    missing = next((name for name in ("run", "gate", "value") if getattr(args, name) is None), None)
    if missing is not None:
        raise wrong(f"missing {missing.upper()}", see="failwell gate --help")
    return _respond(args)


def _list(args: Namespace) -> int:
    rows: list[dict[str, Any]] = []
    with journal(args) as store:
        if store is not None:
            runs = (
                [find_run(store, args.run)]
                if args.run
                else store.runs(statuses=("waiting", "running", "interrupted", "parked"))
            )
            rows = [row for one in runs for row in _open(store, one)]
    if args.format == JSON:
        say_json(rows)
    elif args.format == MARKDOWN:
        lines = [
            f"| {row['run']} | {row['id']} | {row['prompt']} | {', '.join(row['values'])} |" for row in rows
        ]
        say("\n".join(["| run | gate | asks | answers |", "| --- | --- | --- | --- |", *lines]))
    else:
        lines = [line for row in rows for line in _lines(row)]
        say("\n".join(lines) or "no gate is open")
    return Exit.DONE


def _lines(row: dict[str, Any]) -> list[str]:
    """One gate, and below it the questions that `--payload` answers by id."""
    first = f"{row['run']}  {row['id']}  {row['prompt']}  [{' | '.join(row['values'])}]"
    below: list[str] = []
    for one in row["questions"]:
        choices = f"  [{' | '.join(one['choices'])}]" if one.get("choices") else ""
        must = "  (required)" if one.get("required") and one.get("default") is None else ""
        below.append(f"  {one['id']}: {one['text']}{choices}{must}")
    return [first, *below]


def _open(store: "Store", one: "Run") -> list[dict[str, Any]]:
    from failwell.workflow.run.control import answers_of, gates_in
    from failwell.workflow.run.restoring import restored

    return [
        {
            "id": gate,
            "run": one.id,
            "type": question.get("type"),
            "prompt": question.get("prompt", ""),
            "values": answers_of(question),
            "questions": question.get("questions", []),
            "assignee": question.get("assignee"),
            "answered": "answer" in question,
        }
        for gate, question in gates_in(restored(store, one.id).tasks.values()).items()
    ]


def _respond(args: Namespace) -> int:
    from failwell.apps.cli.workflows.terminal import whoever
    from failwell.journal.folder import run_folder, state_folder
    from failwell.workflow.run.control import say as say_to

    answer: dict[str, Any] = {
        "gate": args.gate,
        "decision": args.value,
        "by": args.by or whoever(),
        "comment": args.comment,
    }
    if args.payload is not None:
        answer["payload"] = _payload(args.payload)
    with journal(args) as store:
        found = find_run(store, args.run)
        assert store is not None
        reply = say_to(run_folder(state_folder(args.store), found.id), {"do": "answer", **answer})
        if reply is None:
            _keep(store, found, answer)
            told = {
                "id": args.gate,
                "run": found.id,
                "decision": args.value,
                "next": f"failwell resume {found.id}",
            }
        elif not reply["ok"]:
            raise wrong(reply["error"], see=f"failwell gate list {found.id}")
        else:
            told = {"id": args.gate, "run": found.id, "decision": args.value}
    if args.format == JSON:
        say_json(told)
    else:
        say(f"answered `{args.gate}` of run {told['run']} with `{args.value}`")
        if "next" in told:
            say(f"next: {told['next']}")
    return Exit.DONE


def _keep(store: "Store", found: "Run", answer: dict[str, Any]) -> None:
    """Record the answer for whoever resumes the run."""
    from failwell.runtime.clock import SYSTEM_CLOCK
    from failwell.workflow.run.control import gates_in, refusal
    from failwell.workflow.run.restoring import restored

    with store.lock(found.id):
        tasks = restored(store, found.id).tasks.values()
        problem = refusal(gates_in(tasks), answer["gate"], answer["decision"], answer.get("payload"))
        if problem is not None:
            raise wrong(problem, see=f"failwell gate list {found.id}")
        task = next(one for one in tasks if one.gate == answer["gate"])
        data = {
            "path": task.path,
            "gate": answer["gate"],
            "decision": answer["decision"],
            "decided_by": answer["by"],
        }
        data |= {name: answer[name] for name in ("payload", "comment") if answer.get(name)}
        store.append(found.id, [("human_gate:answered", SYSTEM_CLOCK.now().timestamp(), data)])


def _payload(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise wrong(f"`--payload` is not JSON: {error}", see="failwell gate --help") from None
