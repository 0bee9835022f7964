"""What an agent step adds to the call of its model: the turn, the workflow machine and the journal."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from failwell import Chain, ChainPolicy, workflows
from failwell.agents.models import Models, ModelSpec, usage_of
from failwell.agents.scripted_model import Script, ScriptedModel, ScriptedReply
from failwell.agents.tool_calls import Dispatcher
from failwell.agents.tools.tool import ToolContext
from failwell.agents.turn import Turn
from failwell.calls.cost import Prices

STEPS = 200
ROUNDS = 5
FILE = """\
workflow:
  name: w
  entry_point: first
  runtime: {default_model: "scripted:replies.yaml"}
agents:
  - {name: first, type: set, value: LIST, routes: [{to: all}]}
for_each:
  - name: all
    type: for_each
    source: first.output.items
    as: item
    max_concurrent: 1
    agent: {name: ask, prompt: "Say {{ item }}."}
    routes: [{to: $end}]
"""


async def bare() -> float:
    """Milliseconds of one call of the model by Pydantic AI alone."""
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    model = ScriptedModel(Script(replies=(ScriptedReply(text="hello"),) * STEPS), "ask")
    messages: list[Any] = [ModelRequest(parts=[UserPromptPart("Say 1.")])]
    began = time.perf_counter()
    for _ in range(STEPS):
        async with model_request_stream(model, messages) as stream:
            async for _ in stream:
                pass
            stream.get()
    return (time.perf_counter() - began) / STEPS * 1000


async def turns(folder: Path) -> float:
    """Milliseconds of one turn."""
    context = ToolContext(key="k", folder=folder, scratch=folder)
    entry = await Models().entry(
        ModelSpec(name="scripted:long.yaml"), agent="ask", folder=folder, settings={}
    )
    chain = Chain[Any](
        entry, policy=ChainPolicy(idempotent=True, usage=usage_of), prices=Prices(public=False)
    )
    began = time.perf_counter()
    for _ in range(STEPS):
        await Turn(chain, Dispatcher({}), context).run("Say 1.")
    return (time.perf_counter() - began) / STEPS * 1000


def steps(folder: Path) -> float:
    """Milliseconds of one agent step in a workflow, recorded in the journal."""
    began = time.perf_counter()
    result = workflows.run(folder / "w.yaml", store=folder / "state")
    spent = time.perf_counter() - began
    assert result.ok, result
    return spent / STEPS * 1000


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="failwell-agents-") as name:
        folder = Path(name)
        items = "{items: [" + ", ".join(str(number) for number in range(STEPS)) + "]}"
        (folder / "w.yaml").write_text(FILE.replace("type: set, value: LIST", f"type: set, values: {items}"))
        (folder / "replies.yaml").write_text("replies:\n  - {text: hello}\n")
        (folder / "long.yaml").write_text("replies:\n" + "  - {text: hello}\n" * STEPS)
        figures: dict[str, list[float]] = {"the model alone": [], "one turn": [], "one step": []}
        for _ in range(ROUNDS):
            figures["the model alone"].append(asyncio.run(bare()))
            figures["one turn"].append(asyncio.run(turns(folder)))
            figures["one step"].append(steps(folder))
        least = {name: min(samples) for name, samples in figures.items()}
        print("agents, ms (least of five rounds)")
        for what, value in least.items():
            print(f"  {what:<26}{value:>9.3f}")
        added = least["one step"] - least["the model alone"]
        print(f"  {'added by a step':<26}{added:>9.3f}   aim ≤ 2: {'met' if added <= 2 else 'missed'}")


if __name__ == "__main__":
    main()
