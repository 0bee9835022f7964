"""Tools of MCP servers, by the official client: over stdio for a program, over HTTP for an address.

What a server says about its tools and their failures is evidence: names and schemas are offered to the model, a hint decides
whether a call is repeated and approved only where the file does not, and error texts are withheld as those of any other tool.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.adapters.revival import revive
from failwell.agents.credentials import mask_headers, mask_variables
from failwell.agents.tools.mcp_transport import TOO_LONG, bounded_client, server_streams
from failwell.agents.tools.tool import Effect, Tool, ToolContext
from failwell.calls.suppress import catch_async
from failwell.delivery.tool_result import from_tool_result
from failwell.errors.faults import ToolTerminal
from failwell.errors.foreign_objects import safe_getattr
from failwell.errors.missing_extra import need
from failwell.processes.run_processes import RunProcesses
from failwell.processes.script import unbroken
from failwell.store.effects.effect import EffectPolicy, effect_policy
from failwell.store.private_files import append_private

if TYPE_CHECKING:
    from asyncio import Event, Future, Task

_MOST_NODES = 20_000
_METASCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_OPEN: Mapping[str, Any] = {"type": "object"}


def safe_schema(schema: object) -> Mapping[str, Any]:
    """The schema, or one that accepts every object. The server checks the arguments of its tools in any case.

    A reference to another address could be fetched, and references in a circle or to many branches could be followed
    for ever.
    """
    if not isinstance(schema, Mapping):
        return _OPEN
    root = cast("Mapping[str, Any]", schema)
    try:
        return root if _size(root, root, {}) <= _MOST_NODES else _OPEN
    except (_Unsafe, RecursionError):
        return _OPEN


class _Unsafe(Exception):
    """The schema refers to itself or to another place."""


def _size(node: object, root: Mapping[str, Any], sizes: dict[int, int | None]) -> int:
    """The nodes below `node` with every reference written out. A shared part is counted each time and visited once."""
    children = _children(node, root)
    if children is None:
        return 1
    place = id(node)
    if place in sizes:
        size = sizes[place]
        if size is None:
            raise _Unsafe
        return size
    sizes[place] = None
    total = 1 + sum(_size(child, root, sizes) for child in children)
    sizes[place] = total
    return total


def _children(node: object, root: Mapping[str, Any]) -> list[object] | None:
    if isinstance(node, list):
        return cast("list[object]", node)
    if not isinstance(node, Mapping):
        return None
    mapping = cast("Mapping[str, object]", node)
    _check_address(mapping)
    return [
        _target(value, root) if key in _REFERENCES and isinstance(value, str) else value
        for key, value in mapping.items()
    ]


def _check_address(node: Mapping[str, object]) -> None:
    """An address of its own changes what references mean, unless it only names the version of JSON Schema."""
    dialect = node.get("$schema")
    if isinstance(dialect, str) and not dialect.startswith(_METASCHEMAS):
        raise _Unsafe
    if isinstance(node.get("$id"), str) and any(name in str(node) for name in _REFERENCES):
        raise _Unsafe


def _target(reference: str, root: Mapping[str, Any]) -> object:
    """The part of the schema that a reference such as `#/$defs/order` names."""
    if not reference.startswith("#/"):
        raise _Unsafe
    place: Any = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, Mapping) or name not in place:
            raise _Unsafe
        place = cast("Mapping[str, Any]", place)[name]
    return place


_EFFECTS: dict[EffectPolicy, Effect] = {"none": "read", "repeat": "idempotent", "claim": "once"}
_START = 30.0
"""Seconds that a server may take to start and to list its tools."""
_SECONDS = 60.0
_MOST_TOOLS = 500
_MOST_PAGES = 100
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
"""Letters of names that models refuse, and that could break out of the marks around a result."""


class McpServers:
    """The MCP servers of one run, each started when it is first needed.

    Args:
        folder: A private folder, for what the servers print.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, _Server] = {}
        self._processes: RunProcesses | None = None

    async def tools(self, name: str, settings: Mapping[str, Any], directory: Path) -> dict[str, Tool]:
        """The tools of a server, as `server__tool`.

        Raises:
            ToolTerminal: it does not start, or does not answer.
        """
        key = f"{name} {directory} {sorted(settings.items())}"
        server = self._open.get(key)
        if server is None:
            server = self._open[key] = _Server(name, settings, directory, self)
        return await server.tools()

    @property
    def folder(self) -> Path:
        """Where the servers' output goes."""
        return self._folder

    @property
    def processes(self) -> RunProcesses:
        """The servers that run as processes; their guardian starts with the first one."""
        if self._processes is None:
            self._processes = RunProcesses(self._folder)
        return self._processes

    async def close(self) -> None:
        """End every server."""
        servers, self._open = self._open, {}
        for server in servers.values():
            await server.close()
        processes, self._processes = self._processes, None
        if processes is not None:
            await unbroken(processes.close(0.0))


