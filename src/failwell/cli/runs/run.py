"""`failwell run`: run a workflow, show its progress and print its result; `resume` shares all of it."""

import os
import signal
import sys
from argparse import Namespace
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.cli.output import print_aside, print_if_read, until_it_fails
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import add_store
from failwell.cli.temporal.connection import LOCAL, add_engine
from failwell.cli.times import add_answer_timeout

if TYPE_CHECKING:
    from failwell.agents.people.http_answerer import HttpAnswerer
    from failwell.agents.people.queue import Answerer, InteractionQueue
    from failwell.cli.runs.progress import Progress
    from failwell.workflows.running.settings import DriveResult, RunDriver, Settings

PROGRESS = ("auto", "live", "plain", "none")


def add_options(parser: Parser) -> None:
    """Declare what to run and with what."""
    parser.add_argument("workflow", metavar="WORKFLOW", help="a workflow file")
    parser.add_argument("--run-id", metavar="ID", help="the id of the run (default: a new one)")
    parser.add_argument(
        "-m",
        "--metadata",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a note recorded with the run",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="check the file and the inputs, print the plan, and run nothing",
    )
    add_run_options(parser)
    add_engine(parser, default=LOCAL)
    parser.epilog = (
        "The result goes to stdout as JSON, everything else to stderr. "
        "Exit code 3: a typed error that no route handled."
    )


