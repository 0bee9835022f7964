"""A codec that encrypts what the server stores, and a connection with certificates, through the commands."""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from shutil import which
from threading import Thread

import pytest

pytest.importorskip("temporalio")

from failwell.temporal import ConnectionOptions
from tests.cli.running import Done, failwell
from tests.temporal.worker_process import worker_process
from tests.temporal_server import server, task_queue

ROOT = Path(__file__).resolve().parents[2]
CODEC = "tests.temporal.letter_codec:codec"


def _jobs(queue: str, store: Path, *arguments: str, address: str = "", codec: str = "") -> Done:
    options = ("--engine", "temporal", "--address", address or server().address, "--task-queue", queue)
    env = {"FAILWELL_TEMPORAL_CODEC": codec}
    return failwell("jobs", *arguments, *options, "--store", str(store), env=env)


@pytest.mark.slow
def test_with_a_codec_the_server_reads_neither_arguments_nor_results_nor_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = task_queue()
    monkeypatch.setenv("FAILWELL_TEMPORAL_CODEC", CODEC)
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    with worker_process(server().address, queue, tmp_path / "store", path=ROOT):
        words = ("text=marzipan", "--wait", "--key")
        done = _jobs(queue, tmp_path / "own", "submit", "shout", *words, "one", codec=CODEC)
        failed = _jobs(queue, tmp_path / "own", "submit", "refuse", *words, "two", codec=CODEC)
        without = _jobs(queue, tmp_path / "own", "show", "one")

    async def stored(job: str) -> str:
        client = await ConnectionOptions(address=server().address).connect()
        history = await client.get_workflow_handle(f"failwell-job/{job}").fetch_history()
        return history.to_json()

    assert (done.code, done.out) == (0, '"MARZIPAN"\n'), done.err
    assert (without.code, failed.code) == (2, 2)
    assert "use the `--codec` of its worker" in without.err
    assert "validation.input_invalid" in failed.err
    for job in ("one", "two"):
        text = asyncio.run(stored(job))
        assert "letters" in _decoded(text)
        assert not any(word in _decoded(text) for word in ("marzipan", "MARZIPAN", "cannot accept"))


def _decoded(text: str) -> str:
    """A history as JSON, with its payloads, which are base64 there, as text."""
    from base64 import b64decode
    from re import findall

    parts = [part for part in findall(r'"([A-Za-z0-9+/]{8,}={0,2})"', text) if len(part) % 4 == 0]
    return text + "".join(b64decode(part).decode(errors="replace") for part in parts)


@pytest.mark.slow
@pytest.mark.skipif(which("openssl") is None, reason="openssl makes the certificates")
def test_certificates_are_used_and_a_client_without_one_is_refused(tmp_path: Path) -> None:
    _make_certificates(tmp_path)
    files = ("--tls-ca", str(tmp_path / "ca.pem"), "--tls-server-name", "temporal.test")
    own = ("--tls-cert", str(tmp_path / "client.pem"), "--tls-key", str(tmp_path / "client.key"))

    with _tls_proxy(tmp_path, server().address) as address:
        with_own = _jobs(task_queue(), tmp_path / "own", "list", *files, *own, address=address)
        without = _jobs(task_queue(), tmp_path / "own", "list", *files, address=address)
        unknown = _jobs(task_queue(), tmp_path / "own", "list", "--tls", *own, address=address)

    assert (with_own.code, with_own.err) == (0, "no jobs are recorded for this task queue\n")
    for refused in (without, unknown):
        assert refused.code == 1
        assert f"no Temporal server answers at {address}" in refused.err


def _make_certificates(folder: Path) -> None:
    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority"),
        *("-keyout", "ca.key", "-out", "ca.pem"),
    )
    (folder / "names").write_text("subjectAltName=DNS:temporal.test\n")
    for name in ("server", "client"):
        openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=temporal.test"),
            *("-keyout", f"{name}.key", "-out", f"{name}.csr"),
        )
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-days", "2", "-extfile", "names", "-out", f"{name}.pem"),
        )


@contextmanager
def _tls_proxy(folder: Path, address: str) -> Generator[str]:
    """A proxy that demands a certificate of each client, and passes on what it decrypts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    host, _, port = address.partition(":")
    started: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Queue()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except (ConnectionError, ssl.SSLError):
            return
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, ahead = await asyncio.open_connection(host, int(port))
        await asyncio.gather(copy(reader, ahead), copy(behind, writer))

    async def listen() -> None:
        end = asyncio.Event()
        async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as listening:
            started.put((asyncio.get_running_loop(), end, listening.sockets[0].getsockname()[1]))
            await end.wait()

    thread = Thread(target=asyncio.run, args=[listen()])
    thread.start()
    loop, end, own_port = started.get(timeout=10)
    try:
        yield f"127.0.0.1:{own_port}"
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(10)
