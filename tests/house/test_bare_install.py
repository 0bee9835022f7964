"""`pip install failwell` installs nothing else, and what needs the standard library alone works then."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ("retries", "observability", "errors-from-scripts", "providers", "secrets")
"""Guides whose examples need no more than the library."""
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

HTTP = """
import asyncio, json
from failwell.http import FailwellMiddleware

async def app(scope, receive, send):
    raise ConnectionRefusedError(111, "Connection refused")

async def ask():
    sent = []
    async def send(message):
        sent.append(message)
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    try:
        await FailwellMiddleware(app)(scope, receive, send)
    except ConnectionRefusedError:
        pass
    print(sent[0]["status"], json.loads(sent[1]["body"])["kind"])

asyncio.run(ask())
"""
CHAIN = """
import failwell

def broken():
    raise ConnectionRefusedError(111, "Connection refused")

chain = failwell.Chain(
    failwell.Entry(provider="a", model="m", call=broken, attempts=1),
    failwell.Entry(provider="b", model="m", call=lambda: "answer"),
)
print(chain.call())
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the built wheel and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    venv.create(folder / "env", with_pip=False)
    [wheel] = folder.glob("*.whl")
    programs = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(programs / "python"),
        "install",
        "-q",
        "--no-deps",
    ]
    subprocess.run([*command, "--no-index", str(wheel)], check=True, capture_output=True)
    return programs


def test_the_library_needs_nothing_else(bare: Path, tmp_path: Path) -> None:
    for name, program, printed in (("http", HTTP, "503 http.unavailable\n"), ("chain", CHAIN, "answer\n")):
        ran = subprocess.run(
            [bare / "python", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (ran.stdout, ran.returncode) == (printed, 0), (name, ran.stderr)
    for guide in GUIDES:
        code = "\n\n".join(FENCE.findall((ROOT / f"docs/guides/{guide}.md").read_text("utf-8")))
        ran = subprocess.run(
            [bare / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, (guide, ran.stderr)


def test_a_command_that_needs_the_engine_names_it_and_the_others_work(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(
        "workflow: {name: a, entry_point: b}\nagents: [{name: b, type: set, value: 1}]\n"
    )
    (tmp_path / "error.txt").write_text("TimeoutError: timed out\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [bare / "failwell", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "FAILWELL_STORE": str(tmp_path / "state")},
        )

    for works in (
        ("describe", "error.txt"),
        ("describe", "error.txt", "--color", "always"),
        ("explain", "provider.auth"),
        ("kinds",),
        ("helpers", "list"),
        ("schema", "report"),
        ("classify", "error.txt", "--help"),
        ("run", "--help"),
    ):
        done = run(*works)
        assert done.returncode == 0, (works, done.stderr)
    for needs in (("validate", "w.yaml"), ("run", "w.yaml"), ("show", "w.yaml")):
        done = run(*needs)
        assert done.returncode == 2, (needs, done.stderr)
        assert "pip install 'failwell[engine]'" in done.stderr, needs
        assert "Traceback" not in done.stderr, needs