def add_run_options(parser: Parser) -> None:
    """Declare what `run` and `resume` share."""
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an input: JSON, a number, true/false/null, or text; `@FILE` reads the text of a file",
    )
    parser.add_argument(
        "--progress", choices=PROGRESS, default="auto", help="what to show on stderr (default: auto)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="--progress none")
    parser.add_argument("--silent", action="store_true", help="print only the result and errors")
    parser.add_argument(
        "--no-input", action="store_true", help="never ask at the terminal; gates wait to be answered"
    )
    parser.add_argument(
        "--skip-gates",
        action="store_true",
        help="answer every gate with its first option, and skip questions",
    )
    parser.add_argument(
        "--wait", action="store_true", help="wait for answers and times, instead of leaving with exit code 4"
    )
    parser.add_argument(
        "--answer-http",
        action="store_true",
        help="wait for answers over HTTP, on this machine and with a token",
    )
    add_answer_timeout(parser, "run")
    parser.add_argument(
        "--detach",
        action="store_true",
        help="run it in the background: print its id and its log file, and return",
    )
    parser.add_argument(
        "--allow-outside", action="store_true", help="let the file include files outside its project"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="call this model in every agent, such as openai:gpt-5 or scripted:replies.yaml",
    )
    add_store(parser)
    parser.add_argument(
        "--durability",
        choices=("normal", "full"),
        default="normal",
        help="full: every record reaches the disk before anything follows from it",
    )


def run(args: Namespace) -> int:
    """Run the workflow."""
    inputs = read_inputs(args)
    metadata = read_pairs(args, "metadata")
    if args.dry_run:
        from failwell.cli.runs.dry_run import print_plan

        return print_plan(args, inputs)

    async def work(settings: "Settings") -> "DriveResult":
        from failwell.workflows.running.launch import start

        return await start(args.workflow, inputs, settings, run=args.run_id, metadata=metadata)

    return RunCommand(args, inputs).execute(work)


def read_inputs(args: Namespace) -> dict[str, Any]:
    """The values of `--input`; each is converted to the type that the workflow declares."""
    from failwell.workflows.template.values import TypedText

    see = f"failwell {args.command} --help"
    inputs: dict[str, Any] = {}
    for name, value in _pairs(args, "input"):
        if value.startswith("@"):
            from failwell.cli.text_file import text_of

            # As the shell's $(cat FILE): the newline that editors add is no part of a token.
            value = text_of(value[1:], f"input `{name}`", see).removesuffix("\n")  # noqa: PLW2901
        inputs[name] = TypedText(value)
    return inputs


def read_pairs(args: Namespace, option: str) -> dict[str, str]:
    """The NAME=VALUE pairs of an option, as text."""
    return dict(_pairs(args, option))


def _pairs(args: Namespace, option: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in getattr(args, option):
        name, sign, value = text.partition("=")
        if not sign or not name:
            name = option.replace("_", "-")
            raise usage_error(f"`--{name} {text}` is not NAME=VALUE", see=f"failwell {args.command} --help")
        pairs.append((name, value))
    return pairs


Work = Callable[["Settings"], Awaitable["DriveResult"]]


@contextmanager
def log_as_lines(args: Namespace, *loggers: str) -> Generator[None]:
    """Print what the engine, or these loggers, log as lines on stderr, without stacks; nothing beside an error in JSON.

    What a library logs and nobody handles may quote prompts and answers, so its text is withheld like that of its exceptions.
    """
    import logging

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print_aside(args, f"{record.levelname.lower()}: {record.getMessage()}")

    withheld = set[str]()

    class Unhandled(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            from failwell.adapters.stack import is_own_file
            from failwell.errors.redact import redact_text
            from failwell.errors.report import default_policy

            level = record.levelname.lower()
            if is_own_file(record.pathname) or default_policy().keeps_message:
                print_aside(args, f"{level}: {redact_text(record.getMessage())}")
            elif record.name not in withheld:
                withheld.add(record.name)
                print_aside(
                    args, f"{level}: `{record.name}` logged a message; FAILWELL_TRACEBACK=full shows it"
                )

    handler = Lines(logging.WARNING)
    for name in loggers or ("failwell",):
        logging.getLogger(name).addHandler(handler)
    before = logging.lastResort
    logging.lastResort = Unhandled(logging.WARNING)
    try:
        yield
    finally:
        logging.lastResort = before
        for name in loggers or ("failwell",):
            logging.getLogger(name).removeHandler(handler)


class RunCommand:
    """One `run` or `resume`: its settings, its progress, and what a signal does to it."""

    def __init__(self, args: Namespace, inputs: Mapping[str, Any] | None = None) -> None:
        self.args = args
        self.inputs = inputs or {}
        self._accept: Callable[[str], None] | None = None
        self.run = ""
        self._signal: int | None = None
        self._driver: RunDriver | None = None
        self._main: Any = None
        self._http: HttpAnswerer | None = None
        self._loop: Any = None

    def execute(self, work: Work) -> int:
        """Do `work` with the settings of the command line, print its end, and return the exit code."""
        if not self.args.detach:
            return self._run(work)
        from failwell.cli.runs.detach import detach

        def in_background(accept: "Callable[[str], None]") -> int:
            self._accept = accept
            return self._run(work)

        return detach(self.args, in_background)

    def _run(self, work: Work) -> int:
        from asyncio import CancelledError, run

        from failwell.workflows.running.faults import WorkflowInvalid

        try:
            # The result alone is on stdout: what code of the workflow prints in this process goes with the rest.
            with log_as_lines(self.args), redirect_stdout(sys.stderr):
                ended = run(self._execute(work))
        except (CancelledError, KeyboardInterrupt):
            from failwell.cli.runs.run_result import print_stopped

            state = None if self._driver is None else self._driver.state
            return print_stopped(self.run, state, self.args, self._signal or signal.SIGINT)
        except WorkflowInvalid as invalid:
            from failwell.cli.runs.validate import print_problems

            return print_problems(invalid.mistakes, self.args)
        from failwell.cli.runs.run_result import print_end

        return print_end(ended, self.run, self.args, signal_number=self._signal)

    async def _execute(self, work: Work) -> "DriveResult":
        from asyncio import current_task, get_running_loop

        self._main, self._loop = current_task(), get_running_loop()
        from failwell.cli.runs.progress import progress
        from failwell.cli.signals import on_signals

        with on_signals(self._interrupt, loop=self._loop), progress(self.args) as display:
            settings = self._settings(display)
            try:
                async with nullcontext() if self._http is None else self._http_answers(self._http, settings):
                    return await work(settings)
            finally:
                settings.store.close()

    def _settings(self, display: "Progress | None") -> "Settings":
        from failwell.cli.jobs.host import warnings_as_lines
        from failwell.cli.temporal.remote import engine_of
        from failwell.workflows.api import local_settings

        args = self.args
        return local_settings(
            args.store,
            watchers=() if display is None else (until_it_fails(display.show),),
            interactions=self._interactions(display),
            asks_limits=self._has_person() and not args.skip_gates,
            wait=args.wait,
            allow_outside=args.allow_outside,
            durability=args.durability,
            model=args.model,
            started=self._started,
            while_hosting=warnings_as_lines,
            # `resume` takes the engine of the run.
            engine=engine_of(args) if args.command == "run" else None,
        )

    @asynccontextmanager
    async def _http_answers(self, http: "HttpAnswerer", settings: "Settings") -> AsyncGenerator[None]:
        """Take answers over HTTP while the run lasts."""
        assert settings.interactions is not None
        file = settings.folder / f"answers-{os.getpid()}.json"
        async with http.serving(settings.interactions, file):
            print_aside(self.args, f"answers: {http.url}/questions; the token is in {file}")
            yield

    def _interactions(self, display: "Progress | None") -> "InteractionQueue | None":
        """Where people are asked. Without anybody, gates wait in the journal, and every other question fails."""
        args = self.args
        if not (args.skip_gates or args.wait or args.answer_http or self._has_person()):
            return None
        from failwell.agents.people.queue import InteractionQueue

        if self.args.skip_gates:
            from failwell.cli.terminal_questions import first_option
            from failwell.workflows.gates import CallbackAnswerer

            return InteractionQueue(CallbackAnswerer(first_option))
        answerers: list[Answerer] = []
        if self._has_person():
            from failwell.cli.terminal_answerer import TerminalAnswerer

            answerers.append(TerminalAnswerer(display))
        if args.answer_http:
            from failwell.agents.people.http_answerer import HttpAnswerer

            self._http = HttpAnswerer()
            answerers.append(self._http)
        elif args.wait:
            from failwell.agents.people.queue import RemoteAnswerer

            answerers.append(RemoteAnswerer())
        return InteractionQueue(*answerers, timeout=args.answer_timeout)

    def _has_person(self) -> bool:
        """Whether somebody at the terminal can be asked."""
        from failwell.cli.terminal_questions import can_ask

        return not self.args.no_input and not self.args.detach and can_ask()

    def _started(self, driver: "RunDriver", run: str) -> None:
        self._driver, self.run = driver, run
        if self.inputs and not self.args.silent:
            self._note_undeclared(driver)
        if self._accept is not None:
            self._accept(run)

    def _note_undeclared(self, driver: "RunDriver") -> None:
        """Name the inputs that the workflow does not declare: they may be misspelt."""
        from failwell.workflows.run_inputs import undeclared_inputs

        plan = driver.plans[str(Path(self.args.workflow).absolute())]
        for note in undeclared_inputs(plan, self.inputs):
            print_aside(self.args, f"note: {note.message} ({note.hint})")

    def _interrupt(self, number: signal.Signals) -> None:
        """The first signal cancels the run; the second ends it at once."""
        from failwell.workflows.machine.messages import Cancel

        if number == signal.SIGHUP and self.args.detach:
            # It has no terminal that could be closed.
            return
        was_stopping, self._signal = self._signal is not None, number
        if was_stopping or self._driver is None:
            self._main.cancel()
            return
        print_if_read(f"{number.name}: stopping what runs; once more to stop at once")
        self._driver.submit(Cancel(at=self._driver.now(), reason="interrupted", by=number.name))
