"""Makes the host's `failwell` importable if the capability's environment has none.

Only this package is found. Other packages that are installed beside it in the host's environment do not become
importable, and no module of ours can hide one of the standard library.
"""

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class HostPackage:
    """A finder that is asked last, so a `failwell` in the environment of the capability wins.

    It does not derive from `importlib.abc.MetaPathFinder`: that import takes every worker 9 ms to start.
    """

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002  (the protocol's)
        """The host's `failwell`; `None` for any other name."""
        if fullname != "failwell":
            return None
        return spec_from_file_location(
            fullname, os.path.join(_PACKAGE, "__init__.py"), submodule_search_locations=[_PACKAGE]
        )


def offer() -> None:
    """Let the worker find the host's `failwell`, behind every other finder."""
    sys.meta_path.append(HostPackage())
