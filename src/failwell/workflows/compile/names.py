"""The spelling of names, of dotted references to them, and of references to registries."""

import re

_LETTER = (
    r"[^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\xa9\xab-\xb4\xb6\xb8\xb9\xbb-\xbf\xd7\xf7"
    r"\u2000-\u203e\u2041-\u206f\u2190-\u2bff\u3000-\u3004\u3008-\u3020\u3030\ufeff\ufff0-\uffff]"
)
"""A letter or digit of any script, a combining mark, or `_`: no space, no control character, no punctuation."""

NAME = rf"{_LETTER}(?:{_LETTER}|-){{0,99}}"
"""The name of a step or a group."""
INPUT_NAME = rf"(?![0-9-])(?:{_LETTER}|-)+"
"""The name of an input, which does not begin with a digit."""


def dotted(least: int) -> str:
    """The pattern of a reference with `least` or more parts."""
    part = rf"(?:{_LETTER}|-)+"
    return rf"{part}(?:\.{part}){{{least - 1},}}"


_REGISTRY = re.compile(r"([^/@#]+)@[^/@#]*(?:/[^/@#]+)?(?:#.+)?\Z")
REGISTRY_HINT = "copy the workflow into your project, and name its file, such as `./NAME.yaml`"


def registry_refusal(path: str) -> str | None:
    """The message for a path that is conductor's `name@registry#ref` or `name@owner/repo#ref`, and else `None`."""
    reference = _REGISTRY.search(path)
    if reference is None or path.endswith((".yaml", ".yml")):
        return None
    return f"`{reference[0]}` names a workflow in a registry, and registries are not supported"
