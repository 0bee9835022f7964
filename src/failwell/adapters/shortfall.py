"""Sizes in prose: "needs 9.6 GiB, 7.1 GiB available", as a shortfall in megabytes."""

import re

from failwell.fault.facts import ResourceName, ResourceShortfall

_SIZE = r"(\d{1,15}(?:\.\d{1,6})?)\s?([KMGT](?:i?B)?\b|bytes)"
_NEEDED = re.compile(
    rf"(?:tried to allocate|requires? more system memory \(|needs|requires?|trying to allocate|attempting to reserve|\bused)\s?{_SIZE}",
    re.IGNORECASE,
)
_FREE = re.compile(
    rf"(?:of which {_SIZE} is free|{_SIZE} free\b|than is available \({_SIZE}|{_SIZE} (?:is |are )?available"
    rf"|available[: ]+{_SIZE}|\bused [\d.]+[KMGT] of {_SIZE} hbm)",
    re.IGNORECASE,
)
_MEGABYTES = {"B": 1 / 1024 / 1024, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}
_MEASURES: dict[str, ResourceName] = {
    "resource.gpu_memory": "gpu_vram_mb",
    "resource.system_memory": "system_ram_mb",
    "resource.disk": "disk_mb",
}


def shortfall_of(kind: str, message: str) -> ResourceShortfall | None:
    """What was needed and what there was, where the message gives both in numbers."""
    measure = _MEASURES.get(kind)
    if measure is None:
        return None
    needed, free = _NEEDED.search(message[:2_000]), _FREE.search(message[:2_000])
    if needed is None or free is None:
        return None
    return ResourceShortfall(measure, _megabytes(needed), _megabytes(free))


def _megabytes(match: re.Match[str]) -> float:
    groups = [group for group in match.groups() if group is not None]
    return round(float(groups[0]) * _MEGABYTES[groups[1][0].upper()], 2)


def needed_mb(message: str) -> float | None:
    """What was asked for, in megabytes, where the message gives that alone."""
    needed = _NEEDED.search(message[:2_000])
    return None if needed is None else _megabytes(needed)
