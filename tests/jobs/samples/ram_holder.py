# ruff: noqa: T201
"""Somebody else's program: holds so many megabytes of main memory until its input ends."""

import sys

block = bytearray(int(sys.argv[1]) << 20)
block[::4096] = b"x" * len(block[::4096])
print("holds", flush=True)
sys.stdin.read()
