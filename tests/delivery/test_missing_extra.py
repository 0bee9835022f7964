"""An optional library that is absent is named together with the command that brings it."""

import json
import sys
from pathlib import Path

import pytest

from failwell.errors.missing_extra import MissingExtra, need


def test_a_library_that_is_there_is_returned() -> None:
    assert need("json", "anything") is json


@pytest.mark.parametrize("module", ["no_such_library", "no_such_library.part"])
def test_a_missing_library_is_named_with_the_command_that_brings_it(module: str) -> None:
    with pytest.raises(MissingExtra) as caught:
        need(module, "temporal")

    assert str(caught.value) == "`no_such_library` is not installed; pip install 'failwell[temporal]'"
    assert isinstance(caught.value, ImportError)
    assert caught.value.name == "no_such_library"


def test_a_library_that_no_extra_brings_is_to_be_installed_itself() -> None:
    with pytest.raises(MissingExtra) as caught:
        need("no_such_library.part")

    assert str(caught.value) == "`no_such_library` is not installed; pip install no_such_library"


def test_a_library_that_is_there_and_broken_speaks_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_installed.py").write_text("import no_such_dependency\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    with pytest.raises(ModuleNotFoundError, match="no_such_dependency") as caught:
        need("half_installed", "half")

    assert not isinstance(caught.value, MissingExtra)
