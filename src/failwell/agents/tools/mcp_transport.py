"""The connections to MCP servers: through the pipes of a program, or over HTTP, with a limit on what one reply may hold."""

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failwell.errors.faults import ToolTerminal
from failwell.errors.missing_extra import need
from failwell.processes import tree
from failwell.processes.run_processes import RunProcesses
from failwell.processes.script import unbroken

if TYPE_CHECKING:
    from asyncio import StreamReader
    from asyncio.subprocess import Process

LONGEST = 8 * 1024 * 1024
"""Bytes of one message."""
TOO_LONG = -32099
"""The code of the error that stands in for a message that is too long."""
_GRACE = 2.0
"""Seconds that a server may take to end after its input has ended."""
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "TERM")
_ID = re.compile(rb'"id"\s{0,9}:\s{0,9}(\d{1,15}|"[^"\\]{1,100}")')
_SEARCHED = 1_024


@asynccontextmanager
async def server_streams(
    call: Sequence[str], *, env: Mapping[str, str], directory: Path, log: Any, processes: RunProcesses
) -> AsyncGenerator[tuple[Any, Any]]:
    """The streams of messages from and to a server that is started now and ended with the block.

    Args:
        call: The program and its arguments.
        env: What it sees besides a few variables of ours.
        directory: Where it is started.
        log: The file for what it prints as an error.
        processes: The processes of the run, whose guardian ends it if this process is killed.

    Raises:
        OSError: it could not be started.
    """
    import asyncio
    from asyncio.subprocess import PIPE

    anyio: Any = need("anyio")
    mark = processes.next_name()
    process = await asyncio.create_subprocess_exec(
        *call,
        stdin=PIPE,
        stdout=PIPE,
        stderr=log,
        cwd=directory,
        env=_environment(env, mark),
        start_new_session=True,
        limit=LONGEST,
    )
    processes.watch_group(process.pid)
    to_us, from_server = anyio.create_memory_object_stream(0)
    to_server, from_us = anyio.create_memory_object_stream(0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, to_us)
            tasks.start_soon(_write, process, from_us, to_us)
            try:
                yield from_server, to_server
            finally:
                tasks.cancel_scope.cancel()
    finally:
        await unbroken(_end(process, mark))
        processes.forget_group(process.pid)
        for stream in (to_us, from_server, to_server, from_us):
            stream.close()


async def _read(process: "Process", to_us: Any) -> None:
    """Pass on what the server says, until it says nothing more."""
    message: Any = need("mcp.shared.message")
    adapter: Any = need("mcp.types").jsonrpc_message_adapter
    assert process.stdout is not None
    async with to_us:
        while (line := await _line(process.stdout)) is not None:
            if not line.strip():
                continue
            try:
                parsed = adapter.validate_json(line, by_name=False)
            except ValueError as error:
                await to_us.send(error)
            else:
                await to_us.send(message.SessionMessage(parsed))


async def _line(stream: "StreamReader") -> bytes | None:
    """The next message, or an error in place of one that is too long; `None` at the end."""
    from asyncio import IncompleteReadError, LimitOverrunError

    head = b""
    while True:
        try:
            line = await stream.readuntil(b"\n")
        except IncompleteReadError:
            return None
        except LimitOverrunError as error:
            part = await stream.readexactly(max(1, error.consumed))
            head = head or part[:_SEARCHED]
            continue
        if not head:
            return line
        number = _ID.search(head) or _ID.search(line[-_SEARCHED:])
        if number is None:
            # Nobody knows whose answer it is, so everybody who waits learns that the connection has ended.
            return None
        failure = {"code": TOO_LONG, "message": "the result is too long"}
        return b'{"jsonrpc":"2.0","id":' + number[1] + b',"error":' + dumps(failure).encode() + b"}"


async def _write(process: "Process", from_us: Any, to_us: Any) -> None:
    assert process.stdin is not None
    try:
        async with from_us:
            async for item in from_us:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode("utf-8", "replace") + b"\n")
                await process.stdin.drain()
    except OSError:
        # The server reads no more. Whoever waits for an answer learns that the connection has ended.
        await to_us.aclose()


async def _end(process: "Process", mark: str) -> None:
    """End the server: its input ends, and what is left of it and of what it started is stopped."""
    import asyncio

    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_GRACE):
            await process.wait()
    except TimeoutError:
        # It ignores the end of its input.
        pass
    await tree.stop(mark, groups=[process.pid], grace=0.0 if process.returncode is not None else _GRACE)
    await process.wait()


def _environment(env: Mapping[str, str], mark: str) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    outer = os.environ.get(tree.MARKER)
    return {**inherited, **env, tree.MARKER: f"{outer}:{mark}" if outer else mark}


def bounded_client(headers: Mapping[str, str], timeout: float) -> Any:
    """A client whose replies are cut off beyond the limit of one message. Redirects are not followed."""
    httpx: Any = need("httpx2")

    class BoundedStream(httpx.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                if size > LONGEST:
                    raise ToolTerminal(
                        kind="tool.failed", message="the result is too large", details={"reason": "too_large"}
                    )
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def limit(response: Any) -> None:
        response.stream = BoundedStream(response.stream)

    return httpx.AsyncClient(headers=dict(headers), timeout=timeout, event_hooks={"response": [limit]})
