"""Values that are known to be secret, found in every form in which programs print them.

Each value is looked for as it is, in hexadecimal, and in base64 at each of the three places where it can begin in
an encoded text, so that `user:SECRET` in a Basic header is found without knowing the user. Escapes are undone first
(see `escapes`). However many values there are, a text is read once: pieces of four characters, every third of them,
are looked up in one set, and only what is found there is searched for.

Text as it was before somebody escaped it: percent signs, backslashes and HTML entities, in any number of layers.
"""

import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator

from failwell.errors.lazy_regex import lazy_regex
from failwell.errors.masking.shapes import Span, merged, replaced

_ESCAPE = lazy_regex(
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


SHORTEST = 6
"""Characters of a value that can be masked; a shorter one would mask ordinary words."""
_SHORTEST_LINE = 16
_PIECE = 4
_STEP = SHORTEST - _PIECE + 1
_MOST_ROUNDS = 20
"""How often a text is searched again for what a deeper layer of escapes shows."""
_SLICES = tuple(slice(at, at + _PIECE) for at in range(0, 8_192, _STEP))


class KnownSecrets:
    """A set of secret values, immutable, with the index that finds them."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for form in forms_of(value)}
        index: dict[str, list[str]] = {}
        for form in forms:
            for at in range(_STEP):
                index.setdefault(form[at : at + _PIECE], []).append(form)
        self._index = {piece: tuple(group) for piece, group in index.items()}
        self._pieces = frozenset(self._index)
        self.longest = max(map(len, forms), default=0)
        """Characters of the longest form."""

    def mask(self, text: str, mark: str) -> str:
        """`text` with every form of every value replaced by `mark`."""
        if not self._pieces:
            return text
        text = replaced(text, self._spans(text, mark), mark)
        for _ in range(_MOST_ROUNDS):
            masked = self._mask_layer(text, mark)
            if masked == text:
                break
            text = masked
        return text

    def stands_in(self, text: str) -> bool:
        """Whether a value stands in `text`, in which nothing is escaped."""
        return bool(self._pieces) and bool(self._spans(text, ""))

    def _mask_layer(self, text: str, mark: str) -> str:
        """`text` without what the first layer of escapes shows that holds a value."""
        for layer, plain in enumerate(layers(text)):
            spans = self._spans(plain, mark)
            if spans:
                origin = places(text, layer)
                return replaced(text, [(origin[start], _end(origin, end)) for start, end in spans], mark)
        return text

    def _spans(self, text: str, mark: str) -> list[Span]:
        """Where the values stand in `text`, in order and without overlaps."""
        if self._pieces.isdisjoint(_pieces_of(text)):
            return []
        candidates = {form for piece in set(_pieces_of(text)) & self._pieces for form in self._index[piece]}
        spans: list[Span] = []
        for form in candidates:
            # A value that is part of the mark would be found again in what was masked.
            at = -1 if form in mark else text.find(form)
            while at >= 0:
                spans.append((at, at + len(form)))
                at = text.find(form, at + 1)
        return merged(spans)


def _pieces_of(text: str) -> Iterator[str]:
    count = -(-len(text) // _STEP)
    if count <= len(_SLICES):
        return map(text.__getitem__, _SLICES[:count])
    return (text[at : at + _PIECE] for at in range(0, len(text), _STEP))


def _end(origin: list[int], end: int) -> int:
    """Where in the written text the character before `end` is over."""
    # Characters that one escape decodes to share their beginning; the next one that differs is the end.
    last = origin[end - 1]
    while end < len(origin) - 1 and origin[end] == last:
        end += 1
    return origin[end]


def forms_of(value: str) -> set[str]:
    """The forms in which a secret is written, beside those that an escape makes of them."""
    return {form for form in _forms(value) if len(form) >= SHORTEST}


def _forms(value: str) -> Iterator[str]:
    """All of it, and each line if it has several."""
    yield from _written(value)
    bare = value.strip()
    if bare != value:
        yield from _written(bare)
    lines = bare.splitlines()
    if len(lines) > 1:
        # A message quotes a line of a key as often as all of it; its first and last lines are no secret.
        for line in lines:
            if len(line) >= _SHORTEST_LINE and not line.startswith("-----"):
                yield from _written(line)
        yield "".join(line for line in lines if not line.startswith("-----"))


def _written(value: str) -> Iterator[str]:
    # A value that holds what looks like an escape itself is found decoded where a text around it was decoded.
    for plain in (value, *layers(value)):
        for spaced in {plain, plain.replace(" ", "+")}:
            yield spaced
            if not spaced.isascii():
                yield spaced.encode("utf-8", "surrogatepass").decode("latin-1")
    raw = value.encode("utf-8", "surrogatepass")
    if len(raw) < SHORTEST:
        return
    digits = raw.hex()
    yield digits
    yield digits.upper()
    for before in range(3):
        encoded = b2a_base64(b"\0" * before + raw, newline=False).decode("ascii")
        # The characters at either end also hold bits of what stands before or after the value.
        inner = encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        yield inner
        yield inner.replace("+", "-").replace("/", "_")
