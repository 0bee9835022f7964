"""`failwell jobs submit --from FILE`: many jobs from a file with one JSON object a line."""

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from failwell.cli.exit_codes import Exit
from failwell.cli.jobs.jobs import unknown_capability
from failwell.cli.output import print_aside, print_json, print_text
from failwell.cli.parser import usage_error
from failwell.cli.records import command_for, counted

if TYPE_CHECKING:
    from failwell.jobs.client.queue_client import QueueClient
    from failwell.jobs.job import JobRequest

_SEE = "failwell jobs submit --help"
_KEYS = (
    "instance",
    "arguments",
    "action",
    "priority",
    "timeout",
    "within",
    "at",
    "delay",
    "key",
    "unique",
    "attempts",
)
_EXCLUDED = ("stream", "arguments", "key", "unique", "wait")
_MOST_MISTAKES = 10
_MOST_BYTES = 512 * 1024 * 1024


def check_options(args: Namespace) -> None:
    """Refuse options that are for one job.

    Raises:
        Usage: one of them is given.
    """
    for name in _EXCLUDED:
        if getattr(args, name):
            hint = "; each line may have its own" if name in ("arguments", "key", "unique") else ""
            raise usage_error(f"`--{name}` and `--from` exclude each other{hint}", see=_SEE)
    if args.values:
        raise usage_error("arguments are in the lines of `--from`, not on the command line", see=_SEE)
    if args.callback is not None and args.group is None:
        raise usage_error("`--callback` follows the end of a group; name it with `--group`", see=_SEE)


def submit_file(args: Namespace, queue: "QueueClient") -> int:
    """Submit the jobs of a file. All lines are checked before the first job is stored."""
    from failwell.jobs.batch import submit_many
    from failwell.jobs.job import JobRequest

    if args.callback is not None and not queue.registry.has_instance(args.callback):
        raise unknown_capability(queue.registry, args.callback)
    requests = _requests(args, queue)
    callback = None if args.callback is None else JobRequest(instance=args.callback)
    batch = submit_many(queue, requests, group=args.group, callback=callback)
    if args.format == "json":
        print_json(
            {"count": len(batch.jobs), "new": batch.new, "group": batch.group, "jobs": list(batch.jobs)}
        )
        return Exit.DONE
    known = len(batch.jobs) - batch.new
    rest = f"; {counted(known, 'job')} had been submitted before under the same key" if known else ""
    print_text(f"submitted {counted(batch.new, 'job')}{rest}")
    if batch.group is not None:
        print_aside(args, f"`{command_for(args, 'groups', 'show', batch.group)}` shows how many have ended")
    if batch.jobs and not queue.store.is_served(batch.jobs[0]):
        print_aside(args, "no process runs jobs now; `failwell workers run` does")
    return Exit.DONE


def _requests(args: Namespace, queue: "QueueClient") -> "list[JobRequest]":
    from json import JSONDecodeError

    from failwell.adapters.describe import describe
    from failwell.cli.text_file import named, text_of
    from failwell.errors.fault import Fault
    from failwell.files.finite_json import NotFinite, load_finite
    from failwell.jobs.batch import RequestChecker

    name = named(args.source)
    checker = RequestChecker(queue)
    requests: list[JobRequest] = []
    mistakes: list[str] = []
    for number, line in enumerate(text_of(args.source, "`--from`", _SEE, _MOST_BYTES).split("\n"), 1):
        if not line.strip():
            continue
        try:
            request = _request(args, load_finite(line))
            checker.check(request)
            requests.append(request)
        except JSONDecodeError as error:
            mistakes.append(f"line {number}, column {error.colno}: not valid JSON: {error.msg.lower()}")
        except NotFinite as error:
            mistakes.append(f"line {number}: {error.number} is no number in JSON")
        except RecursionError:
            mistakes.append(f"line {number}: nested too deeply")
        except Fault as fault:
            mistakes.append(f"line {number}: {describe(fault).message}")
        except ValueError as error:
            mistakes.append(f"line {number}: {error}")
        if len(mistakes) >= _MOST_MISTAKES:
            break
    if mistakes:
        for mistake in mistakes[1:]:
            print_aside(args, f"{name}, {mistake}")
        raise usage_error(f"no job was submitted; {name}, {mistakes[0]}", see=_SEE)
    return requests


def _request(args: Namespace, value: object) -> "JobRequest":
    """The request of one line; the options of the command are its defaults.

    Raises:
        ValueError: the line is not valid; the message says why.
        Usage: a time is not valid.
    """
    from datetime import UTC, datetime, timedelta

    from failwell.cli.times import span, start_time
    from failwell.jobs.job import JobRequest

    if not isinstance(value, dict):
        raise ValueError("must be a JSON object")  # noqa: TRY004  (the caller reports every mistake alike)
    fields = cast("dict[str, Any]", value)
    unknown = [name for name in fields if name not in _KEYS]
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], _KEYS, n=1)
        hint = (
            f"did you mean `{near[0]}`?"
            if near
            else f"the keys are {', '.join(f'`{name}`' for name in _KEYS)}"
        )
        raise ValueError(f"unknown key `{unknown[0]}`; {hint} Arguments of the call are under `arguments`")
    instance = fields.get("instance", args.instance)
    if instance is None:
        raise ValueError("has no `instance`, and none is on the command line")
    arguments = fields.get("arguments", {})
    if not isinstance(arguments, Mapping):
        raise ValueError("`arguments` must be an object")  # noqa: TRY004  (as above)
    at, delay = (
        (_text(fields, "at"), _text(fields, "delay"))
        if fields.keys() & {"at", "delay"}
        else (args.at, args.delay)
    )
    if at is not None and delay is not None:
        raise ValueError("`at` and `delay` exclude each other")
    within = _seconds(fields, "within", args.within, span)
    attempts = fields.get("attempts", args.attempts)
    return JobRequest(
        instance=instance,
        arguments=cast("dict[str, Any]", arguments),
        action=fields.get("action", args.method or "execute"),
        priority=fields.get("priority", args.priority),
        timeout=_seconds(fields, "timeout", args.timeout, span),
        deadline=None if within is None else datetime.now(UTC) + timedelta(seconds=within),
        key=fields.get("key"),
        unique=fields.get("unique", "forever"),
        not_before=start_time(at, delay, _SEE),
        control={} if attempts is None else {"max_attempts": attempts},
    )


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"`{name}` must be a text")
    return value


def _seconds(fields: Mapping[str, Any], name: str, otherwise: str | None, span: Any) -> Any:
    value = fields.get(name, otherwise)
    return span(value, f"--{name}", _SEE) if isinstance(value, str) and value != "none" else value
