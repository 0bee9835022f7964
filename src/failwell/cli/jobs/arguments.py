"""The arguments of a job on the command line: NAME=VALUE, the text of a file, or one JSON object.

A value that cannot be passed on exactly is refused, so that a job never gets another value than the one typed.
"""

from argparse import Namespace
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, cast

from failwell.cli.parser import usage_error
from failwell.cli.text_file import named, text_of
from failwell.files.finite_json import NotFinite, load_finite

if TYPE_CHECKING:
    from collections.abc import Collection

    from failwell.cli.faults import Usage

_MOST_BYTES = 64 * 1024 * 1024
"""What a job may be given, in all."""
_SEE = "failwell jobs submit --help"
_JSON_STARTS = frozenset('-0123456789"[{tfnNI \t\r\n')
"""How a JSON text begins; `NaN` and `Infinity` are none, and are refused."""


def arguments_of(args: Namespace, texts: "Collection[str]" = ()) -> dict[str, Any]:
    """The arguments of `--arguments` and of the NAME=VALUE pairs together; a name may occur once.

    `texts` are parameters that take text only: `name=5` is the text `5` for them.

    Raises:
        Usage: an argument is not valid.
    """
    arguments = {} if args.arguments is None else _object(args.arguments)
    for text in args.values:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise usage_error(f"`{text}` is not NAME=VALUE", see=_SEE)
        if name in arguments:
            raise usage_error(f"argument `{name}` is given twice", see=_SEE)
        arguments[name] = (
            text_of(value[1:], f"argument `{name}`", _SEE) if value.startswith("@") else _value(name, value)
        )
        if name in texts and isinstance(arguments[name], int | float):
            arguments[name] = value
    return arguments


def _value(name: str, text: str) -> Any:
    # A value that is not JSON is text: model=large needs no quotes.
    try:
        if text[:1] in _JSON_STARTS:
            return load_finite(text)
    except JSONDecodeError:
        pass
    except NotFinite as error:
        raise usage_error(
            f"argument `{name}` holds {error.number}, which is no number in JSON;"
            f" for text, put it into double quotes: {name}='\"{text}\"'",
            see=_SEE,
        ) from None
    except (ValueError, RecursionError):
        raise usage_error(
            f"argument `{name}` is JSON with a number too long or a nesting too deep to read", see=_SEE
        ) from None
    try:
        text.encode()
    except UnicodeEncodeError:
        raise usage_error(f"argument `{name}` is not UTF-8 text", see=_SEE) from None
    return text


def _object(path: str) -> dict[str, Any]:
    name = named(path)
    try:
        value = load_finite(text_of(path, "`--arguments`", _SEE, _MOST_BYTES))
    except JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _no_object(f"{name} is not valid JSON: {error.msg.lower()} at {place}") from None
    except NotFinite as error:
        raise _no_object(f"{name} holds {error.number}, which is no number in JSON") from None
    except (ValueError, RecursionError):
        raise _no_object(f"{name} is JSON with a number too long or a nesting too deep to read") from None
    if not isinstance(value, dict):
        raise _no_object(f"{name} is JSON, but not an object")
    return cast("dict[str, Any]", value)


def _no_object(what: str) -> "Usage":
    return usage_error(f"{what}; `--arguments` takes one JSON object of names and values", see=_SEE)
