"""`failwell classify`: classify saved failures, one JSON object a line in and out; or one printed error."""

import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from json import JSONDecodeError, dumps, loads
from typing import Any, BinaryIO, cast

from failwell.cli.exit_codes import Exit
from failwell.cli.faults import Unreadable, reason
from failwell.cli.output import print_json_text, print_stderr
from failwell.cli.parser import Parser
from failwell.cli.text_file import named
from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.faults import Validation
from failwell.errors.report import ErrorReport

LONGEST_LINE = 4 * 1024 * 1024
_EPILOG = """\
a row may have: id, provider, sdk, transport, http_status, headers, body, exception_class, message,
cause_chain. Nothing else in it is looked at.

exit codes: 0 every line was read, 2 some were not. Each of those is named on stderr, in one line; with
--strict the first one ends it.

with --text the whole input is one failure: a traceback, a chain of causes, the output of a command.

try it: echo '{"http_status": 429, "headers": {"retry-after": "7"}}' | failwell classify --jsonl -"""


def add_options(parser: Parser) -> None:
    """Declare the input."""
    source = parser.alternatives(required=True)
    source.add_argument(
        "--jsonl",
        metavar="FILE",
        help="failures to classify, one JSON object a line (- is stdin)",
    )
    source.add_argument(
        "--text",
        metavar="FILE",
        help="one failure as a program or a command printed it, in any language (- is stdin)",
    )
    parser.add_argument(
        "--origin",
        choices=("code", "call", "tool", "input"),
        help="where the failures arose (default: in a call; in code where a line's transport is local)",
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first line that cannot be read")
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _EPILOG


def run(args: Namespace) -> int:
    """Classify every line; a line that cannot be read is reported at once and counted at the end."""
    if args.text is not None:
        return _run_text(args)
    from failwell.adapters.log_records.log_record import classify

    lines = bad = 0
    for number, line in _lines(args.jsonl):
        lines += 1
        try:
            row = _row(line, number)
        except Validation as problem:
            if args.strict:
                raise
            bad += 1
            _tell(number, str(problem), args)
            continue
        print_json_text(dumps(judged(row.get("id"), classify(row, origin=args.origin)), ensure_ascii=False))
    if bad:
        raise _refused(f"{bad} of {lines} lines could not be read", "correct the lines named above")
    return Exit.DONE


def _run_text(args: Namespace) -> int:
    from failwell.cli.errors.describe import PastedInput, read_input, recognise

    report = recognise(PastedInput(read_input(args.text), origin=args.origin), "text")
    print_json_text(dumps(judged(None, report), ensure_ascii=False))
    return Exit.DONE


def _tell(number: int, message: str, args: Namespace) -> None:
    as_json = args.error_format == "json" or args.agent
    text = dumps({"line": number, "message": message}) if as_json else message
    print_stderr(text, is_json=as_json)


def judged(row_id: object, report: ErrorReport) -> dict[str, Any]:
    """The output for one row."""
    wait = report.not_before
    return {
        "id": row_id if isinstance(row_id, str | int) else None,
        "kind": report.kind,
        "category": report.category.value,
        "certainty": report.certainty.value,
        "retryable": report.retryable,
        "retry_after_s": None if wait is None else round(wait.after, 3),
        "model_not_found": report.kind == "provider.model_not_found",
        "evidence": [
            {"rule": evidence.rule, "basis": evidence.basis, "saw": evidence.saw}
            for evidence in report.evidence
        ],
    }


def _row(line: bytes, number: int) -> Mapping[str, Any]:
    if len(line) > LONGEST_LINE:
        raise _bad(number, f"longer than {LONGEST_LINE // 1024**2} MiB")
    try:
        row = loads(line)
    except JSONDecodeError as error:
        raise _bad(number, f"not valid JSON: {error.msg.lower()} at column {error.colno}") from None
    except (ValueError, RecursionError):
        # Bytes of no encoding, or bounds of Python's reader.
        raise _bad(number, "not JSON that can be read") from None
    if not isinstance(row, dict):
        raise _bad(number, "not a JSON object")
    return cast("dict[str, Any]", row)


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Number and content of every line that is not blank; of one that is too long, only the beginning."""
    try:
        with _opened(path) as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                rest = line
                while not rest.endswith(b"\n") and len(rest) > LONGEST_LINE:
                    rest = file.readline(LONGEST_LINE + 1)
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise Unreadable.wrap(
            error, f"cannot read {named(path)}: {reason(error)}", caller_facing=True
        ) from error


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    if path == "-":
        return nullcontext(sys.stdin.buffer)
    return open(path, "rb")  # noqa: PTH123  (`pathlib` costs more to load than this command)


def _bad(number: int, what: str) -> Validation:
    return _refused(
        f"line {number} is {what}", "give one JSON object a line, without line breaks inside it", line=number
    )


def _refused(message: str, hint: str, **details: Any) -> Validation:
    return Validation(
        kind="validation.shape_invalid",
        message=message,
        details=details or None,
        user_action=UserAction(ActionKind.CHANGE_INPUT, hint),
    )
