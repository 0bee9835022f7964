"""What is loaded when: the front door is light, and everything behind it is standard library."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"

TOUCH_EVERY_ROOT_NAME = "import failwell\nfor name in failwell.__all__: getattr(failwell, name)"
TOUCH_EVERY_CAPABILITY_NAME = (
    "import failwell.capability\nfor name in failwell.capability.__all__: getattr(failwell.capability, name)"
)


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code` and had not before."""
    program = (
        "import sys, json\n"
        "before = set(sys.modules)\n"
        f"{code}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
    return set(json.loads(done.stdout))


def test_importing_the_package_loads_no_room() -> None:
    loaded = loaded_by("import failwell")

    assert {name for name in loaded if name.split(".")[0] == "failwell"} <= {"failwell", "failwell._lazy"}


@pytest.mark.parametrize(
    "code",
    ["import failwell", TOUCH_EVERY_ROOT_NAME, "import failwell.capability", TOUCH_EVERY_CAPABILITY_NAME],
    ids=["package", "every root name", "capability", "every capability name"],
)
def test_only_the_standard_library_is_loaded(code: str) -> None:
    loaded = {name.split(".")[0] for name in loaded_by(code)}

    assert loaded - sys.stdlib_module_names == {"failwell"}


@pytest.mark.parametrize("heavy", ["asyncio", "importlib.metadata", "multiprocessing", "sqlite3", "unittest"])
def test_no_root_name_pays_for_a_heavy_part_of_the_standard_library(heavy: str) -> None:
    assert heavy not in loaded_by(TOUCH_EVERY_ROOT_NAME)


def test_the_command_line_prints_its_help_without_rich() -> None:
    loaded = loaded_by("from failwell.cli.options import program_parser\nprogram_parser().format_help()")

    assert "rich" not in {name.split(".")[0] for name in loaded}
