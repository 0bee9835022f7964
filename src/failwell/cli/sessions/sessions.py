"""`failwell sessions`: list, show, export and delete recorded sessions."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any, cast

from failwell.cli.exit_codes import Exit
from failwell.cli.listing import Listing, print_listing
from failwell.cli.output import print_data, print_fields, print_json, print_json_text, print_text
from failwell.cli.parser import Parser
from failwell.cli.records import (
    add_after,
    add_filters,
    add_name,
    add_store,
    command_for,
    confirm,
    find_record,
    state_folder_of,
)
from failwell.cli.times import clock, iso

if TYPE_CHECKING:
    from failwell.sessions.history import SessionState
    from failwell.sessions.recorded import RecordedSession

STATUSES = ("open", "closed", "interrupted")
_COLUMNS = ("id", "status", "agent", "started", "updated", "events")
_LONGEST = 2_000


def find_session(args: Namespace, name: str) -> "RecordedSession":
    """The session that `name` means: its id, the only id that begins with it, or `last`.

    Raises:
        UnknownSession: there is none; the fault names similar ids.
        Usage: several begin with it.
    """
    from failwell.sessions.faults import UnknownSession
    from failwell.sessions.recorded import list_sessions

    store = state_folder_of(args)

    def search(prefix: str, limit: int) -> "list[RecordedSession]":
        return list_sessions(store=store, prefix=prefix, limit=limit)

    def get(name: str) -> "RecordedSession | None":
        return next((match for match in search(name, 1_000) if match.id == name), None)

    return find_record(name, "session", get=get, search=search, unknown=UnknownSession)


def add_list_options(parser: Parser) -> None:
    """Declare the filters."""
    add_filters(parser, "session", STATUSES)


def run_list(args: Namespace) -> int:
    """List sessions, the newest first."""
    from failwell.sessions.recorded import list_sessions

    sessions = list_sessions(store=state_folder_of(args), statuses=tuple(args.status), limit=args.limit)
    rows = [
        (info.id, info.status, info.agent, clock(info.started), clock(info.updated), str(info.events))
        for info in sessions
    ]
    empty = "no session is recorded; `failwell chat AGENT.yaml` begins one"
    return print_listing(args, Listing(_COLUMNS, rows, [_fields(info) for info in sessions], empty))


def add_show_options(parser: Parser) -> None:
    """Declare which session."""
    add_name(parser, "session")
    add_store(parser)


def run_show(args: Namespace) -> int:
    """Show what a session is held with, what it used, and the conversation."""
    from failwell.sessions.history import usage_json, usage_words
    from failwell.sessions.recorded import read_session

    info = find_session(args, args.session)
    state = read_session(info.id, store=state_folder_of(args))
    fields: dict[str, Any] = {
        **_fields(info),
        "turns": state.turn,
        "models": list(state.manifest.models) if state.manifest else [],
        "tools": sorted(state.manifest.tools) if state.manifest else [],
        "next": command_for(args, "chat", "--resume", info.id),
    }
    if args.format == "json":
        print_json({**fields, "usage": usage_json(state.total), "conversation": conversation(state)})
        return Exit.DONE
    fields["usage"] = usage_words(state.total)
    cells = [(name, _cell(value)) for name, value in fields.items() if value not in (None, [])]
    print_fields(args, fields, cells)
    print_text(["", *_lines(state)])
    return Exit.DONE


def add_export_options(parser: Parser) -> None:
    """Declare which session, and from where."""
    add_name(parser, "session")
    add_after(parser)
    add_store(parser)


def run_export(args: Namespace) -> int:
    """Write every event of a session, one JSON object a line."""
    from failwell.sessions.recorded import session_events

    info = find_session(args, args.session)
    after = -1 if args.after is None else args.after
    for event in session_events(info.id, store=state_folder_of(args), after=after):
        print_json_text(event.to_line())
    return Exit.DONE


def add_delete_options(parser: Parser) -> None:
    """Declare which session, and whether to ask."""
    add_name(parser, "session")
    parser.add_argument("--yes", action="store_true", help="delete without asking")
    add_store(parser)


def run_delete(args: Namespace) -> int:
    """Delete a session and everything that was said in it."""
    from failwell.sessions.recorded import delete_session

    info = find_session(args, args.session)
    if not args.yes and not confirm(
        f"delete session {info.id} with {info.events} events? [y/N] ",
        f"session {info.id} would be deleted; add `--yes` to delete without being asked",
        "failwell sessions delete --help",
    ):
        print_text("nothing was deleted")
        return Exit.DONE
    events = delete_session(info.id, store=state_folder_of(args))
    return print_data(
        args,
        {"deleted": True, "id": info.id, "events": events},
        f"deleted session {info.id} with {events} events",
    )


def _fields(info: "RecordedSession") -> dict[str, Any]:
    return {
        "id": info.id,
        "status": info.status,
        "agent": info.agent,
        "file": info.file,
        "started": iso(info.started),
        "updated": iso(info.updated),
        "events": info.events,
        "pid": info.pid,
    }


def _cell(value: Any) -> str:
    return ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)


def conversation(state: "SessionState") -> list[dict[str, Any]]:
    """What was said, one object for each input, answer, tool call and result."""
    items: list[dict[str, Any]] = []
    for type_, data in state.items:
        if type_ == "session:input":
            items.append({"user": data["text"]})
        elif type_ == "session:tool_ended":
            items.append({"tool": data["tool"], "kind": data.get("kind"), "result": data["result"]})
        else:
            for part in data["message"]["parts"]:
                if part.get("part_kind") == "text":
                    items.append({"agent": part["content"]})
                elif part.get("part_kind") == "tool-call":
                    items.append({"call": part["tool_name"], "arguments": part.get("args")})
    return items


def _lines(state: "SessionState") -> list[str]:
    lines: list[str] = []
    for item in conversation(state):
        if "user" in item:
            lines.append(f"> {item['user']}")
        elif "agent" in item:
            lines.append(str(item["agent"]))
        elif "call" in item:
            lines.append(f"  · call {item['call']}")
        else:
            lines.append(f"  · {item['tool']}: {item['kind'] or 'done'}")
    return [line[:_LONGEST] for line in lines]
