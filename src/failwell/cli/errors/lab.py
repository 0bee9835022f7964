"""`failwell lab`: run the lab, or list its scenarios."""

from argparse import ArgumentTypeError, Namespace
from collections import defaultdict
from typing import TYPE_CHECKING

from failwell.cli.listing import text_table
from failwell.cli.output import print_data, print_text
from failwell.cli.parser import Parser, port, usage_error
from failwell.testing.laboratory.dialects.table import dialect_names

if TYPE_CHECKING:
    from failwell.testing.laboratory.matrix import Cell
    from failwell.testing.laboratory.server import Lab, LabRequest

_TICK = 0.5
"""Seconds after which a wait for calls is begun again; some systems let no key interrupt a wait."""


def add_serve_options(parser: Parser) -> None:
    """Declare where it listens."""
    parser.add_argument("--port", type=port, help="the port (default: a free one)")
    parser.add_argument("--stall", type=_seconds, help="seconds that slow replies take (default: 3600)")
    parser.add_argument(
        "--strict", action="store_true", help="refuse conversations that the provider would refuse"
    )


def add_list_options(parser: Parser) -> None:
    """Declare the filter."""
    parser.add_argument("--dialect", choices=dialect_names(), metavar="DIALECT", help="only this dialect")
    parser.epilog = "example: failwell lab list --dialect openai"


def run_serve(args: Namespace) -> int:
    """Run the server until it is interrupted, and print each call."""
    from queue import Empty, SimpleQueue

    from failwell.cli.faults import reason
    from failwell.testing.laboratory.server import LONG, Lab, LabRequest

    calls: SimpleQueue[LabRequest] = SimpleQueue()
    stall = LONG if args.stall is None else args.stall
    lab = Lab(port=args.port or 0, stall=stall, on_request=calls.put, strict=args.strict)
    try:
        lab.start()
    except OSError as error:
        raise usage_error(
            f"cannot listen on port {args.port}: {reason(error)}", see="failwell lab serve"
        ) from error
    with lab:
        _say_addresses(lab, args)
        # Calls are printed from this thread, so that a closed pipe ends the program and not a thread of it.
        while True:
            try:
                call = calls.get(timeout=_TICK)
            except Empty:
                continue
            _say_call(call, args)


def _say_addresses(lab: "Lab", args: Namespace) -> None:
    closed = lab.url("plain", "refused").partition("/plain")[0]
    if args.format == "json":
        from json import dumps

        urls = {name: f"{lab.address}/{name}/SCENARIO" for name in dialect_names()}
        print_text(dumps({"event": "listening", "url": lab.address, "refused": closed, "dialects": urls}))
        return
    lines = [
        f"the lab listens on {lab.address}; {closed} is closed",
        "base URLs, with a scenario of `failwell lab list` in place of SCENARIO:",
        *(f"  {lab.address}/{name}/SCENARIO" for name in dialect_names()),
        "Ctrl-C ends it",
    ]
    print_text("\n".join(lines))


def _say_call(call: "LabRequest", args: Namespace) -> None:
    form = "" if call.form is None else f"@{call.form}"
    if args.format == "json":
        from json import dumps

        text = {"event": "call", "dialect": call.dialect, "scenario": f"{call.scenario}{form}"}
        request = {"method": call.method, "path": call.path, "stream": call.stream, "status": call.status}
        print_text(dumps({**text, **request}))
        return
    line = f"{call.method} {call.path}" if call.method else "unread"
    status = "no reply" if call.status is None else call.status
    print_text(f"{call.dialect}/{call.scenario}{form}  {line}  {status}{' stream' if call.stream else ''}")


def run_list(args: Namespace) -> int:
    """List the scenarios of the server."""
    from failwell.testing.laboratory.matrix import cells

    entries = list(cells(None if args.dialect is None else [args.dialect]))
    columns, *rows = _rows_of_scenarios(entries) if args.dialect is None else _rows_of_dialect(entries)
    return print_data(
        args,
        [cell.as_dict() for cell in entries],
        lambda: text_table(columns, rows, args),
        lambda: _markdown(entries),
    )


def _rows_of_dialect(entries: "list[Cell]") -> list[tuple[str, ...]]:
    """The scenarios of one dialect."""
    rows = [
        (
            cell.scenario.name,
            cell.shown,
            cell.truth.kind or "-",
            "-" if cell.truth.wait is None else f"{cell.truth.wait:g} s",
            cell.scenario.summary,
        )
        for cell in entries
    ]
    return [("scenario", "reply", "kind", "wait", "what happens"), *rows]


def _rows_of_scenarios(entries: "list[Cell]") -> list[tuple[str, ...]]:
    """Every scenario once, with the dialects that reply otherwise than most."""
    rows: list[tuple[str, ...]] = [("scenario", "kind", "reply")]
    for name, group in _by_scenario(entries).items():
        replies: defaultdict[str, list[str]] = defaultdict(list)
        for cell in group:
            replies[cell.shown].append(cell.dialect)
        most, *others = sorted(replies, key=lambda reply: -len(replies[reply]))
        text = [most, *(f"{reply} {', '.join(replies[reply])}" for reply in others)]
        kinds = dict.fromkeys(cell.truth.kind or "-" for cell in group)
        rows.append((name, " or ".join(kinds), "; ".join(text)))
    return rows


def _markdown(entries: "list[Cell]") -> list[str]:
    names = tuple(dict.fromkeys(cell.dialect for cell in entries))
    columns = ("scenario", "kind", *names)
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    for scenario, group in _by_scenario(entries).items():
        text = " or ".join(
            dict.fromkeys(f"`{cell.truth.kind}`" if cell.truth.kind else "–" for cell in group)
        )
        replies = {cell.dialect: cell.shown for cell in group}
        lines.append(f"| `{scenario}` | {text} | {' | '.join(replies.get(name, '–') for name in names)} |")
    return lines


def _by_scenario(entries: "list[Cell]") -> "dict[str, list[Cell]]":
    """The cells of each scenario, the scenarios in their own order."""
    from failwell.testing.laboratory.scenario import SCENARIOS

    grouped: dict[str, list[Cell]] = {name: [] for name in SCENARIOS}
    for cell in entries:
        grouped[cell.scenario.name].append(cell)
    return {name: group for name, group in grouped.items() if group}


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise ArgumentTypeError(f"`{text}` is not a duration; write seconds, such as 2.5")
    return seconds
