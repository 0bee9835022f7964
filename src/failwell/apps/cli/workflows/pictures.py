"""Pictures on disk: writing them, and turning an SVG into a PNG with whatever this machine has for it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable

from failwell.apps.cli.faults import Unwritable, Usage, reason
from failwell.fault.axes import ActionKind
from failwell.fault.classes import Validation
from failwell.fault.facts import UserAction

_PATIENCE = 60.0
"""Seconds that a drawing program may take."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_CHOICES = "`rsvg-convert` (librsvg), the Python package `cairosvg`, or Chromium"


def write(path: str, content: bytes) -> None:
    """Write a file, whole.

    Raises:
        Unwritable: the system does not let it.
    """
    try:
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(content)
    except OSError as error:
        raise Unwritable.wrap(error, f"cannot write `{path}`: {reason(error)}", caller_facing=True) from error


def as_png(svg: str, output: str | None) -> None:
    """Write `svg` as a PNG to `output`.

    Raises:
        Usage: there is no file to write to; a terminal is no place for a PNG.
        Validation: nothing here can turn an SVG into a PNG, or what there is failed.
    """
    if output is None:
        raise Usage(
            message="a PNG needs a file to go to",
            user_action=UserAction(ActionKind.CHANGE_INPUT, "add `-o picture.png`"),
        )
    failed: list[str] = []
    for name, draw in _ways():
        drawn = draw(svg)
        if drawn is not None:
            write(output, drawn)
            return
        failed.append(name)
    tried = f"; {', '.join(failed)} could not draw it" if failed else ""
    raise Validation(
        kind="validation.config_invalid",
        message=f"nothing here turns an SVG into a PNG{tried}",
        user_action=UserAction(ActionKind.FIX_CONFIGURATION, f"install {_CHOICES}, or use `--as svg`"),
    )


def _ways() -> list[tuple[str, Callable[[str], bytes | None]]]:
    """What this machine can draw with, the best first."""
    ways: list[tuple[str, Callable[[str], bytes | None]]] = []
    converter = shutil.which("rsvg-convert")
    if converter is not None:
        ways.append(("rsvg-convert", lambda svg: _converted(converter, svg)))
    from importlib.util import find_spec

    if find_spec("cairosvg") is not None:
        ways.append(("cairosvg", _with_cairo))
    browser = next((found for name in _BROWSERS if (found := shutil.which(name)) is not None), None)
    if browser is not None:
        ways.append(("Chromium", lambda svg: _photographed(browser, svg)))
    return ways


def _converted(program: str, svg: str) -> bytes | None:
    try:
        done = subprocess.run(  # noqa: S603
            [program, "--zoom", "2", "--format", "png"],
            input=svg.encode(),
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 and done.stdout.startswith(b"\x89PNG") else None


def _with_cairo(svg: str) -> bytes | None:
    from importlib import import_module

    try:
        drawn: object = import_module("cairosvg").svg2png(bytestring=svg.encode(), scale=2)
    except Exception:  # noqa: BLE001  (the package loads a C library; whatever is wrong with it, another way is tried)
        return None
    return drawn if isinstance(drawn, bytes) else None


def _photographed(browser: str, svg: str) -> bytes | None:
    width, height = _size(svg)
    with tempfile.TemporaryDirectory(prefix="failwell-") as folder:
        page, picture = os.path.join(folder, "graph.svg"), os.path.join(folder, "graph.png")  # noqa: PTH118
        write(page, svg.encode())
        command = [
            browser, "--headless", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=2",
            f"--user-data-dir={folder}", f"--window-size={width},{height}", f"--screenshot={picture}", f"file://{page}",
        ]  # fmt: skip
        try:
            subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE)  # noqa: S603
            with open(picture, "rb") as file:  # noqa: PTH123
                return file.read()
        except (OSError, subprocess.TimeoutExpired):
            return None


def _size(svg: str) -> tuple[int, int]:
    """Width and height, as the picture's own head says them."""
    import re

    found = re.search(r'width="(\d+)" height="(\d+)"', svg)
    return (1200, 900) if found is None else (int(found[1]), int(found[2]))
