"""`failwell audit`: show, verify and export the audit of a store."""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from failwell.cli.exit_codes import Exit
from failwell.cli.listing import Listing, markdown_table, print_listing
from failwell.cli.output import print_data, print_json_text, print_text
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_after, add_limit, add_name, add_store
from failwell.cli.runs.runs import journal
from failwell.cli.times import clock

if TYPE_CHECKING:
    from failwell.store.audit import AuditCheck, AuditLog, AuditRecord

COLUMNS = ("seq", "at", "run", "type", "what")
_EMPTY = "the audit has no records; agents, tools and answers of people write them"
_HASH_LENGTH = 64


def add_show_options(parser: Parser) -> None:
    """Declare which records."""
    _add_filters(parser)
    add_limit(parser)


def run_show(args: Namespace) -> int:
    """Show the latest records, the oldest first."""
    with journal(args) as store:
        log = None if store is None else store.audit
        records = (
            []
            if log is None
            else log.latest(
                args.limit, run=_run(log, args.run), types=tuple(args.type), after=args.after or 0
            )
        )
    rows, objects = [_row(record) for record in records], [_fields(record) for record in records]
    return print_listing(args, Listing(COLUMNS, rows, objects, _EMPTY, optional=("run",)))


def add_verify_options(parser: Parser) -> None:
    """Declare what is expected."""
    parser.add_argument(
        "--expect",
        metavar="SEQ:HASH",
        type=_expectation,
        help="a record that an earlier `verify` or `export` printed; it must still be there",
    )
    add_store(parser)
    parser.epilog = (
        "Exit codes: 0 every record is as it was written; 1 a record was changed, removed or inserted."
    )


def run_verify(args: Namespace) -> int:
    """Compute every hash again. The problems name the records."""
    from failwell.store.audit import FIRST, AuditCheck, AuditProblem

    with journal(args) as store:
        check = AuditCheck(records=0, head=FIRST) if store is None else store.audit.verify(args.expect)
    if store is None and args.expect is not None:
        gone = AuditProblem(seq=args.expect[0], problem=f"record {args.expect[0]} is missing")
        check = AuditCheck(records=0, head=FIRST, problems=(gone,))
    _print_check(check, args)
    return Exit.FAILED if check.problems else Exit.DONE


def add_export_options(parser: Parser) -> None:
    """Declare which records, and the file."""
    _add_filters(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file instead of stdout")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.epilog = (
        "In text, one JSON object a line. Each record holds its hash and that of the record before it."
    )


def run_export(args: Namespace) -> int:
    """Write every record: one JSON object a line, with `--format json` one array, or a Markdown table."""
    with journal(args) as store:
        log = None if store is None else store.audit
        records: Iterable[AuditRecord] = (
            ()
            if log is None
            else log.records(run=_run(log, args.run), types=tuple(args.type), after=args.after or 0)
        )
        pieces = _pieces(records, args.format)
        if args.output is None:
            for piece in pieces:
                (print_text if args.format == "markdown" else print_json_text)(piece)
        else:
            from failwell.cli.text_file import write_text

            lines = (f"{piece}\n" for piece in pieces)
            write_text(args.output, lines, force=args.force, see="failwell audit export --help")
            print_text(f"wrote {args.output}")
    return Exit.DONE


def _add_filters(parser: Parser) -> None:
    add_name(parser, "run", optional=True)
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="TYPE",
        help="only records of this type, such as `tool:called`, or group, such as `tool`; repeatable",
    )
    add_after(parser)
    add_store(parser)


def _expectation(text: str) -> tuple[int, str]:
    number, _, digest = text.partition(":")
    is_hash = len(digest) == _HASH_LENGTH and set(digest) <= set("0123456789abcdef")
    if not (number.isascii() and number.isdecimal() and int(number) > 0 and is_hash):
        raise ArgumentTypeError(f"`{text}` is not SEQ:HASH, a number and 64 hexadecimal digits")
    return int(number), digest


def _run(log: "AuditLog", name: str | None) -> str | None:
    """The run or session that `name` means: its id, the only id that begins with it, or `last`."""
    if name is None:
        return None
    from failwell.cli.records import LAST, first_few, no_record
    from failwell.store.faults import UnknownRun

    matches = log.runs("", 1) if name == LAST else log.runs(name, 6)
    if name in matches:
        return name
    if len(matches) > 1:
        raise usage_error(f"`{name}` matches several runs: {first_few(matches)}", see="failwell audit show")
    if not matches:
        raise no_record(name, "run", UnknownRun, log.runs("", 100))
    return matches[0]


def _fields(record: "AuditRecord") -> dict[str, Any]:
    return {"id": record.seq, **record.to_dict()}


def _row(record: "AuditRecord") -> tuple[str, ...]:
    return str(record.seq), clock(record.at), record.run or "-", record.type, _what(record.data)


def _what(data: Mapping[str, Any]) -> str:
    """The facts of a record in one line; long ones are left to the other formats."""
    from json import dumps

    facts: list[str] = []
    for name, value in data.items():
        if isinstance(value, str | int | float | bool):
            text = value if isinstance(value, str) else dumps(value)
            facts.append(f"{name}={text.splitlines()[0] if text else '-'}")
    return "  ".join(facts)


def _print_check(check: "AuditCheck", args: Namespace) -> None:
    fields = {
        "ok": not check.problems,
        "records": check.records,
        "head": check.head,
        "problems": [{"id": problem.seq, **problem.to_dict()} for problem in check.problems],
    }
    if check.problems:
        text = [problem.problem for problem in check.problems]
    elif not check.records:
        text = ["this store has no records, so there is nothing to verify"]
    else:
        text = [f"{check.records} records are as they were written; head {check.records}:{check.head}"]
    head = f"{'ok' if fields['ok'] else 'NOT OK'}: {check.records} records, head `{check.head}`"
    print_data(args, fields, text, [head, *(f"- {problem.problem}" for problem in check.problems)])


def _pieces(records: "Iterable[AuditRecord]", format_: str) -> Iterator[str]:
    from json import dumps

    if format_ == "markdown":
        yield "\n".join(markdown_table(COLUMNS, [_row(record) for record in records]))
    elif format_ == "json":
        yield dumps([_fields(record) for record in records], indent=2, ensure_ascii=False)
    else:
        for record in records:
            yield dumps(_fields(record), ensure_ascii=True)
