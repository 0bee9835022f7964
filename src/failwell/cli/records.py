"""Recorded runs and jobs on the command line: one way to filter, find and prune both."""

import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from failwell.cli.exit_codes import Exit
from failwell.cli.output import is_terminal, print_data, print_stderr, print_text
from failwell.cli.parser import Parser, usage_error

if TYPE_CHECKING:
    from pathlib import Path

    from failwell.errors.fault import Fault

LAST = "last"
LIMIT = 50
_NEAR = 200
"""How many of the latest ids are searched for a similar one."""
_SHOWN = 20


class Record(Protocol):
    """A run or a job, as commands list it: something recorded under an id."""

    @property
    def id(self) -> str:
        """The id."""
        ...


RecordT = TypeVar("RecordT", bound=Record)


def add_store(parser: Parser) -> None:
    """Declare `--store`."""
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="the state folder (default: FAILWELL_STORE, else the user's own state folder)",
    )


def add_name(parser: Parser, noun: str, *, optional: bool = False) -> None:
    """Declare which run or job is meant."""
    parser.add_argument(
        noun,
        nargs="?" if optional else None,
        metavar=noun.upper(),
        help="an id, the beginning of one, or `last`",
    )


def add_after(parser: Parser) -> None:
    """Declare `--after`."""
    parser.add_argument("--after", metavar="SEQ", type=int, help="only events with a higher number")


def add_filters(parser: Parser, noun: str, statuses: Sequence[str]) -> None:
    """Declare what `list` filters by."""
    add_status(parser, noun, statuses)
    add_limit(parser)
    add_store(parser)


def add_limit(parser: Parser) -> None:
    """Declare `--limit`."""
    parser.add_argument(
        "--limit", metavar="N", type=at_least(0), default=LIMIT, help=f"list at most N (default: {LIMIT})"
    )


def add_status(parser: Parser, noun: str, statuses: Sequence[str]) -> None:
    """Declare `--status`."""
    parser.add_argument(
        "--status",
        action="append",
        default=[],
        choices=statuses,
        help=f"only {noun}s with this status (may be repeated)",
    )


def add_prune(parser: Parser, noun: str, statuses: Sequence[str], age: str) -> None:
    """Declare which records `prune` deletes, and whether it asks."""
    parser.add_argument(
        "--older-than", metavar="SPAN", help=f"{noun}s that ended longer ago than this: `{age}`"
    )
    parser.add_argument("--keep", metavar="N", type=at_least(0), help="keep the newest N")
    add_status(parser, noun, statuses)
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be deleted, and delete nothing"
    )
    parser.add_argument("--yes", action="store_true", help="delete without asking")
    add_store(parser)