class _Server:
    """One server. A task of its own opens and closes the connection, as the client demands."""

    def __init__(self, name: str, settings: Mapping[str, Any], directory: Path, home: McpServers) -> None:
        self._name = name
        self._settings = settings
        self._directory = directory
        self._home = home
        self._owner: Task[None] | None = None
        self._stop: Event | None = None
        self._ready: Future[Any] | None = None
        self._tools: dict[str, Tool] | None = None

    async def tools(self) -> dict[str, Tool]:
        client = await self._client()
        tools = self._tools
        if tools is None:
            tools, error = await catch_async(self._listed, client)
            if error is not None:
                raise self._unavailable() from error
            self._tools = tools
        return tools

    async def close(self) -> None:
        from asyncio import wait

        if self._owner is not None and self._stop is not None:
            self._stop.set()
            if self._ready is not None and not self._ready.done():
                # It is still waiting for the first answer of the server, and not for us.
                self._owner.cancel()
            await wait([self._owner])

    async def _client(self) -> Any:
        import asyncio

        if self._ready is None:
            self._stop = asyncio.Event()
            self._ready = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(self._own(self._ready, self._stop))
        client, error = await catch_async(self._started, self._ready)
        if error is not None:
            raise self._unavailable() from error
        return client

    async def _started(self, ready: "Future[Any]") -> Any:
        import asyncio

        async with asyncio.timeout(_START):
            return await asyncio.shield(ready)

    async def _own(self, ready: "Future[Any]", stop: "Event") -> None:
        _, error = await catch_async(self._serve, ready, stop)
        if error is not None and not ready.done():
            # Whoever waits for the server gets it. After that, its calls fail.
            ready.set_exception(error)

    async def _serve(self, ready: "Future[Any]", stop: "Event") -> None:
        file = self._home.folder / f"mcp-{_file_name(self._name)}.log"
        with os.fdopen(append_private(file), "w") as log:
            async with self._connect(log) as client:
                ready.set_result(client)
                await stop.wait()

    def _connect(self, log: Any) -> Any:
        """A client that is not connected yet."""
        mcp: Any = need("mcp")
        settings = self._settings
        headers: dict[str, str] = dict(settings.get("headers") or {})
        env: dict[str, str] = dict(settings.get("env") or {})
        # A server may send back what it was given.
        mask_headers(headers)
        mask_variables(env)
        if settings.get("url"):
            http: Any = need("mcp.client.streamable_http")
            client = bounded_client(headers, _SECONDS)
            return mcp.Client(http.streamable_http_client(settings["url"], http_client=client))
        # What a server prints is foreign text, and goes to a file instead of the terminal.
        return mcp.Client(
            server_streams(
                [settings["command"], *(settings.get("args") or ())],
                env=env,
                directory=self._directory,
                log=log,
                processes=self._home.processes,
            )
        )

    async def _listed(self, client: Any) -> dict[str, Tool]:
        import asyncio

        async with asyncio.timeout(_START):
            return await self._list(client)

    async def _list(self, client: Any) -> dict[str, Tool]:
        wanted: list[str] = list(self._settings.get("tools") or ["*"])
        tools: dict[str, Tool] = {}
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor) if cursor else await client.list_tools()
            for described in page.tools:
                if "*" in wanted or described.name in wanted:
                    tool = self._tool(client, described)
                    tools.setdefault(tool.name, tool)
            cursor = safe_getattr(page, "next_cursor", "nextCursor")
            if not cursor or len(tools) >= _MOST_TOOLS:
                break
        return tools

    def _tool(self, client: Any, described: Any) -> Tool:
        policy = effect_policy(described)
        remote: str = described.name

        async def run(arguments: Mapping[str, Any], _context: ToolContext) -> Any:
            return _value(await _call(client, remote, arguments))

        milliseconds: float | None = self._settings.get("timeout")
        return Tool(
            name=_UNFIT.sub("_", f"{self._name}__{remote}")[:64],
            description=str(safe_getattr(described, "description") or "")[:4_000],
            parameters=safe_schema(safe_getattr(described, "input_schema", "inputSchema")),
            run=run,
            effect=_EFFECTS[policy],
            approval=self._settings.get("approval") or ("never" if policy == "none" else "ask"),
            timeout=_SECONDS if milliseconds is None else milliseconds / 1000,
        )

    def _unavailable(self) -> ToolTerminal:
        return ToolTerminal(
            kind="tool.unavailable",
            message=f"the MCP server `{self._name}` did not start; what it printed is in the folder of the run",
            details={"tool": self._name, "capability": "MCP server"},
            caller_facing=True,
        )


async def _call(client: Any, tool: str, arguments: Mapping[str, Any]) -> Any:
    """The result of a tool, not checked against the schema of the server: a pattern in one can take for ever."""
    types: Any = need("mcp.types")
    parameters = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
    request = types.CallToolRequest(params=parameters)
    result, error = await catch_async(client.session.send_request, request, types.CallToolResult)
    if error is None:
        return result
    if safe_getattr(safe_getattr(error, "error"), "code") == TOO_LONG:
        raise ToolTerminal(
            kind="tool.failed", message="the result is too large", details={"reason": "too_large"}
        ) from error
    raise error


def _value(result: Any) -> Any:
    """The value of a result; its failure is raised as ours."""
    wire: dict[str, Any] = result.model_dump(mode="json", by_alias=True)
    report = from_tool_result(wire)
    if report is not None:
        raise revive(report)
    structured: object = wire.get("structuredContent")
    if structured is not None:
        return structured
    blocks = cast("list[dict[str, Any]]", wire.get("content") or [])
    texts = [str(block["text"]) for block in blocks if block.get("type") == "text"]
    return "\n".join(texts) if len(texts) == len(blocks) else blocks


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name[:60])
