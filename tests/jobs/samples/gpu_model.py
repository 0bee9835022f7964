# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false
# ruff: noqa: PTH110, PTH123
"""A capability that really holds the memory of a CUDA card. torch is loaded with the first call."""

import json
import os
import time


class Model:
    """Loads a block of bytes with the first call and keeps it, as a model keeps its weights."""

    def initialize(self, config):
        self.config = config
        self.block = None

    def execute(self, mb, keep=True, gate=None, until=None, log=None):
        """Hold `mb` megabytes of the card.

        `gate` is a file to wait for before anything is taken, `until` one to wait for while it is held;
        `log` is told from when to when that was.
        """
        if gate is not None:
            self._wait(gate)
        import torch

        if self.block is None or self.block.numel() != mb << 20:
            self.block = None
            torch.cuda.empty_cache()
            self.block = torch.empty(mb << 20, dtype=torch.uint8, device="cuda").fill_(7)
        torch.cuda.synchronize()
        began = time.time()
        self.progress(0.25, "loaded")
        if until is not None:
            self._wait(until)
        # Only a card that really holds the bytes can say what they are.
        seen = int(self.block[-1].item())
        ended = time.time()
        if not keep:
            self.block = None
            torch.cuda.empty_cache()
        if log is not None:
            with open(log, "a") as file:
                file.write(json.dumps([began, ended]) + "\n")
        return seen

    def pid(self):
        return os.getpid()

    def seen_config(self):
        return self.config

    def _wait(self, path):
        open(path + ".began", "a").close()
        while not os.path.exists(path):
            self.check_cancel()
            time.sleep(0.005)


class Releasing(Model):
    """Gives its memory back when asked to."""

    def release(self):
        import torch

        self.block = None
        torch.cuda.empty_cache()
