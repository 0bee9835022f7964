"""How well secrets are told from ordinary text, measured on the texts in tests/errors/corpus.

    python -m tools.redaction [--misses] [--part all|open|held-back]

Recall is the share of the texts with a secret of which no part of the secret is shown; precision the share of the
changed texts that held a secret. A third of the texts, chosen by a checksum, is held back while rules are changed.
"""

import argparse
import random
import re
import string
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests/errors/corpus"
PARTS = ("all", "open", "held-back")

_HEX = "0123456789abcdef"
_ALPHABETS = {
    "an": string.ascii_letters + string.digits,
    "an0": string.ascii_lowercase + string.digits,
    "AN": string.ascii_uppercase + string.digits,
    "aA": string.ascii_letters,
    "az": string.ascii_lowercase,
    "AZ": string.ascii_uppercase,
    "d": string.digits,
    "hex": _HEX,
    "HEX": _HEX.upper(),
    "b64": string.ascii_letters + string.digits + "+/",
    "w": string.ascii_letters + string.digits + "-_",
    "b32": string.ascii_uppercase + "234567",
}
_DRAWN = re.compile(r"\{(\d+):([A-Za-z0-9]+)\}")
_MARKED = re.compile("«(.*?)»", re.DOTALL)
_WINDOW = 8
"""Characters of a secret that must not be shown in a row."""


@dataclass(frozen=True, slots=True)
class Specimen:
    """One text of the corpus."""

    group: str
    """The vendor, or the kind of an innocent text."""
    line: str
    """As it is written in the file."""
    text: str
    secrets: tuple[str, ...] = ()

    @property
    def is_held_back(self) -> bool:
        """Whether it belongs to the third that is not looked at while rules are changed."""
        return crc32(self.line.encode()) % 3 == 0

    def is_shown_by(self, masked: str) -> bool:
        """Whether `masked` shows part of a secret."""
        return any(piece in masked for secret in self.secrets for piece in _pieces(secret))


@dataclass(frozen=True, slots=True)
class Score:
    """What a masking function did to the texts."""

    caught: int
    missed: tuple[Specimen, ...]
    innocent: int
    changed: tuple[Specimen, ...]

    @property
    def recall(self) -> float:
        """The share of the secrets that are not shown."""
        return self.caught / (self.caught + len(self.missed))

    @property
    def precision(self) -> float:
        """The share of the changed texts that held a secret."""
        return self.caught / (self.caught + len(self.changed))


def specimens(name: str, part: str = "all") -> list[Specimen]:
    """The texts of `secrets` or `innocents`, all of them or one part."""
    every = list(_read(FOLDER / f"{name}.txt"))
    return [each for each in every if part == "all" or each.is_held_back == (part == "held-back")]


def measure(mask: Callable[[str], str], part: str = "all") -> Score:
    """What `mask` does to the texts."""
    secrets, innocents = specimens("secrets", part), specimens("innocents", part)
    missed = tuple(each for each in secrets if each.is_shown_by(mask(each.text)))
    changed = tuple(each for each in innocents if mask(each.text) != each.text)
    return Score(len(secrets) - len(missed), missed, len(innocents), changed)


def _read(file: Path) -> Iterator[Specimen]:
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        group, _, written = line.partition(" | ")
        dice = random.Random(crc32(line.encode()))  # noqa: S311  (texts for a test, the same in every run)
        drawn = _DRAWN.sub(lambda match, dice=dice: _draw(match, dice), written.replace("⏎", "\n"))
        secrets = tuple(_MARKED.findall(drawn))
        yield Specimen(group.strip(), line, _MARKED.sub(r"\1", drawn), secrets)


def _draw(match: re.Match[str], dice: random.Random) -> str:
    return "".join(dice.choices(_ALPHABETS[match.group(2)], k=int(match.group(1))))


def _pieces(secret: str) -> Iterator[str]:
    size = min(_WINDOW, len(secret))
    return (secret[at : at + size] for at in range(len(secret) - size + 1))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.redaction", description="Measure how well secrets are masked."
    )
    parser.add_argument("--part", choices=PARTS, default="all", help="which texts to measure")
    parser.add_argument("--misses", action="store_true", help="print what was missed and what was changed")
    args = parser.parse_args(arguments)
    from failwell.errors.redact import redact_text

    score = measure(redact_text, args.part)
    total = score.caught + len(score.missed)
    print(f"secrets    {score.caught:>4} of {total} masked      recall    {score.recall:7.2%}")
    print(
        f"innocents  {len(score.changed):>4} of {score.innocent} changed     precision {score.precision:7.2%}"
    )
    if args.misses:
        for each in score.missed:
            print(f"missed   {each.group}: {each.text!r}\n      →  {redact_text(each.text)!r}")
        for each in score.changed:
            print(f"changed  {each.group}: {each.text!r}\n      →  {redact_text(each.text)!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
