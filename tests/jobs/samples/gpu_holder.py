# pyright: basic, reportMissingImports=false
# ruff: noqa: T201
"""Somebody else's program: holds so many megabytes of the card until its input ends."""

import sys

import torch

block = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda").fill_(1)
torch.cuda.synchronize()
print("holds", flush=True)
sys.stdin.read()
