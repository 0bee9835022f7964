r"""Text as it was before somebody escaped it: percent signs, backslashes and HTML entities, in any number of layers.

A secret that is known is looked for in the text and in what each layer decodes to, so one rule covers `%2F`, `%2f`,
`\u002f`, `\x2f`, `\/`, `&#47;` and any mixture of them. Bytes decode to the character of the same number: a known
value that is not ASCII is looked for in that form too.
"""

import re
from collections.abc import Iterator

_ESCAPE = re.compile(
    r"%([0-9A-Fa-f]{2})"
    # Any number of backslashes: each layer of quoting doubles them.
    r"|\\++(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([0-3][0-7]{2})|U([0-9A-Fa-f]{8})|([nrtbfav0])|([^A-Za-z0-9\s]))"
    r"|&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|([A-Za-z]{2,8}));"
    r"|(\\)\\++"
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0"}
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_MOST_LAYERS = 6
_BASES = {1: 16, 2: 16, 3: 16, 4: 8, 5: 16, 8: 10, 9: 16}
"""The groups of the pattern that hold a number, and its base."""


def layers(text: str) -> Iterator[str]:
    """What `text` decodes to, layer by layer; nothing if it holds no escape."""
    for _ in range(_MOST_LAYERS):
        if not ("%" in text or "\\" in text or "&" in text):
            return
        plain = _ESCAPE.sub(_decoded, text)
        if plain == text:
            return
        yield plain
        text = plain


def places(text: str, layer: int) -> list[int]:
    """Where in `text` each character of its layer number `layer` (0 is the first) begins, and where the last one ends."""
    origin = list(range(len(text) + 1))
    for _ in range(layer + 1):
        pieces: list[str] = []
        starts: list[int] = []
        at = 0
        for match in _ESCAPE.finditer(text):
            decoded = _decoded(match)
            pieces += (text[at : match.start()], decoded)
            starts += origin[at : match.start()]
            starts += [origin[match.start()]] * len(decoded)
            at = match.end()
        pieces.append(text[at:])
        starts += origin[at:]
        text, origin = "".join(pieces), starts
    return origin


def _decoded(match: re.Match[str]) -> str:
    group = match.lastindex or 0
    written = match.group(group)
    base = _BASES.get(group)
    if base is not None:
        number = int(written, base)
        return chr(number) if number < 0x110000 else match.group()
    if group == 6:
        return _CONTROLS[written]
    if group in (7, 11):
        return written
    return _ENTITIES.get(written) or _entity(match.group())


def _entity(written: str) -> str:
    # The table of all entities is large, and hardly any text has one beside the five above.
    from html import unescape

    return unescape(written)
