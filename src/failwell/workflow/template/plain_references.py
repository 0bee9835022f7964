"""Templates of the commonest shape, read at a glance: text, and tags that hold a dotted name and no more.

A large workflow has tens of thousands of templates, and nearly all of them are like this. What is not
goes to the parser.
"""

import re

from failwell.workflow.template.references import Reference

_TAG = re.compile(
    r"\{\{-?[ \t]*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[ \t]*(?:\|[ \t]*(?:(default)\((?:'[\w .,:/-]*')?\)|json|tojson)[ \t]*)?-?\}\}"
)
_WORDS = frozenset(
    {
        "and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "or", "true", "True",
        "loop", "caller", "super", "self", "varargs", "kwargs",
    }
)  # fmt: skip


def simple_references(text: str) -> frozenset[Reference] | None:
    """What a template refers to, or `None` if it is not of this shape and has to be parsed."""
    rest = _TAG.sub("", text)
    if "{" in rest or "}" in rest:
        return None
    found: list[Reference] = []
    for path, guard in _TAG.findall(text):
        steps = tuple(path.split("."))
        if not _WORDS.isdisjoint(steps):
            return None
        found.append(Reference(steps, bool(guard)))
    return frozenset(found)
