"""Functions that a client submits; the tests import them too."""

import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from failwell.capability import CapabilityInputError, capability, check_cancel


class TooDark(CapabilityInputError):
    """An error of the author's own."""


class Side(Enum):
    LEFT = "left"


@dataclass
class Box:
    file: Path
    side: Side


@capability(concurrency=4)
def resize(image: str, width: int = 640) -> dict[str, int]:
    if image == "dark":
        raise TooDark(message="the image is too dark", fields_invalid=["image"])
    if image == "broken":
        raise ValueError(image)
    return {"width": width, "height": width // 2}


@capability(name="count-words")
async def count(text: str) -> int:
    return len(text.split())


@capability
def hold(go: str) -> str:
    """Wait until a file exists."""
    Path(f"{go}.began").touch()
    while not Path(go).exists():
        check_cancel()
        time.sleep(0.005)
    return go


@capability
def crop(box: Box, image: bytes, at: set[int]) -> tuple[Box, bytes, int]:
    assert isinstance(box.file, Path)
    return box, image, len(at)


@capability
def anything(**values: object) -> int:
    return len(values)
