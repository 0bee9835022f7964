"""The arguments of a job as they are typed: NAME=VALUE, a file's text, or all of them as one JSON object.

What cannot be taken over as it is, is refused: an argument never arrives as something else than was meant.
"""

import sys
from argparse import Namespace
from json import JSONDecodeError, JSONDecoder
from typing import TYPE_CHECKING, Any, NoReturn, cast

from failwell.apps.cli.usage import wrong

if TYPE_CHECKING:
    from failwell.apps.cli.mistakes import Usage

MOST_BYTES = 16 * 1024 * 1024
_SEE = "failwell job --help"
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


class _NotFinite(Exception):
    """A number that JSON has no word for."""


def arguments_of(asked: Namespace) -> dict[str, Any]:
    """What `--arguments` and the NAME=VALUE pairs say together; no name may come twice.

    Raises:
        Usage: something of it cannot be used, and why.
    """
    given = {} if asked.arguments is None else _object(asked.arguments)
    for written in asked.values:
        name, sign, value = written.partition("=")
        if not sign or not name:
            raise wrong(f"`{written}` is not NAME=VALUE", see=_SEE)
        if name in given:
            raise wrong(f"argument `{name}` is given twice", see=_SEE)
        given[name] = _text(value[1:], f"argument `{name}`") if value.startswith("@") else _value(name, value)
    return given


def _value(name: str, written: str) -> Any:
    try:
        return _read(written)
    except JSONDecodeError:
        # What is no JSON is meant as it is written: model=large needs no quotes.
        pass
    except _NotFinite as number:
        raise wrong(
            f"argument `{name}` holds {number}, which is no number in JSON;"
            f" if a text is meant, put it into double quotes: {name}='\"{written}\"'",
            see=_SEE,
        ) from None
    except (ValueError, RecursionError):
        raise wrong(
            f"argument `{name}` is JSON with a number too long or a nesting too deep to read", see=_SEE
        ) from None
    try:
        written.encode()
    except UnicodeEncodeError:
        raise wrong(f"argument `{name}` is not UTF-8 text", see=_SEE) from None
    return written


def _object(path: str) -> dict[str, Any]:
    name = _named(path)
    try:
        read = _read(_text(path, "`--arguments`"))
    except JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _no_object(f"{name} is not valid JSON: {error.msg.lower()} at {where}") from None
    except _NotFinite as number:
        raise _no_object(f"{name} holds {number}, which is no number in JSON") from None
    except (ValueError, RecursionError):
        raise _no_object(f"{name} is JSON with a number too long or a nesting too deep to read") from None
    if not isinstance(read, dict):
        raise _no_object(f"{name} is JSON, but not an object")
    return cast("dict[str, Any]", read)


def _no_object(what: str) -> "Usage":
    return wrong(f"{what}; `--arguments` takes one JSON object of names and values", see=_SEE)


def _read(text: str) -> Any:
    def constant(name: str) -> NoReturn:
        raise _NotFinite(name)

    def number(digits: str) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise _NotFinite(digits)
        return value

    return JSONDecoder(parse_constant=constant, parse_float=number).decode(text)


def _text(path: str, what: str) -> str:
    """The text of a file, or of stdin for `-`; an empty one is an empty text."""
    name = _named(path)
    try:
        content = _bytes(path)
    except OSError as error:
        from failwell.apps.cli.mistakes import Unreadable, reason

        raise Unreadable.wrap(
            error, f"cannot read {name} for {what}: {reason(error)}", caller_facing=True
        ) from error
    if len(content) > MOST_BYTES:
        limit = f"{MOST_BYTES // 1024**2} MiB"
        raise wrong(
            f"{name} is larger than {limit}, too large for {what}; give the path and let the capability read it",
            see=_SEE,
        )
    try:
        return content.decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        raise wrong(
            f"{name} is not UTF-8 text (byte {error.start}), so it cannot be {what};"
            " give the path and let the capability read it",
            see=_SEE,
        ) from None


def _named(path: str) -> str:
    return "the standard input" if path == "-" else f"`{path}`"


def _bytes(path: str) -> bytes:
    if path == "-":
        return b"" if sys.stdin is None else sys.stdin.buffer.read(MOST_BYTES + 1)
    with open(path, "rb") as file:  # noqa: PTH123  (`pathlib` costs more to load than this command)
        return file.read(MOST_BYTES + 1)
