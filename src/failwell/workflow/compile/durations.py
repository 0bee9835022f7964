"""Durations: seconds as a number, or `500ms`, `60s`, `2.5m`, `1h`."""

import re
from typing import Any

from failwell.workflow.compile.values import WRONG, Schema, name_of, sort_of, template_of, unquoted
from failwell.workflow.source.problems import Problems
from failwell.workflow.source.tree import Item, Path

LONGEST = 86_400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPELLED = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(ms|s|m|h)?")
_HINT = "write seconds as a number, or `500ms`, `60s`, `2.5m`, `1h`"


class Duration:
    """A time above nothing and up to a day, read as seconds; with `templated`, `{{ }}` may give it later."""

    def __init__(self, *, templated: bool = False, most: float | None = LONGEST) -> None:
        self.templated = templated
        self.most = most

    def read(self, item: Item, at: Path, on: Problems) -> Any:
        if self.templated and type(item.value) is str and "{{" in item.value:
            return template_of(item)
        value = unquoted(item)
        seconds: float | None = None
        # A truth value is a number to Python; it is no duration.
        if type(value) is int or type(value) is float:
            seconds = float(value)
        elif type(value) is str and (found := _SPELLED.fullmatch(value.strip())):
            seconds = float(found[1]) * _UNITS[found[2] or "s"]
        if seconds is None:
            on.wrong(item, at, f"{name_of(at)} must be a duration, not {sort_of(value)}", hint=_HINT)
        elif seconds <= 0:
            on.wrong(item, at, f"{name_of(at)} must be longer than nothing", hint=_HINT)
        elif self.most is not None and seconds > self.most:
            on.wrong(
                item, at, f"{name_of(at)} must be at most 24 hours", hint="use `limits` for the whole run"
            )
        else:
            return seconds
        return WRONG

    def schema(self) -> Schema:
        number: Schema = {"type": "number", "exclusiveMinimum": 0}
        if self.most is not None:
            number["maximum"] = self.most
        texts = [f"^\\s*{_SPELLED.pattern}\\s*$", r"\$\{", *([r"\{\{"] if self.templated else [])]
        return {"anyOf": [number, {"type": "string", "pattern": "|".join(f"(?:{one})" for one in texts)}]}
