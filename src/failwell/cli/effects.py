"""`failwell effects`: list and show effects that were claimed, and settle those whose outcome is unknown."""

from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from failwell.cli.listing import Listing, print_listing
from failwell.cli.output import print_data, print_fields
from failwell.cli.parser import Parser, usage_error
from failwell.cli.records import (
    add_filters,
    add_store,
    command_for,
    find_record,
    no_record,
    state_folder_of,
)
from failwell.cli.times import clock

if TYPE_CHECKING:
    from failwell.store.effects.claims import Claim
    from failwell.store.effects.sqlite import SqliteClaims

STATUSES = ("running", "done", "unclear")
COLUMNS = ("id", "status", "tool", "key", "started", "what")
_SEE = "failwell effects show --help"


def add_list_options(parser: Parser) -> None:
    """Declare the filters."""
    add_filters(parser, "effect", STATUSES)


def run_list(args: Namespace) -> int:
    """List claimed effects, newest first."""
    with _claims(args) as store:
        claims = [] if store is None else store.claims(args.status, args.limit)
    return print_listing(
        args,
        Listing(
            COLUMNS,
            [_row(claim) for claim in claims],
            [_fields(claim) for claim in claims],
            "no effect is recorded; `@failwell.effect` records them",
        ),
    )


def add_show_options(parser: Parser) -> None:
    """Declare which effect."""
    _add_effect(parser)


def run_show(args: Namespace) -> int:
    """Show one effect, its result, and what to do if its outcome is unknown."""
    with _claims(args) as store:
        claim = _find(store, args.effect)
    fields = _fields(claim)
    if claim.result is not None:
        from failwell.errors.redact import redact_value
        from failwell.store.effects.keys import result_from_json

        fields["result"] = redact_value(result_from_json(claim.result))
    if claim.status == "unclear":
        fields["next"] = [
            f"it happened: {command_for(args, 'effects', 'settle', claim.id, '--result', 'JSON')}",
            f"it did not happen: {command_for(args, 'effects', 'release', claim.id)}",
        ]
    return print_fields(args, fields, _cells(fields))


def add_release_options(parser: Parser) -> None:
    """Declare which effect."""
    _add_effect(parser)
    parser.add_argument("--yes", action="store_true", help="release it although it happened")
    parser.epilog = "The next call with the same key runs the effect. Release it if it did not happen."


def run_release(args: Namespace) -> int:
    """Let the next call with the same key run the effect."""
    with _claims(args) as store:
        claim = _settled(args, store)
        if claim.status == "done" and not args.yes:
            raise usage_error(
                f"effect {claim.id} happened; releasing it lets it happen again. Add `--yes` if you want that",
                see=_SEE,
            )
        assert store is not None
        if not store.release(claim):
            raise _changed(claim)
    return _print_settled(args, claim, "released", "the next call with its key runs it")


def add_settle_options(parser: Parser) -> None:
    """Declare which effect, and its result."""
    _add_effect(parser)
    parser.add_argument(
        "--result", metavar="JSON", default="null", help="what later calls get as its result (default: null)"
    )
    parser.epilog = "Settle an effect that happened, so that later calls with the same key get its result."


def run_settle(args: Namespace) -> int:
    """Record that the effect happened, and its result."""
    from failwell.files.finite_json import load_finite
    from failwell.store.effects.keys import result_to_json

    try:
        result = result_to_json(load_finite(args.result))
    except (TypeError, ValueError, RecursionError) as error:
        raise usage_error(f"`--result` is not JSON: {error}", see="failwell effects settle --help") from None
    with _claims(args) as store:
        claim = _settled(args, store)
        assert store is not None
        if claim.status == "done" or not store.complete(claim, result, None):
            raise _changed(claim)
    return _print_settled(args, claim, "settled", "later calls with its key get this result")


def _add_effect(parser: Parser) -> None:
    parser.add_argument("effect", metavar="EFFECT", help="an id, the beginning of one, or `last`")
    add_store(parser)


@contextmanager
def _claims(args: Namespace) -> "Generator[SqliteClaims | None]":
    """The claims of the state folder; `None` if there is no journal, and none is created."""
    from failwell.store.folder import JOURNAL, file_exists

    folder = state_folder_of(args)
    if not file_exists(folder / JOURNAL):
        yield None
        return
    from failwell.store.effects.sqlite import SqliteClaims

    store = SqliteClaims(folder)
    try:
        yield store
    finally:
        store.close()


def _find(store: "SqliteClaims | None", name: str) -> "Claim":
    from failwell.store.effects.claims import UnknownEffect

    if store is None:
        raise no_record(name, "effect", UnknownEffect)
    return find_record(name, "effect", get=store.get, search=store.find, unknown=UnknownEffect)


def _settled(args: Namespace, store: "SqliteClaims | None") -> "Claim":
    """The effect that the command is about, unless it is running."""
    claim = _find(store, args.effect)
    if claim.status == "running":
        raise usage_error(
            f"effect {claim.id} is running in process {claim.pid}; wait until it has ended", see=_SEE
        )
    return claim


def _changed(claim: "Claim") -> Exception:
    return usage_error(f"effect {claim.id} is already settled", see=f"failwell effects show {claim.id}")


def _print_settled(args: Namespace, claim: "Claim", change: str, consequence: str) -> int:
    return print_data(args, {"id": claim.id, change: True}, f"effect {claim.id} is {change}; {consequence}")


def _fields(claim: "Claim") -> dict[str, Any]:
    from failwell.errors.redact import redact_value
    from failwell.store.effects.claims import claim_dict

    return redact_value(claim_dict(claim))


def _row(claim: "Claim") -> tuple[str, ...]:
    from failwell.errors.redact import redact_text

    effect = claim.effect
    what = claim.kind or ("its process died" if claim.status == "unclear" else "")
    key = "/".join(part for part in (effect.scope, effect.key) if part)
    return (claim.id, claim.status, effect.name, redact_text(key), clock(claim.started), what)


def _cells(fields: dict[str, Any]) -> list[tuple[str, str]]:
    from json import dumps

    cells: list[tuple[str, str]] = []
    for name, value in fields.items():
        if name == "next":
            cells += [(name, line) for line in value]
        else:
            cells.append((name, value if isinstance(value, str) else dumps(value)))
    return cells