def at_least(least: int) -> Callable[[str], int]:
    """An argument type: a whole number from `least` on."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ArgumentTypeError(f"`{text}` is not a whole number") from None
        if number < least:
            raise ArgumentTypeError(f"`{text}` is too small; it is at least {least}")
        return number

    return read


def state_folder_of(args: Namespace) -> "Path":
    """The state folder; it need not exist.

    Raises:
        Usage: there is a file in its place.
    """
    from failwell.store.folder import state_folder

    folder = state_folder(args.store)
    if folder.exists() and not folder.is_dir():
        raise usage_error(
            f"the state folder `{folder}` is a file; give a folder with `--store DIR` or `FAILWELL_STORE`",
            see=f"failwell {args.command} --help",
        )
    return folder


def command_for(args: Namespace, *words: str) -> str:
    """A command that works when it is pasted: it names the same state folder as this one."""
    from shlex import quote

    store = [] if args.store is None else ["--store", args.store]
    return " ".join(["failwell", *map(quote, [*words, *store])])


def find_record(
    name: str,
    noun: str,
    *,
    get: Callable[[str], RecordT | None],
    search: Callable[[str, int], Sequence[RecordT]],
    unknown: "Callable[..., Fault]",
) -> RecordT:
    """The run or job that `name` means: its id, the only id that begins with it, or `last`.

    Args:
        name: What was typed.
        noun: `run` or `job`.
        get: The record with exactly this id.
        search: The latest records whose ids begin with a prefix: (prefix, limit).
        unknown: Builds the fault for a name that matches nothing.
    """
    exact = get(name) if name else None
    if exact is not None:
        return exact
    if name == LAST:
        latest = search("", 1)
        if latest:
            return latest[0]
        raise no_record(name, noun, unknown)
    matches: Sequence[RecordT] = search(name, 6) if name else ()
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = [match.id for match in matches[:5]]
        raise usage_error(f"`{name}` matches several {noun}s", valid=ids, see=f"failwell {noun}s list")
    raise no_record(name, noun, unknown, [record.id for record in search("", _NEAR)])


def no_record(name: str, noun: str, unknown: "Callable[..., Fault]", known: Sequence[str] = ()) -> "Fault":
    """The fault for a name that matches nothing, with similar ids."""
    from difflib import get_close_matches

    if name == LAST:
        return unknown(**{noun: name}, message=f"no {noun} is recorded yet", user_action=_list_action(noun))
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    return unknown(**{noun: name}, near=near or None, user_action=_list_action(noun, near))


def _list_action(noun: str, near: Sequence[str] = ()) -> Any:
    from failwell.errors.axes import ActionKind
    from failwell.errors.facts import UserAction

    choices = f"write {' or '.join(f'`{other}`' for other in near)}, or " if near else ""
    return UserAction(ActionKind.CHANGE_INPUT, f"{choices}list them with `failwell {noun}s list`")


class Deletion(NamedTuple):
    """What a command deleted, or would delete."""

    ids: Sequence[str]
    summary: str
    """Counts in words: `2 runs with 10 events`."""
    remarks: Sequence[str]
    """What was left alone, and why."""
    data: dict[str, Any]
    """All of it for programs."""
    is_empty: bool


def prune_records(args: Namespace, noun: str, delete: "Callable[..., Deletion]") -> int:
    """Show what `delete(dry_run=True)` counts; ask; then delete."""
    preview = delete(dry_run=True)
    if args.dry_run or preview.is_empty:
        return _print_deletion(preview, args, done=not args.dry_run)
    if not args.yes and not confirm(
        f"delete {preview.summary}? [y/N] ",
        f"{preview.summary} would be deleted; add `--yes` to delete without being asked, or `--dry-run`",
        f"failwell {noun}s prune --help",
    ):
        print_text("nothing was deleted")
        return Exit.DONE
    return _print_deletion(delete(dry_run=False), args, done=True)


def prune_before(args: Namespace, noun: str) -> float | None:
    """The moment before which records are deleted; refuses to prune everything by accident."""
    from time import time

    from failwell.cli.times import span

    see = f"failwell {noun}s prune --help"
    if args.older_than is None and args.keep is None and not args.status:
        raise usage_error(
            f"choose which {noun}s to delete: `--older-than 30d`, `--keep 100` or `--status failed`", see=see
        )
    return None if args.older_than is None else time() - span(args.older_than, "--older-than", see)


def confirm(question: str, refusal: str, see: str) -> bool:
    """Ask a yes-or-no question.

    Raises:
        Usage: nobody can answer, because stdin is no terminal; `refusal` says what to do instead.
    """
    if not is_terminal(sys.stdin):
        raise usage_error(refusal, see=see)
    print_stderr(question, end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print_deletion(deletion: Deletion, args: Namespace, *, done: bool) -> int:
    mark = "- " if args.format == "markdown" else "  "
    lines = [f"{'deleted' if done else 'would delete'} {deletion.summary}"]
    lines += [f"{mark}{name}" for name in deletion.ids[:_SHOWN]]
    if len(deletion.ids) > _SHOWN:
        lines.append(f"{mark}and {len(deletion.ids) - _SHOWN} more")
    return print_data(args, {"deleted": done, **deletion.data}, [*lines, *deletion.remarks])


def first_few(names: Sequence[str]) -> str:
    """The first names in a row, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def counted(number: int, word: str) -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
