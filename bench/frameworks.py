"""What a plugin adds to a model call of an agent that succeeds, in microseconds; to a tool call or a task likewise.

Every framework runs on a stub of its own model, in this process: without anything, with a hook of the framework that does
nothing, and with the plugin, in turns. What the framework itself takes for calling a hook is shown apart. The figures
are medians of processor time, of the difference between neighbouring runs, because other work on the machine slows both; the
number of functions that a plugin calls does not depend on it. The aim is 50 µs. A framework that is not installed is left out: run this with the Python of `.sdks/frameworks` or `.sdks/engines` for the others.
"""

import asyncio
import gc
import logging
import sys
import time
from collections.abc import Callable, Sequence
from cProfile import Profile
from importlib.metadata import PackageNotFoundError, version
from inspect import isawaitable
from pathlib import Path
from statistics import median

# In place of this folder, where a module may have the name of a framework.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import _engine_runs as engines
from bench import _framework_runs as frameworks
from bench._framework_runs import Run, Runs

SECONDS = 3.0
AIM = 50.0
COUNTED = 20

FRAMEWORKS: dict[str, tuple[str, Callable[[], Runs]]] = {
    "Pydantic AI": ("pydantic-ai-slim", frameworks.pydantic_ai),
    "OpenAI Agents": ("openai-agents", frameworks.openai_agents),
    "LangChain": ("langchain", frameworks.langchain),
    "LangGraph": ("langgraph", frameworks.langgraph),
    "Google ADK": ("google-adk", frameworks.google_adk),
    "Claude Agent SDK": ("claude-agent-sdk", frameworks.claude_agent_sdk),
    "LiteLLM": ("litellm", frameworks.litellm),
    "instructor": ("instructor", frameworks.instructor),
    "FastMCP": ("fastmcp", engines.fastmcp),
    "MCP server": ("mcp", engines.mcp),
    "Celery": ("celery", engines.celery),
    "Prefect": ("prefect", engines.prefect),
    "DBOS": ("dbos", engines.dbos),
}
"""Framework → its distribution, and what makes the runs."""


async def measure(runs: Runs) -> tuple[float, float, float]:
    """Microseconds of processor time: of the plain run, and what the empty hook and the plugin add."""
    rows: list[list[float]] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        gc.collect()
        gc.disable()
        for _ in range(40):
            row: list[float] = []
            for run in runs:
                start = time.thread_time()
                result = run()
                if isawaitable(result):
                    await result
                row.append((time.thread_time() - start) * 1e6)
            rows.append(row)
        gc.enable()
    plain = median(row[0] for row in rows)
    return plain, median(row[1] - row[0] for row in rows), median(row[2] - row[1] for row in rows)


async def functions(run: Run) -> float:
    """Functions that one run calls, which does not depend on the load of the machine."""
    profile = Profile()
    for place in range(2 * COUNTED):
        if place == COUNTED:
            profile.enable()
        result = run()
        if isawaitable(result):
            await result
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats()) / COUNTED


async def measure_all(runs: Runs) -> tuple[float, float, float, float]:
    """The times, and how many functions the plugin calls."""
    return *await measure(runs), await functions(runs.plugin) - await functions(runs.empty)


def main(names: Sequence[str]) -> None:
    logging.disable(logging.CRITICAL)
    print(
        "framework                 release       plain µs   empty hook adds µs   plugin adds µs   of the plain run   functions"
    )
    for name, (package, make) in FRAMEWORKS.items():
        try:
            release = version(package)
            runs = make() if not names or name in names else None
        except (PackageNotFoundError, ModuleNotFoundError):
            # It is not here, or in a release without what the plugin needs.
            continue
        if runs is None:
            continue
        plain, empty, plugin, calls = asyncio.run(measure_all(runs))
        mark = "" if plugin <= AIM else f"  over {AIM:g}"
        share = f"{plugin / plain:.1%}" if plain > AIM else ""
        print(
            f"{name:25} {release:10} {plain:11.0f} {empty:20.1f} {plugin:16.1f} {share:>18} {calls:11.0f}{mark}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
