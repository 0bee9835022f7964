"""Places in a text that are to be masked."""

from collections.abc import Iterable

Span = tuple[int, int]


def replaced(text: str, spans: Iterable[Span], mark: str) -> str:
    """`text` with `mark` in place of every span; spans that overlap become one."""
    pieces: list[str] = []
    at = 0
    for start, end in merged(spans):
        pieces += (text[at:start], mark)
        at = end
    return "".join([*pieces, text[at:]])


def merged(spans: Iterable[Span]) -> list[Span]:
    """The spans to mask in order, those that overlap joined."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
