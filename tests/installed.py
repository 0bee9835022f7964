"""Skips what needs a package that is not installed, without loading it: every process that runs tests reads every module."""

from importlib.util import find_spec

import pytest


def need(*packages: str) -> None:
    """Skip the module that calls this, unless these packages are installed."""
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed here", allow_module_level=True)
