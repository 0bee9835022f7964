"""`failwell runs tail` and `failwell runs export`: the events of a run, as they happen or all at once."""

from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_json_text, print_stderr, print_text
from failwell.cli.parser import Parser
from failwell.cli.records import add_after, add_name, add_store
from failwell.cli.runs.runs import current_run, journal
from failwell.cli.temporal.remote import following
from failwell.cli.text_file import write_text

if TYPE_CHECKING:
    from failwell.store.event import Event
    from failwell.store.run_store import Run
    from failwell.store.sqlite.run_store import SqliteStore

_PAGE = 500


def add_tail_options(parser: Parser) -> None:
    """Declare which run, and from where."""
    add_name(parser, "run")
    add_after(parser)
    add_store(parser)


def run_tail(args: Namespace) -> int:
    """Print events until the run ends, or no process drives it any more."""
    with journal(args) as store:
        run = current_run(args, store)
        assert store is not None
        with following(store, run):
            for event in store.tail(
                run.id,
                -1 if args.after is None else args.after,
                give_up=lambda: _has_no_process(store, run.id),
            ):
                if args.format == "json":
                    print_json_text(event.to_line())
                else:
                    print_text(_words(event, args.format))
        _print_status(store, run.id, args)
    return Exit.DONE


def add_export_options(parser: Parser) -> None:
    """Declare which run, from where, and the file."""
    add_name(parser, "run")
    add_after(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    add_store(parser)


def run_export(args: Namespace) -> int:
    """Write every event: one JSON object a line, or with `--format json` one document."""
    with journal(args) as store:
        run = current_run(args, store)
        assert store is not None
        events = store.read(run.id, -1 if args.after is None else args.after)
        pieces = _document(store, run, events, args) if args.format == "json" else _lines(events)
        if args.output is None:
            for piece in pieces:
                print_json_text(piece)
        else:
            lines = (f"{piece}\n" for piece in pieces)
            write_text(args.output, lines, force=args.force, see="failwell runs export --help")
            print_text(f"wrote {args.output}")
    return Exit.DONE


def _has_no_process(store: "SqliteStore", run: str) -> bool:
    return not store.is_locked(run)


def _print_status(store: "SqliteStore", run: str, args: Namespace) -> None:
    """Say why the events stop although the run has not ended."""
    now = store.run(run)
    if now.ended is None and args.format == "text":
        print_stderr(f"run {run} is {now.status}; `failwell runs show {run}` shows the next step")


def _words(event: "Event", format_: str) -> str:
    from failwell.cli.times import clock
    from failwell.delivery.agent_output import escaped
    from failwell.delivery.plain_text import one_line

    text = " ".join(_facts(event))
    if format_ == "markdown":
        return f"- {clock(event.at)} `{event.type}` {escaped(text)}".rstrip()
    return f"{clock(event.at)}  {event.seq:>5}  {event.type:<18}  {one_line(text)}".rstrip()


def _facts(event: "Event") -> Iterator[str]:
    """The fields of an event that matter most."""
    data = event.data
    for name in ("path", "to", "workflow", "gate", "decision", "reason"):
        if isinstance(data.get(name), str) and (name != "gate" or data[name] != data.get("path")):
            yield f"→ {data[name]}" if name == "to" else str(data[name])
    item: object = data.get("item")
    if isinstance(item, str) and not str(data.get("path", "")).endswith(f"[{item}]"):
        yield f"({item})"
    attempt: object = data.get("attempt")
    if isinstance(attempt, int) and attempt > 1:
        yield f"attempt {attempt}"
    failure: object = data.get("failure")
    match failure:
        case {"envelope": {"kind": str(kind), "message": str(message)}}:
            yield f"{kind}: {message}"
        case _:
            pass


def _lines(events: "Iterable[Event]") -> Iterator[str]:
    """JSON lines, many of them to a piece, because each piece is one write."""
    page: list[str] = []
    for event in events:
        page.append(event.to_line())
        if len(page) == _PAGE:
            yield "\n".join(page)
            page = []
    if page:
        yield "\n".join(page)


def _document(store: "SqliteStore", run: "Run", events: "Iterable[Event]", args: Namespace) -> Iterator[str]:
    from json import dumps

    from failwell.cli.runs.runs import start_of, summary

    document = {
        "run": summary(run, args, start_of(store, run)),
        "sources": store.sources(run.id),
        "events": [event.to_dict() for event in events],
    }
    yield dumps(document, indent=2, ensure_ascii=False)
