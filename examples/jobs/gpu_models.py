"""A capability that holds a large block of GPU memory, as a loaded model does."""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


def _torch() -> Any:
    """Loaded with the first job, in the worker's own environment."""
    return import_module("torch")


class Model:
    """Loads its weights with the first job and keeps them until it is told to let go."""

    version = "1.0"

    @dataclass
    class Config:
        """How large the model is."""

        gib: int = field(default=1, metadata={"minimum": 1})

    def initialize(self, config: "Model.Config") -> None:
        """Take the configuration; nothing is loaded yet."""
        self.config = config
        self.weights: Any = None

    def execute(self, prompt: str, context_gib: int = 0) -> dict[str, object]:
        """Answer, with a sum that only the real card can give; a long context takes memory of its own."""
        torch = _torch()
        if self.weights is None:
            self.weights = torch.ones(self.config.gib * 2**30 // 2, dtype=torch.bfloat16, device="cuda")
        context = torch.ones(max(1, context_gib * 2**30 // 2), dtype=torch.bfloat16, device="cuda")
        total = int(self.weights[: 2**20].sum(dtype=torch.float32).item() + context[:1].sum().item())
        free, _ = torch.cuda.mem_get_info()
        del context
        return {"prompt": prompt, "sum": total, "free_gib": round(free / 2**30, 1)}

    def release(self) -> None:
        """Give the memory back without ending the process."""
        torch = _torch()
        self.weights = None
        torch.cuda.empty_cache()
