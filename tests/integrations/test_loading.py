"""A bridge costs nothing until it is crossed: the engine is loaded by whoever uses it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from failwell.errors.missing_extra import MissingExtra
from failwell.integrations.tenacity import retry_if_failwell, wait_failwell
from failwell.temporal.plugin import retry_policy, to_application_error

SRC = Path(__file__).resolve().parents[2] / "src"
BRIDGES = sorted(path.stem for path in (SRC / "failwell/integrations").glob("[!_]*.py"))


def test_loading_every_bridge_loads_the_standard_library_alone() -> None:
    program = (
        "import sys, json\n"
        "before = set(sys.modules)\n"
        + "".join(f"import failwell.integrations.{name}\n" for name in BRIDGES)
        + "print(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before})))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )

    assert {"celery", "langgraph", "pydantic_ai", "stamina", "tenacity"} <= set(BRIDGES)
    assert set(json.loads(done.stdout)) - sys.stdlib_module_names == {"failwell"}


@pytest.mark.parametrize(
    ("library", "cross"),
    [
        ("tenacity", retry_if_failwell),
        ("tenacity", wait_failwell),
        ("temporalio", retry_policy),
        ("temporalio", lambda: to_application_error(ValueError())),
    ],
    ids=["tenacity's predicate", "tenacity's wait", "temporal's policy", "temporal's error"],
)
def test_an_engine_that_is_not_there_is_named_with_the_command_that_brings_it(
    library: str, cross: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(cross)
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    standard = [path for path in sys.path if "site-packages" not in path]
    monkeypatch.setattr(sys, "path", standard)

    with pytest.raises(MissingExtra, match=f"pip install {library}"):
        cross()
