"""Captures the output of a process: a bounded part in memory, and all of it in a file if there is more.

Values that are known to be secret are masked on the way, in every form in which they may appear, before anything is
kept or written.
"""

import os
import re
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from failwell.errors.masking.known_values import SHORTEST, forms_of
from failwell.errors.redact import MARK

if TYPE_CHECKING:
    from failwell.errors.masking.known_values import KnownSecrets

_ESCAPE = re.compile("%[0-9A-F]{2}")


class OutputSecrets:
    """Secrets that are masked in everything that processes print. Those that are added later are masked from then on."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._known: KnownSecrets | None = None
        self.forms: tuple[bytes, ...] = ()
        """Every form of every secret, longest first."""

    def add(self, value: str) -> None:
        """Mask a value from now on, here and in everything that is redacted."""
        if value in self._values:
            return
        from failwell.errors.masking.known_values import KnownSecrets
        from failwell.errors.redact import register_secret

        # What is too short cannot be distinguished from an ordinary word; it is still passed to the script only.
        self._values.add(value)
        for part in _parts(value):
            register_secret(part)
        self.forms = tuple(sorted({*self.forms, *_forms(value)}, key=len, reverse=True))
        self._known = KnownSecrets(part for secret in self._values for part in _parts(secret))

    def mask(self, text: str) -> str:
        """`text` without secrets that are escaped in a way which only decoding shows, letter by letter."""
        return text if self._known is None else self._known.mask(text, MARK)


def _parts(value: str) -> list[str]:
    """A secret, and each line of one that has several. What is too short to be masked, and a PEM boundary, is left out."""
    lines = value.strip().splitlines()
    values = [value, *(line.strip() for line in lines if not line.startswith("-----"))]
    return [part for part in dict.fromkeys(values) if len(part) >= SHORTEST]


def _forms(value: str) -> set[bytes]:
    """The forms in which a secret may be printed: plain, encoded and escaped. Short forms are left out."""
    from html import escape
    from json import dumps
    from urllib.parse import quote, quote_plus

    texts: set[str] = set()
    for part in _parts(value):
        bare = part.strip()
        # What a URL, a part of one, and the two functions of JavaScript leave as it is.
        percent = {quote(bare, safe=safe) for safe in ("", "/", "!*'()", "!*'();,/?:@&=+$#")}
        texts |= forms_of(part) | percent
        texts |= {_ESCAPE.sub(lambda match: match.group().lower(), text) for text in percent}
        texts |= {
            dumps(bare)[1:-1],
            dumps(dumps(bare)[1:-1])[1:-1],
            dumps(bare, ensure_ascii=False)[1:-1],
            dumps(bare)[1:-1].replace("/", "\\/"),
            repr(bare.encode("utf-8", "surrogateescape"))[2:-1],
            quote_plus(bare),
            escape(bare),
        }
    return {form.encode("utf-8", "surrogateescape") for form in texts if len(form) >= SHORTEST}


LIMIT = 1_048_576
"""The default number of bytes of one stream that are kept in memory."""
_HEAD = 0.7
_LINE = 64
_PIECE = 24
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{57,}")
"""What programs print in several lines: they wrap base64 after 64 or 76 characters."""


class Capture:
    """One stream. Its beginning and its end are kept; a mark between them says how much was cut."""

    def __init__(
        self,
        spill: str,
        *,
        limit: int = LIMIT,
        secrets: OutputSecrets | None = None,
        on_chunk: Callable[[bytes], None] | None = None,
        on_cut: Callable[["Capture"], None] | None = None,
    ) -> None:
        """Nothing is captured yet.

        Args:
            spill: The file for output beyond the limit.
            limit: Bytes that are kept in memory.
            secrets: Values that are masked.
            on_chunk: Called with each chunk, masked, until the limit is passed.
            on_cut: Called once with this capture, after the chunk that passes the limit.
        """
        self._spill, self._on_chunk, self._on_cut = spill, on_chunk, on_cut
        self._mask = None if secrets is None else secrets.mask
        self._secrets = () if secrets is None else secrets.forms
        self._in_order = sorted(self._secrets)
        self._first_bytes = frozenset(secret[0] for secret in self._secrets)
        self._wrapped = tuple(_Wrapped(form) for form in self._secrets if _BASE64.fullmatch(form))
        longest = max(map(len, self._secrets), default=1)
        # A text in base64 has a line ending, of at most two characters, after 64 characters or more.
        self._overlap = longest + 2 * (longest // _LINE + 1) - 1
        self._carried = b""
        self._head = bytearray()
        self._tail = bytearray()
        self._file: int | None = None
        self.limit = max(1, limit)
        """How many bytes are kept in memory."""
        self.size = 0
        """How many bytes there were."""
        self.was_cut = False
        """Whether the output in memory was cut."""
        self.file: str | None = None
        """The file with the complete output, if it was cut in memory."""
        self.trouble = ""
        """Why the file does not hold the complete output; empty if it does."""

    @property
    def head(self) -> str:
        """The beginning, up to where it was cut."""
        return self._head.decode("utf-8", "replace")

    def take(self, chunk: bytes) -> None:
        """Add a chunk of output."""
        if not self._secrets:
            self._keep(chunk)
            return
        data = _masked(self._carried + chunk, self._secrets, self._wrapped)
        end = self._end_of_known(data)
        self._carried = data[end:]
        self._keep(data[:end])

    def _end_of_known(self, data: bytes) -> int:
        """Where the first half of a secret begins, which waits for the rest; else the end of `data`."""
        for start in range(max(0, len(data) - self._overlap), len(data)):
            if data[start] in self._first_bytes:
                end = data[start:]
                if self._begins_secret(end) or (
                    self._wrapped and self._begins_secret(end.translate(None, b"\r\n"))
                ):
                    return start
        return len(data)

    def _begins_secret(self, end: bytes) -> bool:
        at = bisect_left(self._in_order, end)
        return at < len(self._in_order) and self._in_order[at].startswith(end)

    def close(self) -> None:
        """Flush what is buffered and close the file. Call it once the stream has ended."""
        rest, self._carried = self._carried, b""
        self._keep(rest)
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def text(self) -> str:
        """The captured text. Bytes that are not UTF-8 are replaced."""
        text = self._text()
        return text if self._mask is None else self._mask(text)

    def _text(self) -> str:
        if not self.was_cut:
            return self._head.decode("utf-8", "replace")
        room = self.limit - self._head_room
        tail = self._tail[-room:] if room else bytearray()
        missing = self.size - len(self._head) - len(tail)
        where = self.trouble or f"all of it is in {self._spill}"
        mark = f"\n… [{missing} bytes cut; {where}]\n"
        return f"{self._head.decode('utf-8', 'replace')}{mark}{tail.decode('utf-8', 'replace')}"

    def end(self, characters: int) -> str:
        """The last characters."""
        last = self._tail or self._head
        text = last[-4 * characters :].decode("utf-8", "replace")[-characters:]
        return text if self._mask is None else self._mask(text)

    @property
    def _head_room(self) -> int:
        return int(self.limit * _HEAD)

    def _keep(self, chunk: bytes) -> None:
        if not chunk:
            return
        if self._on_chunk is not None and not self.was_cut:
            self._on_chunk(chunk)
        self.size += len(chunk)
        if self.size <= self.limit:
            self._head += chunk
            return
        is_first, self.was_cut = not self.was_cut, True
        if is_first:
            self._open()
            self._write(bytes(self._head))
            self._head += chunk
            self._tail = self._head[self._head_room :]
            del self._head[self._head_room :]
        else:
            self._tail += chunk
        self._write(chunk)
        if is_first and self._on_cut is not None:
            self._on_cut(self)
        # Cut now and then, not with every chunk: that would copy the tail each time.
        if len(self._tail) > 2 * self.limit:
            del self._tail[: len(self._tail) - self.limit]

    def _open(self) -> None:
        try:
            Path(self._spill).parent.mkdir(mode=0o700, exist_ok=True)
            self._file = os.open(
                self._spill, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            self.file = self._spill
        except OSError as error:
            self._give_up(error)

    def _write(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest and self._file is not None:
            try:
                rest = rest[os.write(self._file, rest) :]
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        # A full disk must not fail a script that only prints a lot; the text says what happened.
        self.trouble = (
            f"{self._spill} does not hold all of it: {(error.strerror or 'no reason given').lower()}"
        )
        if self._file is not None:
            os.close(self._file)
            self._file = None


class _Wrapped:
    """A secret in base64 that is longer than the lines in which programs print it."""

    def __init__(self, form: bytes) -> None:
        # A line ending breaks at most one of these two pieces, so a text without either does not hold the form.
        self._pieces = (form[:_PIECE], form[_PIECE : 2 * _PIECE])
        self._pattern = re.compile(
            rb"(?:\r?\n)?".join(re.escape(form[at : at + 1]) for at in range(len(form)))
        )

    def mask(self, data: bytes) -> bytes:
        """`data` with the form masked, wherever its lines end."""
        if not any(piece in data for piece in self._pieces):
            return data
        return self._pattern.sub(MARK.encode(), data)


def _masked(data: bytes, secrets: tuple[bytes, ...], wrapped: tuple[_Wrapped, ...]) -> bytes:
    for secret in secrets:
        data = data.replace(secret, MARK.encode())
    for form in wrapped:
        data = form.mask(data)
    return data
