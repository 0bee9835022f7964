"""The result of a tool as a model sees it: bounded, and marked as text that nobody has vouched for."""

import os
import re
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from failwell.delivery.plain_text import finite, json_text
from failwell.errors.redact import mask_known, redact_text
from failwell.store.private_files import create_private

_MARKER = re.compile(r"<(\s{0,9}/?\s{0,9}tool_result)", re.IGNORECASE)
_MOST_LINES = 2_000
_HEAD = 0.7
"""The share of a shortened result that is its beginning; the rest is its end."""


def bounded(value: Any, tool: str, longest: int, scratch: Path | None) -> str:
    """The text of a result, shortened and kept in a file beside where it is too long."""
    text = value if isinstance(value, str) else json_text(finite(value))
    text = redact_text(text, 2 * len(text) + 100)
    if len(text) > longest or text.count("\n") >= _MOST_LINES:
        text = _shortened(text, longest, _spilled(text, tool, scratch))
    return untrusted(text, tool)


def masked_values(value: Any) -> Any:
    """A result without the values that are known to be secret; what only looks like one is left."""
    if isinstance(value, str):
        return mask_known(value, 2 * len(value) + 100)
    if isinstance(value, list):
        return [masked_values(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {
            masked_values(key): masked_values(item) for key, item in cast("dict[Any, Any]", value).items()
        }
    return value


def untrusted(text: str, tool: str) -> str:
    """The text between markers that say it is the tool's and not an instruction. It can neither close nor open them."""
    inner = _MARKER.sub(r"<\\\1", text)
    return f'<tool_result tool="{tool}" trusted="false">\n{inner}\n</tool_result>'


def _shortened(text: str, longest: int, file: str | None) -> str:
    lines = text.splitlines()
    if len(lines) >= _MOST_LINES:
        head = int(_MOST_LINES * _HEAD)
        begin, end = "\n".join(lines[:head]), "\n".join(lines[head - _MOST_LINES :])
    else:
        begin = end = text
    limit = int(longest * _HEAD)
    begin, end = begin[:limit], end[-(longest - limit) :]
    where = "" if file is None else f"; all of it is in {file}"
    return f"{begin}\n[… {len(text) - len(begin) - len(end)} characters left out{where} …]\n{end}"


def _spilled(text: str, tool: str, scratch: Path | None) -> str | None:
    """The file that holds all of the result, or `None` where it is not wanted or could not be written."""
    if scratch is None:
        return None
    name = f"tool-{''.join(letter if letter.isalnum() else '_' for letter in tool[:40])}-{token_hex(6)}.txt"
    try:
        with os.fdopen(create_private(scratch / name), "wb") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError:
        # The model has the beginning and the end.
        return None
    return name
