"""The output of a script, built from its streams."""

from typing import Any, cast

from failwell.workflows.envelope import Malformed, NotStorable, parse

_LONGEST_WORD = 16
"""More characters than a literal or an escape has, which may be cut in half."""


def output_of(
    stdout: str, stderr: str, exit_code: int | None, stdout_file: str | None, stderr_file: str | None
) -> dict[str, Any]:
    """The output of a script: its streams, its exit code, and the files with output that was too long."""
    output: dict[str, Any] = {"stdout": stdout, "stderr": stderr}
    if exit_code is not None:
        output["exit_code"] = exit_code
    if stdout_file is not None:
        output["stdout_file"] = stdout_file
    if stderr_file is not None:
        output["stderr_file"] = stderr_file
    return output


def object_of(text: str) -> dict[str, Any] | None:
    """The JSON object in a script's stdout, if stdout is exactly one.

    Raises:
        NotStorable: it is one, but holds what cannot be recorded.
    """
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return None
    try:
        value = parse(bare.encode("utf-8"))
    except NotStorable:
        raise
    except Malformed:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def is_cut_object(head: str, text: str) -> bool:
    """Whether a stdout that was cut is one JSON object: `head` is its uncut beginning, and `text` ends as it does.

    An object that ends within the head is the first line of many, as a log in JSON lines is.
    """
    from json import JSONDecodeError, JSONDecoder

    bare = head.lstrip()
    if not bare.startswith("{") or not text.rstrip().endswith("}"):
        return False
    try:
        JSONDecoder().raw_decode(bare)
    except JSONDecodeError as error:
        return error.pos >= len(bare) - _LONGEST_WORD or error.msg.startswith("Unterminated string")
    except (RecursionError, ValueError):
        return True
    return False
