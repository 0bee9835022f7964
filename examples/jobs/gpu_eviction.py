"""Two models live on one card; a third, given a long context, does not fit: one of them makes room.

The third model is small and was measured with short contexts, so its long job is let in, runs out of
the card's memory, and succeeds on its second attempt, after the queue has evicted one idle model.
Needs a CUDA card, torch and nvidia-ml-py: `python examples/jobs/gpu_eviction.py`.
"""

import asyncio
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from failwell.jobs import Job, Manifest, Resources, Runtime

HERE = Path(__file__).resolve().parent


def card() -> int | None:
    """The size of the card in GiB, if there is one."""
    try:
        pynvml: Any = import_module("pynvml")
        pynvml.nvmlInit()
    except (ImportError, OSError, RuntimeError):
        return None
    except Exception as error:
        # NVML's own errors share no base with anything else; without a driver there is no card.
        if "nvml" in type(error).__name__.lower():
            return None
        raise
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).total / 2**30)


async def main() -> int:
    size = card()
    if size is None:
        print("this example needs a CUDA card, torch and nvidia-ml-py", file=sys.stderr)
        return 2
    large, small, context = size * 2 // 5, size // 16, size * 9 // 25
    print(f"card: {size} GiB; models of {large}, {large} and {small} GiB; a context of {context} GiB")
    manifest = Manifest(
        name="model",
        object="gpu_models:Model",
        path=(str(HERE),),
        resources=Resources(gpu=True, accelerators=("cuda",)),
        inherit=("CUDA*", "LD_LIBRARY_PATH", "NVIDIA*"),
        directory=str(HERE),
    )
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(Path(folder) / "state", registry=Path(folder) / "registry") as jobs:
            watching = asyncio.create_task(watch(jobs.events(live=False)))
            for name, gib in (("small", small), ("first", large), ("second", large)):
                jobs.register(manifest, instance=name, config={"gib": gib})
                show(name, await jobs.wait((await jobs.submit(name, {"prompt": f"hello {name}"})).id))
            long = await jobs.submit("small", {"prompt": "a long story", "context_gib": context})
            done = await jobs.wait(long.id)
            await asyncio.sleep(0)
            show("small", done)
            watching.cancel()
    return 0 if done.attempt == 2 and done.error is None else 1


def show(name: str, done: Job) -> None:
    told = done.result if done.error is None else f"{done.error.kind}: {done.error.message}"
    print(f"{name}: {done.state} on attempt {done.attempt}: {told}")


async def watch(events: Any) -> None:
    """Tell what the queue does about memory."""
    async for event in events:
        if event.type in ("retrying", "blocked", "worker:evicted") or event.data.get("attempt"):
            print(f"  {event.type}: {dict(event.data)}")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
