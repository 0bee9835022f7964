"""The options of a connection to Temporal, for every command that takes them."""

from argparse import Namespace
from typing import TYPE_CHECKING

from failwell.cli.parser import Parser
from failwell.temporal.connection import ADDRESS, CODEC_VARIABLE, NAMESPACE, TASK_QUEUE, TASK_QUEUE_VARIABLE

if TYPE_CHECKING:
    from failwell.temporal.connection import ConnectionOptions

LOCAL, TEMPORAL = "local", "temporal"
_NAMES = (
    "address", "namespace", "task_queue", "tls", "tls_ca", "tls_cert", "tls_key", "tls_server_name", "codec",
)  # fmt: skip


def add_connection(parser: Parser) -> None:
    """Declare how the server is reached."""
    group = parser.group(
        "temporal",
        "What is not given comes from Temporal's environment variables and configuration file."
        " The API key comes from TEMPORAL_API_KEY alone.",
    )
    group.add_argument(
        "--address", metavar="HOST:PORT", help=f"the server (default: TEMPORAL_ADDRESS, else {ADDRESS})"
    )
    group.add_argument(
        "--namespace",
        metavar="NAME",
        help=f"the namespace (default: TEMPORAL_NAMESPACE, else {NAMESPACE})",
    )
    group.add_argument(
        "--task-queue",
        metavar="NAME",
        help=f"the task queue of the workers (default: {TASK_QUEUE_VARIABLE}, else {TASK_QUEUE})",
    )
    group.add_argument(
        "--tls",
        action="store_const",
        const=True,
        help="encrypt the connection; this is the default with a certificate or an API key",
    )
    group.add_argument("--tls-ca", metavar="FILE", help="certificate of the authority of the server")
    group.add_argument("--tls-cert", metavar="FILE", help="certificate of this client")
    group.add_argument("--tls-key", metavar="FILE", help="private key of this client")
    group.add_argument("--tls-server-name", metavar="NAME", help="name in the certificate of the server")
    group.add_argument(
        "--codec",
        metavar="MODULE:OBJECT",
        help=f"payload codec, for example one that encrypts (default: {CODEC_VARIABLE})",
    )


def add_engine(parser: Parser, *, default: str | None = LOCAL) -> None:
    """Declare `--engine` and how the server is reached. Without a `default`, it is the one that has the run."""
    parser.add_argument(
        "--engine",
        choices=(LOCAL, TEMPORAL),
        default=default,
        help="what runs it: this machine, or the workers of a Temporal server"
        f" (default: {default or 'the one that has it'})",
    )
    add_connection(parser)


def connection_of(args: Namespace) -> "ConnectionOptions":
    """The options of the connection.

    Raises:
        MissingExtra: temporalio is not installed.
        InvalidConnection: Temporal's configuration file is not valid.
    """
    from failwell.temporal.connection import connection_options

    return connection_options(**{name: getattr(args, name) for name in _NAMES})


def engine_command(args: Namespace, *words: str) -> str:
    """A command that works when it is pasted: it names the same server and state folder as this one."""
    from failwell.cli.records import command_for

    if getattr(args, "engine", LOCAL) == LOCAL:
        return " ".join(["failwell", *words])
    options = [
        part
        for name in _NAMES
        if (value := getattr(args, name)) is not None
        for part in (f"--{name.replace('_', '-')}", *(() if value is True else (str(value),)))
    ]
    return command_for(args, *words, "--engine", TEMPORAL, *options)
