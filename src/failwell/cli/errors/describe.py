"""`failwell describe`: describe a traceback, a reply, a problem document or a saved report."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from json import JSONDecodeError, dumps, loads
from typing import Any, NamedTuple, cast

from failwell.adapters.log_records.http_reply import describe_reply, parse_reply
from failwell.adapters.log_records.pasted import describe_pasted
from failwell.cli.exit_codes import Exit
from failwell.cli.output import WIDTH, is_terminal, print_json, print_stderr, print_text, wants_color
from failwell.cli.parser import Parser
from failwell.cli.text_file import named, read_bytes
from failwell.errors.axes import ActionKind
from failwell.errors.facts import Origin, UserAction
from failwell.errors.faults import Validation
from failwell.errors.json_walk import texts_in
from failwell.errors.report import ErrorReport, TracebackPolicy
from failwell.errors.wire import read_masked

FORMS = ("report", "problem", "reply", "traceback", "text")
MOST_BYTES = 16 * 1024 * 1024
_MOST_TEXTS = 8
_BOMS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
_PROBLEM_KEYS = frozenset({"title", "detail", "instance"})
_INVITATION = """\
Paste a traceback, what a command printed, an HTTP reply with its headers, a problem document or a saved report,
then end the input with Ctrl-D (on Windows Ctrl-Z and Enter)."""


class PastedInput(NamedTuple):
    """The input and the options that describe it."""

    text: str
    provider: str | None = None
    model: str | None = None
    policy: TracebackPolicy = TracebackPolicy.REPR_ONLY
    """The person pasted the words, so an operator may see them, redacted."""
    origin: Origin | None = None


def read_input(path: str) -> str:
    """The text of a file, or of stdin for `-`.

    Raises:
        Unreadable: it cannot be read.
        Validation: it is empty, or larger than `MOST_BYTES`.
    """
    if path == "-" and is_terminal(sys.stdin):
        print_stderr(_INVITATION)
    name = named(path)
    content = read_bytes(path, MOST_BYTES)
    if len(content) > MOST_BYTES:
        limit = f"{MOST_BYTES // 1024**2} MiB"
        raise _refused(f"{name} is larger than {limit}", "cut out the part around the failure")
    encoding = next((encoding for mark, encoding in _BOMS if content.startswith(mark)), "utf-8")
    text = content.decode(encoding, "replace")
    if not text.strip():
        raise _refused(f"{name} is empty", "pipe a failure in: `python job.py 2>&1 | failwell describe`")
    return text


def recognise(pasted: PastedInput, form: str | None = None) -> ErrorReport:
    """The report behind the input; `form` names its form, else it is detected.

    Raises:
        Validation: it is not of the named form, or nothing fits.
    """
    text = pasted.text
    if form in ("traceback", "text"):
        return describe_pasted(text, policy=pasted.policy, origin=pasted.origin)
    if form == "reply" or (form is None and _looks_like_reply(text)):
        return _reply(pasted)
    if form in ("report", "problem"):
        document = _document(text)
        return read_masked(document) if form == "report" else _problem(document)
    if not text.lstrip().startswith(("{", "[")):
        return _traceback(pasted, ["a report: not JSON", "a problem document: not JSON"])
    return _json(pasted)


def _json(pasted: PastedInput) -> ErrorReport:
    """A report, a problem, a reply, or a record of a log."""
    try:
        document = _document(pasted.text)
    except Validation as not_json:
        try:
            return describe_pasted(pasted.text, policy=pasted.policy, origin=pasted.origin)
        except Validation:
            raise not_json from None
    if str(document.get("schema", "")).startswith("failwell.error/"):
        # A problem document of ours names the schema too, and has `detail` where a report has `message`.
        return _problem(document) if "detail" in document else read_masked(document)
    inner: object = document.get("report")
    if isinstance(inner, dict) and str(inner.get("schema", "")).startswith("failwell.error/"):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        # A line of a run's errors.jsonl.
        return read_masked(cast("dict[str, Any]", inner))
    if ("status" in document or "status_code" in document) and ("headers" in document or "body" in document):
        return _reply(pasted)
    if _PROBLEM_KEYS & document.keys() or str(document.get("type", "")).startswith(("http", "about:")):
        return _problem(document)
    texts = sorted(texts_in(document, keys=False, deepest=8), key=_promise, reverse=True)[:_MOST_TEXTS]
    # Last the record as a whole: its message alone may not say that something failed.
    for text in (*texts, pasted.text):
        try:
            return describe_pasted(text, policy=pasted.policy, origin=pasted.origin)
        except Validation:
            continue
    raise _unrecognised(
        [
            "a report: `schema` is not `failwell.error/…`",
            "a problem document: no `title`, `detail` or `type` with an address",
            "a reply: no `status` with `headers` or `body`",
            "a traceback or another printed error: none in the document's texts",
        ]
    )


def _promise(text: str) -> tuple[bool, int]:
    """Which text of a log record is tried first: a traceback, then the longest."""
    return "Traceback (most recent call last)" in text, len(text)


def _reply(pasted: PastedInput) -> ErrorReport:
    reply = parse_reply(pasted.text)
    if "problem+json" in reply.headers.get("content-type", ""):
        from failwell.delivery.http.problem_details import from_problem

        return from_problem(reply.body, status=reply.status, headers=reply.headers)
    return describe_reply(reply, provider=pasted.provider, model=pasted.model)


def _problem(document: Mapping[str, Any]) -> ErrorReport:
    from failwell.delivery.http.problem_details import from_problem

    return from_problem(document)


def _traceback(pasted: PastedInput, tried: list[str]) -> ErrorReport:
    try:
        return describe_pasted(pasted.text, policy=pasted.policy, origin=pasted.origin)
    except Validation:
        raise _unrecognised(
            [
                *tried,
                "a reply: no status line",
                "a traceback: no line names an exception",
                "text: it shows no status or code of an error",
            ]
        ) from None


def _document(text: str) -> dict[str, Any]:
    try:
        document = loads(text)
    except JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _refused(
            f"the input is not valid JSON: {error.msg.lower()} at {where}",
            line=error.lineno,
            column=error.colno,
        ) from None
    except (ValueError, RecursionError):
        # Both are bounds of Python's reader, not mistakes with a place.
        raise _refused("the input is JSON with a number too long or a nesting too deep to read") from None
    if not isinstance(document, dict):
        raise _refused("the input is JSON, but not an object")
    return cast("dict[str, Any]", document)


def _looks_like_reply(text: str) -> bool:
    return text.lstrip().startswith("HTTP/") or "\n< HTTP/" in text or text.startswith("< HTTP/")


def _unrecognised(tried: list[str]) -> Validation:
    return _refused(
        "the input is nothing that can be described",
        "give a traceback with its last line, all that a command printed, or a reply with its status line and headers (`curl -i`)",
        tried=tried,
    )


def _refused(message: str, hint: str = "", **details: Any) -> Validation:
    tried = details.get("tried")
    advice = (
        hint
        or "say what it is with `--as report`, `--as problem`, `--as reply`, `--as traceback` or `--as text`"
    )
    return Validation(
        kind="validation.shape_invalid",
        message=f"{message}; tried {'; '.join(tried)}" if tried else message,
        details=details or None,
        user_action=UserAction(ActionKind.CHANGE_INPUT, advice),
    )


_ORIGINS = ("code", "call", "tool", "input")
_VIEWS = ("user", "model", "operator", "audit")


def add_options(parser: Parser) -> None:
    """Declare the input and how it is shown."""
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="what to describe (default: stdin)"
    )
    parser.add_argument("--as", dest="form", choices=FORMS, help="what the input is (default: detected)")
    parser.add_argument("--view", choices=_VIEWS, default="operator", help="for whom (default: operator)")
    parser.add_argument(
        "--origin",
        choices=_ORIGINS,
        help="where it arose: in the program's code, in a call that it made, in a tool or in input that it was given",
    )
    parser.add_argument("--provider", help="who sent the reply")
    parser.add_argument("--model", help="which model was called")


def run(args: Namespace) -> int:
    """Read, recognise, show."""
    report = recognise(
        PastedInput(read_input(args.file), args.provider, args.model, origin=args.origin), args.form
    )
    if args.format == "json":
        print_json(report.view(args.view))
    elif args.format == "markdown":
        print_text(_markdown(report, args.view))
    elif args.view not in ("user", "operator"):
        print_text("\n".join(f"{name}: {_plain(value)}" for name, value in report.view(args.view).items()))
    elif _for_a_person(args):
        _panel(report, args)
    else:
        from failwell.delivery.terminal import render_text

        print_text(render_text(report, args.view))
    return Exit.DONE


def _for_a_person(args: Namespace) -> bool:
    from importlib.util import find_spec

    # The panel is drawn by rich, which comes with the extra `engine`; without it the same is said in plain text.
    return (is_terminal(sys.stdout) or args.color == "always") and find_spec("rich") is not None


def _panel(report: ErrorReport, args: Namespace) -> None:
    from failwell.cli.output import print_drawing, terminal
    from failwell.delivery.terminal import panel

    color = wants_color(args)
    console = terminal(sys.stdout, color=color, force_terminal=color or None)
    console.width = min(console.width, WIDTH)
    with console.capture() as drawing:
        console.print(panel(report, args.view))
    print_drawing(drawing.get())


def _markdown(report: ErrorReport, view: str) -> str:
    if view == "operator":
        from failwell.delivery.agent_output import agent_markdown

        return agent_markdown(report)
    from failwell.delivery.agent_output import code, escaped

    members: Mapping[str, Any] = report.view(view)  # pyright: ignore[reportArgumentType]
    lines = [f"- {escaped(name)}: {code(_plain(value))}" for name, value in members.items()]
    return "\n".join([f"# {escaped(report.title)}", "", *lines])


def _plain(value: object) -> str:
    from failwell.delivery.plain_text import neutral

    return neutral(value if isinstance(value, str) else dumps(value, ensure_ascii=False))
