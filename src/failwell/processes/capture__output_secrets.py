"""The values that processes must not print: every form in which one may appear, and the masking of text."""

import re
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
