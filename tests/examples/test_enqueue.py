"""The newcomer's path of `examples/enqueue`: two files and four commands, from nothing to a result in a web handler."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "enqueue"
AT_MOST = 60.0
"""Seconds. It takes about five on a free machine, most of them for the installation."""


def _commands() -> list[str]:
    return re.findall(r"^\$ (.+)$", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


class Newcomer:
    """An empty folder and an empty environment, in which the commands of the page are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "env" / "bin"
        self.environ = {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
        }
        self.output = folder / "output.txt"

    def install(self, wheel: Path) -> None:
        """Install failwell with pip. The other packages of the command come from this test's own environment."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.bin.parent], check=True)
        packages = self.bin.parent / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        others = [entry for entry in sys.path if entry.endswith("site-packages")]
        (packages / "others.pth").write_text("\n".join(others))
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", self.bin / "python", "install", "--quiet", "--no-index",
             "--no-deps", "--disable-pip-version-check", wheel],
            check=True,
        )  # fmt: skip
        uvicorn = self.bin / "uvicorn"
        uvicorn.write_text(f"#!{self.bin / 'python'}\nfrom uvicorn import main\nmain()\n")
        uvicorn.chmod(0o755)

    @contextmanager
    def running(self, command: str) -> Generator["subprocess.Popen[bytes]"]:
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                shlex.split(command), cwd=self.folder, env=self.environ, stdout=output, stderr=output
            )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def _a_wheel(folder: Path) -> Path:
    wheels = pytest.importorskip("hatchling.builders.wheel", reason="hatchling comes with `make check`")
    [built] = wheels.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(built)


def _answer(get: Callable[[], httpx.Response], server: "subprocess.Popen[bytes]") -> httpx.Response:
    """The first answer of a server that is starting."""
    while True:
        try:
            return get()
        except httpx.TransportError:
            assert server.poll() is None


@pytest.mark.slow
def test_two_files_and_four_commands_lead_from_nothing_to_a_result_in_a_web_handler(
    tmp_path: Path,
) -> None:
    wheel = _a_wheel(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    install, host, web, ask = _commands()
    assert install.startswith("pip install 'failwell[engine]' ")
    url = shlex.split(ask)[1].replace("localhost:8000", f"http://127.0.0.1:{port}")
    newcomer = Newcomer(tmp_path)

    began = monotonic()
    newcomer.install(wheel)
    files = [path for path in EXAMPLE.iterdir() if path.suffix == ".py"]
    for file in files:
        shutil.copy(file, tmp_path)
    with (
        newcomer.running(host),
        newcomer.running(f"{web} --port {port}") as server,
        httpx.Client(timeout=60) as caller,
    ):
        # The worker may still be registering its capability.
        while (reply := _answer(lambda: caller.get(url), server)).status_code != 200:
            assert reply.json()["kind"] == "worker.not_loaded", newcomer.output.read_text()
        seconds = monotonic() - began
        base = f"http://127.0.0.1:{port}"
        refused = caller.get(f"{base}/words", params={"text": " "})
        job = caller.post(f"{base}/jobs", params={"text": "a b"}).json()["job"]
        status = caller.get(f"{base}/jobs/{job}").json()["status"]
        missing = caller.get(f"{base}/jobs/none")

    assert len(files) == 2
    assert reply.json() == {"to": 2, "be": 2, "or": 1}
    assert (refused.status_code, refused.json()["detail"]) == (422, "the text is empty")
    assert status in ("pending", "running", "completed")
    assert missing.json()["kind"] == "session.no_snapshot"
    assert seconds < AT_MOST, f"it took {seconds:.1f} s"
