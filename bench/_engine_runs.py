"""One task or tool call of each engine and server: plain, with a hook that does nothing, with the plugin."""

from importlib import import_module
from typing import Any

from bench._framework_runs import Run, Runs


def work() -> str:
    """The task."""
    return "done"


def fastmcp() -> Runs:
    from failwell.integrations.fastmcp import reliability

    library: Any = import_module("fastmcp")
    base: Any = import_module("fastmcp.server.middleware").Middleware
    return Runs(
        *(
            _session(library.FastMCP("lab", middleware=hooks), library.Client)
            for hooks in ([], [base()], [reliability()])
        )
    )


def mcp() -> Runs:
    from failwell.integrations.mcp import reliability

    server: Any = import_module("mcp.server.mcpserver").MCPServer
    client: Any = import_module("mcp.client").Client
    plain = _session(server("lab", log_level="CRITICAL"), client)
    return Runs(plain, plain, _session(reliability(server("lab", log_level="CRITICAL")), client))


def _session(server: Any, client: Any) -> Run:
    """Call the tool in one session, which is opened with the first call."""
    server.tool()(work)
    sessions: list[Any] = []

    async def run() -> None:
        if not sessions:
            sessions.append(await client(server).__aenter__())
        await sessions[0].call_tool("work", {})

    return run


def celery() -> Runs:
    from failwell.integrations.celery import reliability

    library: Any = import_module("celery")

    def app() -> Any:
        return library.Celery("lab", broker="memory://", set_as_current=False)

    def task(application: Any, **options: Any) -> Run:
        return application.task(name="work", shared=False, **options)(work).apply

    return Runs(task(app()), task(app(), autoretry_for=(ValueError,)), task(reliability(app())))


def prefect() -> Runs:
    from failwell.integrations.prefect import reliability

    library: Any = import_module("prefect")
    plain, reliable = library.task(work), reliability(library.task)(work)
    # What the engine calls; the engine takes milliseconds.
    return Runs(plain.fn, plain.fn, reliable.fn)


def dbos() -> Runs:
    from failwell.integrations.dbos import reliability

    engine: Any = import_module("dbos").DBOS
    plain, reliable = engine.step()(work), reliability(engine.step())(work)
    return Runs(plain, plain, reliable)
