"""Processes that carry a mark in their environment: how to find those whose parents are gone."""

import os


def marked(name: str, value: str) -> list[int]:
    """Every process of ours that was started with `name=value`; empty where the system does not tell."""
    wanted = f"{name}={value}".encode()
    found: list[int] = []
    try:
        pids = [int(one) for one in os.listdir("/proc") if one.isdecimal()]
    except OSError:
        return found
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            # Gone, or somebody else's.
            continue
    return found
