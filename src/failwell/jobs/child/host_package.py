"""Makes the host's `failwell` importable where the capability's environment has none.

Only the package itself is found, never its folder's neighbours: nothing else that is installed beside
the host, and no module of ours under a name of the standard library, gets onto the module path.
"""

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class HostPackage:
    """A finder that is used last, so a `failwell` of the environment's own wins.

    It does not derive from `importlib.abc.MetaPathFinder`: that import takes every worker 9 ms to start.
    """

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002  (the protocol's)
        """Where the host's `failwell` lies; nothing for any other name."""
        if fullname != "failwell":
            return None
        return spec_from_file_location(
            fullname, os.path.join(_PACKAGE, "__init__.py"), submodule_search_locations=[_PACKAGE]
        )


def offer() -> None:
    """Put it behind everything else that finds modules."""
    sys.meta_path.append(HostPackage())
