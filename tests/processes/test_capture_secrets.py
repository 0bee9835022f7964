"""What a process prints is kept without the secrets it was given, in whatever form it prints them."""

import base64
import html
import json
import re
from pathlib import Path
from urllib.parse import quote

from failwell.processes.capture import Capture, OutputSecrets

SECRET = "p@ss/wörd & <x9>"


def test_a_secret_is_taken_out_in_every_encoding_wherever_chunks_end(tmp_path: Path) -> None:
    printed = [
        SECRET,
        json.dumps(SECRET),
        json.dumps(json.dumps(SECRET)),
        quote(SECRET, safe=""),
        re.sub("%..", lambda match: match.group().lower(), quote(SECRET, safe="")),
        html.escape(SECRET),
        repr(SECRET.encode()),
        SECRET.encode().hex(),
        *(base64.b64encode(before + SECRET.encode()).decode() for before in (b"", b"u", b"us")),
    ]
    secrets = OutputSecrets()
    secrets.add(SECRET)
    for size in (1, 7, 1_000):
        capture = Capture(str(tmp_path / "spill"), secrets=secrets)
        data = "\n".join(f"begin {text} end" for text in printed).encode()

        for at in range(0, len(data), size):
            capture.take(data[at : at + size])
        capture.close()

        lines = capture.text().splitlines()
        assert len(lines) == len(printed)
        assert all("[redacted]" in line and "ss" not in line and "QHNz" not in line for line in lines), lines
