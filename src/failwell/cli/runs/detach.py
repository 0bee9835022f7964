"""`--detach`: a run in a process of its own, which survives the terminal and writes a log.

The process is forked before anything is opened, so the values of secret inputs are on no command line but the one
that was typed. Until the run is accepted it prints to the caller's terminal: a mistake in the file or an input is
told there, with the usual exit code. Afterwards its streams are the log file in the folder of the run.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from json import dumps, loads
from typing import Any, NoReturn

from failwell.cli.exit_codes import Exit
from failwell.cli.output import print_json, print_text
from failwell.cli.parser import usage_error
from failwell.cli.records import command_for, state_folder_of

LOG = "run.log"
"""The log of a detached run, in its folder."""
Accept = Callable[[str], None]
"""Called once with the run's id, when it is recorded."""


def detach(args: Namespace, execute: Callable[[Accept], int]) -> int:
    """Run `execute` in the background. Returns when the run is accepted, or with its exit code if it is refused."""
    if not hasattr(os, "fork"):
        raise usage_error("`--detach` needs a POSIX system", see=f"failwell {args.command} --help")
    _open_streams()
    replies, reply = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    child = os.fork()
    if child == 0:
        os.close(replies)
        _run(args, execute, reply)
    os.close(reply)
    try:
        with os.fdopen(replies, "rb") as pipe:
            message = pipe.read()
    except KeyboardInterrupt:
        import signal

        os.kill(child, signal.SIGTERM)
        raise
    if not message:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code
    _print_accepted(args, loads(message))
    return Exit.DONE


def _open_streams() -> None:
    """Open what the caller has closed of stdin, stdout and stderr, so that nothing else gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _run(args: Namespace, execute: Callable[[Accept], int], reply: int) -> NoReturn:
    """The background process: no terminal, no signal of the caller's. Never returns into the caller's code."""
    code: int = Exit.FAILED
    try:
        os.setsid()
        code = execute(lambda run: _accept(args, run, reply))
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001  (the edge of a program: every error is printed, none escapes)
        from failwell.cli.error_output import ErrorOptions, print_failure

        code = print_failure(error, ErrorOptions.of(args))
    finally:
        from failwell.cli.main import flush

        flush()
        os._exit(code)


def _accept(args: Namespace, run: str, reply: int) -> None:
    """Take the log file for the streams, and tell the caller that the run is recorded."""
    from failwell.cli.faults import Unwritable, reason
    from failwell.store.folder import run_folder
    from failwell.store.private_files import append_private

    path = run_folder(state_folder_of(args), run) / LOG
    try:
        log = append_private(path)
    except OSError as error:
        raise Unwritable.wrap(error, f"cannot write `{path}`: {reason(error)}", caller_facing=True) from error
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log)
    sys.stdout, sys.stderr = (
        open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        for number in (1, 2)
    )
    os.write(reply, dumps({"run": run, "pid": os.getpid(), "log": str(path)}).encode())
    os.close(reply)


def _print_accepted(args: Namespace, accepted: dict[str, Any]) -> None:
    run = accepted["run"]
    commands = {
        "follow": command_for(args, "runs", "logs", run, "--follow"),
        "show": command_for(args, "runs", "show", run),
        "stop": command_for(args, "stop", run),
    }
    if args.format == "json":
        print_json({"id": run, "pid": accepted["pid"], "log": accepted["log"], **commands})
        return
    from failwell.delivery.agent_output import code

    is_markdown = args.format == "markdown"
    lines = [f"run {run} is running in the background (process {accepted['pid']})"]
    for name, value in {"log": accepted["log"], **commands}.items():
        lines.append(f"- {name}: {code(value)}" if is_markdown else f"{f'{name}:':<8}{value}")
    print_text(lines)
