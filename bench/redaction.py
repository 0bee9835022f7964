"""What it costs to search a text for secrets, by its length and by how many secrets are known.

python bench/redaction.py
"""

import os
import random
import string
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

SENTENCES = {
    "a sentence of 50 characters": "The server refused the connection after 3 attempts",
    "a provider's reply of 140 characters": (
        "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-4o-mini-2024-07-18 "
        "in organization on tokens per min', 'type': 'tokens'}}"
    ),
    "a traceback of 2,000 characters": (
        '  File "/app/.venv/lib/python3.12/site-packages/anthropic/_base_client.py", line 1037, in _request\n'
        "    raise self._make_status_error_from_response(err.response) from None\n"
    )
    * 12,
}


def main() -> None:
    from bench._measure import microseconds
    from failwell.errors import redact
    from failwell.errors.masking.shapes import mask_shapes
    from tools.redaction import measure

    # The environment of this machine may hold secrets, and is no part of what is measured.
    os.environ.clear()
    dice = random.Random(1)
    alphabet = string.ascii_letters + string.digits
    print(f"{'search for secrets, µs':<44}{'known: 0':>10}{'10':>8}{'100':>8}{'1,000':>8}")
    spent: dict[str, list[float]] = {name: [] for name in SENTENCES}
    known = 0
    for most in (0, 10, 100, 1_000):
        while known < most:
            redact.register_secret("".join(dice.choices(alphabet, k=40)))
            known += 1
        redact.refresh()
        calls = {
            name: lambda text=text: mask_shapes(redact.masked_known(text), redact.MARK)
            for name, text in SENTENCES.items()
        }
        for name, times in microseconds(calls, rounds=9, number=200).items():
            spent[name].append(min(times))
    for name, times in spent.items():
        print(
            f"  {name:<42}" + "".join(f"{time:>{10 if at == 0 else 8}.1f}" for at, time in enumerate(times))
        )
    score = measure(redact.redact_text)
    print(f"  recall {score.recall:.2%}, precision {score.precision:.2%} on the texts in tests/errors/corpus")


if __name__ == "__main__":
    main()
